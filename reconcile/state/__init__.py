"""The state on disk: the database with the baseline and the journal, and the vault."""
