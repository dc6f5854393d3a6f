"""Remotes: the store of one project on several machines, through a place that all of them reach."""
