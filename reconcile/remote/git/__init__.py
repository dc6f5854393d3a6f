"""The engine of a remote that is a git repository: its address, and the processes of git that it starts."""
