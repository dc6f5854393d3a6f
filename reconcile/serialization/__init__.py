"""Plans as JSON: writing, reading untrusted files, and the published schema."""
