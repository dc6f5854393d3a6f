"""A plan as JSON, and its published schema."""
