"""Scans directories into snapshots: a whole side, or a part of it."""
