"""Decisions into the ordered steps of a plan."""
