"""Claudesidian on disk: the files of a vault."""
