"""The commands, a module each, loaded when they are named."""
