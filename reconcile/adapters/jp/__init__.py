"""JP on disk: its roots, locks and sessions."""
