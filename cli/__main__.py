"""``python -m reconcile_cli`` runs the command."""

from .main import main

if __name__ == "__main__":
    main()
