"""The rules for one conversation: whether it belongs, which content wins, whose child it is."""
