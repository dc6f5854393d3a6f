"""The command ``reconcile``: reads its arguments, asks, runs a pass through the engine, and prints.

This directory is installed as the package ``reconcile_cli``. Its modules import each other relatively; no other package
imports them.
"""
