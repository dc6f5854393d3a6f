"""What everything else is about, as values: both sides, the baseline, plans, requests."""
