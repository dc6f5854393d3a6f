"""``reconcile completion``: prints the script with which a shell completes the words of a command line."""

from __future__ import annotations

import click

from ..command import Command, Several
from ..completion import SCRIPTS


@click.command(
    "completion",
    cls=Command,
    several=Several.OWN,
    examples=(
        ("reconcile completion bash", "Print the script for bash."),
        ("reconcile completion fish", "Print the script for fish."),
    ),
)
@click.argument("shell", type=click.Choice(list(SCRIPTS)), metavar="SHELL")
def completion(shell: str) -> None:
    """Print the script that completes commands, ids and titles.

    SHELL is bash, zsh or fish. In bash, add this line to ~/.bashrc: eval "$(reconcile completion bash)". In zsh, add it
    to ~/.zshrc with zsh in the place of bash, after compinit. fish loads it from a file
    ~/.config/fish/completions/reconcile.fish.
    """
    click.echo(SCRIPTS[shell], nl=False)
