"""The search of ``reconcile find``: words in titles and texts of all places that have a conversation."""
