"""What is remembered on disk: the database, the journal, the vault."""
