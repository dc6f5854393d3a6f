"""``python -m reconcile_cli`` runs the command."""

from .start import start

if __name__ == "__main__":
    start()
