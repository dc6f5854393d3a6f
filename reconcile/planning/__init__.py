"""The pure decisions: from two snapshots and the baseline to a plan, and from its outcome to the next baseline."""
