"""Watching both sides all day: events say where to look, a scan decides (docs/watch.md)."""
