"""Sessions of Claude Code: transcripts with a line for each event (docs/design/formats/claude-code.md)."""
