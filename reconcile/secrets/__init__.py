"""The check for secrets: rules of vendors' keys, the texts of a file's events, and findings without the secret."""
