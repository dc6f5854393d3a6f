"""The commands. `reconcile_cli.app` imports a module when one of its commands is named."""
