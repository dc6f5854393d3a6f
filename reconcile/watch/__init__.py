"""Continuous reconciliation: events name directories, and a scan finds the changes in them (docs/watch.md)."""
