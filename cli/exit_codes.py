"""Exit codes, the first that applies (docs/commands.md#exit-codes)."""

USAGE = 2
LOCKED = 5
FAILED = 1
HELD = 4
PENDING = 3
DONE = 0
INTERRUPTED = 130
