"""The formats and the projects that a command is about: several of one project, shared sessions, or all of a user."""
