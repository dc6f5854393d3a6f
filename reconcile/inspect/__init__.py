"""Listings, descriptions, comparisons and checks for commands that only show something."""
