"""The program `reconcile`: finds and loads a command, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any

import click

from reconcile.signals import Interrupt, Uninterrupted
from reconcile.version import __version__

from .options import common_options, options_of
from .output.errors import FAILURES, ExitCode, print_error, report_failure

if TYPE_CHECKING:
    from .arguments import Options

COMMANDS = {
    "apply": "apply",
    "brief": "brief",
    "checkouts": "checkouts",
    "diff": "diff",
    "doctor": "doctor",
    "fork": "requests",
    "gc": "requests",
    "local": "requests",
    "log": "log",
    "ls": "ls",
    "project": "requests",
    "recover": "recover",
    "redo": "requests",
    "resolve": "requests",
    "restore": "requests",
    "rm": "requests",
    "set-parent": "requests",
    "show": "vault",
    "status": "status",
    "undo": "requests",
    "vault": "vault",
    "watch": "watch",
}
"""Command to module in `commands`. The function in that module has the command's name."""


class Program(click.Group):
    """A group that imports a command when it is named, so that starting is cheap."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        with Uninterrupted():
            module = importlib.import_module(f".commands.{COMMANDS[cmd_name]}", __package__)
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Print each of `FAILURES` as one line, and exit with its code."""
        # A command makes hundreds of thousands of values, none of them garbage, and the process ends with it.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if not options_of(ctx).json:
                raise
            print_error(error.format_message(), None, as_json=True)
            raise click.exceptions.Exit(ExitCode.USAGE) from None
        except click.Abort:
            raise click.exceptions.Exit(report_failure(Interrupt(), as_json=options_of(ctx).json)) from None
        except FAILURES as error:
            raise click.exceptions.Exit(report_failure(error, as_json=options_of(ctx).json)) from None
        finally:
            if was_enabled:
                gc.enable()


def run(options: Options | None) -> int:
    """Run the command that ``sys.argv`` names, and return its exit code. ``options``: those that are parsed already."""
    try:
        return int(main(obj=options, standalone_mode=False) or ExitCode.DONE)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:  # Ctrl-C before the command begins, or after its end
        return report_failure(Interrupt(), as_json=False)


@click.group(
    name="reconcile",
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@common_options
@click.version_option(__version__, prog_name="reconcile")
@click.pass_context
def main(context: click.Context) -> None:
    """Bring a store of conversations and a workspace together without losing a byte.

    Without a command: plan, and carry the plan out. With --dry-run: show the plan and write nothing.

    Exit status: 0 done, 1 something failed, 2 wrong usage, 3 changes are pending (--check),
    4 something is held, skipped or refused, 5 another reconcile is at work, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        with Uninterrupted():
            from .plain import run_plain
        context.exit(run_plain(options_of(context)))
