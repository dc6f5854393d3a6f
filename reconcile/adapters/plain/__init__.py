"""The plain format on disk."""
