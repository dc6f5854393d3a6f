"""The group ``reconcile`` and its global options."""

import click

from reconcile import __version__


@click.group(name="reconcile", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reconcile")
def main() -> None:
    """Bring a store of conversations and a workspace together without losing a byte."""
