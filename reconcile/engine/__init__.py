"""A run from scan to baseline: sessions, passes, and going on from the last run."""
