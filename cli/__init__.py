"""The command ``reconcile``. This directory is installed as the package ``reconcile_cli``.

Modules in here import each other relatively; nothing else imports them.
"""
