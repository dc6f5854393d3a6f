"""The requests of commands: edits of a plain run, and plans of their own."""
