"""The program `reconcile`: finds and loads a command, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from reconcile.signals import Interrupt, Uninterrupted
from reconcile.version import __version__

from .arguments import NAMES
from .command import help_all, nearest, report_usage, with_one_dash, write_examples, write_prose
from .misuse import Misuse, did_you_mean
from .options import options_of, shared_options
from .output.errors import FAILURES, ExitCode, report_failure, report_nothing_changed
from .topics import TOPICS, topic_command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from .arguments import Options


class Entry(NamedTuple):
    """A command: the module in `commands` that has it, and its line in the program's help, at most 60 characters."""

    module: str
    summary: str


GROUPS = {
    "Daily": {
        "status": Entry("status", "Show the state of all conversations, or details of one."),
        "diff": Entry("diff", "Show the differences between store and workspace."),
        "review": Entry("review", "Walk through a plan, decide its conflicts, and apply it."),
        "resolve": Entry("requests", "Settle conflicts and blocked conversations."),
        "apply": Entry("apply", "Carry out a saved plan."),
        "watch": Entry("watch", "Sync both sides while you work."),
        "sync": Entry("remote", "Sync the store with a remote that your machines share."),
        "pull": Entry("remote", "Take into the store what a remote has, and send nothing."),
        "push": Entry("remote", "Send what the store has to a remote, and take nothing."),
    },
    "Look": {
        "ls": Entry("ls", "List conversations, or draw their tree."),
        "find": Entry("find", "Find conversations by words in their titles and events."),
        "log": Entry("log", "List the runs, or the steps of one run."),
        "show": Entry("show", "Print a conversation or a saved version as text."),
        "brief": Entry("brief", "Print a summary of a Claudesidian workspace."),
    },
    "Organise": {
        "project": Entry("requests", "Publish conversations to the workspace."),
        "local": Entry("requests", "Remove conversations from the workspace, keep them local."),
        "fork": Entry("requests", "Create a fork of a conversation, with all or some events."),
        "set-parent": Entry("requests", "Move a conversation below another, or make it a root."),
        "rm": Entry("requests", "Remove conversations from both sides."),
    },
    "Recover": {
        "undo": Entry("requests", "Undo a run."),
        "redo": Entry("requests", "Repeat a run that was undone."),
        "restore": Entry("requests", "Restore a saved version on both sides."),
        "recover": Entry("recover", "Restore conversations that the workspace has lost."),
    },
    "Maintain": {
        "config": Entry("config", "Show the settings and where they come from, or change one."),
        "doctor": Entry("doctor", "Check both sides for problems and suggest fixes."),
        "vault": Entry("vault", "Show saved versions, or delete some for good."),
        "checkouts": Entry("checkouts", "List the checkouts that share this store, or forget one."),
        "remote": Entry("remote", "Add, list, check and remove the remotes of the store."),
        "completion": Entry("completion", "Print the script that completes commands, ids and titles."),
        "service": Entry("service", "Keep every project with a service of the system."),
        "gc": Entry("requests", "Remove expired conversations from both sides."),
    },
    "For git": {
        "hooks": Entry("hooks", "Install git's hooks, show them, or remove them."),
        "merge-driver": Entry("git_files", "Merge two versions of a conversation's file for git."),
        "textconv": Entry("git_files", "Print the events in a file as text, for git diff."),
    },
}
"""The commands by what they are for. The function in the module has the command's name."""
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


EXAMPLES = (
    ("reconcile --dry-run", "Show what a run would do, and write nothing."),
    ("reconcile", "Sync both sides."),
    ("reconcile undo", "Undo the last run."),
)
"""Command lines of the program's help, with their meaning."""
SYNONYMS = {
    "backups": "vault",
    "check": "doctor",
    "completions": "completion",
    "conflicts": "status",
    "delete": "rm",
    "download": "pull",
    "fetch": "pull",
    "grep": "find",
    "hide": "local",
    "history": "log",
    "list": "ls",
    "merge": "resolve",
    "move": "set-parent",
    "prune": "vault",
    "publish": "project",
    "read": "show",
    "remove": "rm",
    "revert": "undo",
    "rollback": "undo",
    "search": "find",
    "settings": "config",
    "tree": "ls",
    "unpublish": "local",
    "upload": "push",
    "view": "show",
    "worktrees": "checkouts",
}
"""The command that other tools' words stand for, to be suggested."""
_TITLE = (
    "a title is in metadata.json: edit its key `title` on one side, or run `jp conversation edit ID --title TITLE`; "
    "the next run renames the directories"
)
_ARCHIVE = "JP does that, or you in the store, and the next run follows; how: reconcile help formats"
OTHERS = {
    "archive": _ARCHIVE,
    "dry-run": "did you mean `reconcile --dry-run`?",
    "rename": _TITLE,
    "retitle": _TITLE,
    "run": "`reconcile` without a command syncs both sides; `reconcile --dry-run` shows what it would do",
    "title": _TITLE,
    "unarchive": _ARCHIVE,
    "version": "did you mean `reconcile --version`?",
}
"""The hint for words of other tools that no command stands for."""
_HELP = "help"
_COLUMN = max(map(len, (*COMMANDS, *TOPICS)))
_AS_JSON = "reconcile.as_json"


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
            module = importlib.import_module(f".commands.{COMMANDS[cmd_name].module}", __package__)
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names. An unknown one is an error that suggests another.

        ``help TOPIC`` prints a page, and ``help COMMAND`` is ``COMMAND --help``, as in git.
        """
        if args[0] == _HELP:
            return self._resolve_help(ctx, args[1:])
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise Misuse(f"there is no command {args[0]!r}", _other_command(args), ctx)
        return super().resolve_command(ctx, args)

    def _resolve_help(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not args and ctx.resilient_parsing:
            return _HELP, self, []
        if not args or args[0].startswith("-"):
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        if args[0] in TOPICS:
            return f"{_HELP} {args[0]}", topic_command(args[0]), args[1:]
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            if near := nearest(args[0], TOPICS):
                hint = did_you_mean(f"`reconcile {_HELP} {each}`" for each in near)
            else:
                hint = f"{_other_command(args)}\nthe topics: {', '.join(TOPICS)}"
            raise Misuse(f"there is no command or topic {args[0]!r}", hint, ctx)
        return self.resolve_command(ctx, [*args, "--help"])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that a word may be the beginning of."""
        from click.shell_completion import CompletionItem  # here: commands don't need it

        named = [(name, entry.summary) for name, entry in COMMANDS.items()]
        if ctx.info_name == _HELP:
            named += [(name, topic.summary) for name, topic in TOPICS.items()]
        else:
            named.append((_HELP, "Show the help of a command, or a page about a topic."))
        items = [CompletionItem(name, help=summary) for name, summary in named if name.startswith(incomplete)]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before the command; ``help`` alone is ``--help``."""
        is_help = args == [_HELP] and not ctx.resilient_parsing
        return super().parse_args(ctx, ["--help"] if is_help else args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write what the program does."""
        write_prose(formatter, self.help or "")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, one line each, then the examples and the options."""
        for group, entries in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(_COLUMN), entry.summary) for name, entry in entries.items()])
        with formatter.section("Topics, for reconcile help TOPIC"):
            formatter.write_dl([(name.ljust(_COLUMN), each.summary) for name, each in TOPICS.items()])
        write_examples(formatter, EXAMPLES)
        click.Command.format_options(self, ctx, formatter)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the words before the command. Print wrong usage as one line with a hint, and exit."""
        as_json, words = "--json" in args, tuple(args)
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            raise click.exceptions.Exit(report_usage(with_one_dash(error, words), as_json=as_json)) from None
        except click.UsageError as error:
            raise click.exceptions.Exit(report_usage(error, as_json=as_json)) from None
        context.meta[_AS_JSON] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Print wrong usage and each of `FAILURES` as one line, and exit with its code."""
        # A command makes hundreds of thousands of values, none of them garbage, and the process ends with it.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            as_json = options_of(ctx).json or ctx.meta.get(_AS_JSON, False)
            raise click.exceptions.Exit(report_usage(error, as_json=as_json)) from None
        except click.Abort:  # Ctrl-C at a question, which is asked before the first change
            raise click.exceptions.Exit(report_nothing_changed(options_of(ctx))) from None
        except FAILURES as error:
            options = options_of(ctx)
            raise click.exceptions.Exit(report_failure(error, as_json=options.json, sides=options.sides)) from None
        finally:
            if was_enabled:
                gc.enable()


def _other_command(args: list[str]) -> str:
    """Return the hint for an unknown command: what may have been meant."""
    name = args[0].lower()
    if name in OTHERS:
        return OTHERS[name]
    if name in TOPICS:
        return did_you_mean([f"`reconcile {_HELP} {name}`"])
    near = [SYNONYMS[name]] if name in SYNONYMS else nearest(name, COMMANDS)
    return did_you_mean(f"`reconcile {each}`" for each in near) if near else "reconcile --help"


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
    params=[*shared_options(NAMES), help_all(hidden=True)],
    subcommand_metavar="[COMMAND] [ARGUMENTS]...",
)
@click.version_option(__version__, prog_name="reconcile")
@click.pass_context
def main(context: click.Context) -> None:
    """Sync AI conversations between a store and a workspace, with undo.

    The store is a durable directory in your home directory. The workspace is the place where a program keeps its
    conversations. Without a command, reconcile compares both with their last synced state, shows its plan, and carries
    it out. It saves every version that it replaces.

    Exit status: 0 done, 1 something failed, 2 wrong usage, 3 there are changes (--check), 4 something is blocked,
    skipped or refused, 5 another reconcile is running, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        with Uninterrupted():
            from .plain import run_plain
        context.exit(run_plain(options_of(context)))
