"""The values of the domain: snapshots, the baseline, policies, plans and reasons. It imports no other package."""
