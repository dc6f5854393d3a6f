"""What commands show without changing anything: listings, status, comparisons, checks."""
