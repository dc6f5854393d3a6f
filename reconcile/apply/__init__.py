"""Carrying out a plan: check again, save to the vault, stage, flush, publish, journal (DESIGN.md section 7)."""
