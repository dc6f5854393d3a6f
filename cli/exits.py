"""Exit codes, the first that applies (DESIGN.md section 8)."""

USAGE = 2
LOCKED = 5
FAILED = 1
HELD = 4
PENDING = 3
DONE = 0
INTERRUPTED = 130
