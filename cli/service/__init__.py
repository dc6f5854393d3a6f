"""The watcher of every project as a service of the system: its file, and the program that manages services."""
