"""What a command asks for instead of a plain run, or besides it."""
