"""Carrying out a plan: check again, save to the vault, stage, flush, publish, journal (docs/design/run.md#rule-49)."""
