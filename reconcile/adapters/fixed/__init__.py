"""Formats with fixed places on disk: their sides, and what they are known by."""
