"""Watching both sides all day: events say where to look, a scan decides (DESIGN.md section 9)."""
