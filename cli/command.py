"""The class of the commands: which shared options a command takes, its help with examples, and wrong usage.

The program's own class is `reconcile_cli.app.Program`. Both print wrong usage with `report_usage`.
"""

from __future__ import annotations

import inspect
import re
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from .misuse import Misuse, did_you_mean
from .options import EVERYWHERE, options_of, shared_options, spelling
from .output.errors import ExitCode, print_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import NoReturn

    from .arguments import Options


class Several(Enum):
    """The format that a command takes in a project with several, unless ``--format`` or a name chooses one."""

    EACH = "each"
    """All of them, one after the other."""
    FIRST = "first"
    """The first, and a message names the others: what is asked for can only be of one, or removes for good."""
    NEWEST = "newest"
    """The one with the newest run."""
    OWN = "own"
    """The command chooses itself, or concerns no format."""


_IN_EVERY_PROJECT = {
    "recover": "behind `recover`, --all is another option: it restores everything that this project's store has",
}
"""Hints for commands of which ``--all`` is asked for: what does that, or what the option means there."""
PLANS = ("dry_run", "out", "check", "json", "verbose", "quiet")
"""The shared options of a command that plans a run."""
_NUMBERS = (
    (r"is not a valid integer(?: range)?$", "is not a whole number"),
    (r"is not a valid float(?: range)?$", "is not a number"),
    (r"is not in the range x>=(\S+)$", r"is less than \1"),
)
"""The library's words about a number, and plainer ones."""
_WITHOUT_PROJECT = frozenset(("service", "completion", "merge-driver", "textconv"))
_IN_FULL = "reconcile.in_full"
_UNSET = (None, False, (), "")
"""Values of options that were not given, or without the value that they may have."""


class Command(click.Command):
    """A command that takes the shared options which mean something to it, and refuses the others.

    ``accepts`` are names of `reconcile_cli.arguments.Options`. ``accepts_with`` has, by an option of the command's own,
    those that only that option gives a meaning. ``means`` has the help of a shared option that means something of its
    own here. ``examples`` are pairs of a command line and its meaning.
    ``extra_hint`` is the hint for a word too many.

    In a project with several formats, ``names`` has the parameters that name things, with the kind (`scope.names`): the
    format that knows them is taken. Otherwise ``several`` decides, and `Several.FIRST` with an option of ``of_first``.
    With ``of_one``, ``--all`` runs it in every project, without these options of its own.
    ``prints_sides``: it names the two sides. ``searches``: it exits with 1 if there is no result.
    """

    def __init__(
        self,
        *args: Any,
        accepts: Iterable[str] = (),
        accepts_with: Mapping[str, Collection[str]] | None = None,
        means: Mapping[str, str] | None = None,
        examples: Iterable[tuple[str, str]] = (),
        extra_hint: str | None = None,
        names: Mapping[str, str] | None = None,
        several: Several = Several.EACH,
        of_first: Collection[str] = (),
        of_one: Collection[str] = (),
        prints_sides: bool = True,
        searches: bool = False,
        **settings: Any,
    ) -> None:
        """Create the command, and add the shared options to its own."""
        super().__init__(*args, **settings)
        self.accepts = frozenset((*accepts, *EVERYWHERE))
        self.accepts_with = {name: frozenset(shared) for name, shared in (accepts_with or {}).items()}
        self.examples = tuple(examples)
        self.extra_hint = extra_hint
        self.names = dict(names or {})
        self.several = several
        self.of_first = of_first
        self.of_one = tuple(of_one)
        self.prints_sides = prints_sides
        self.searches = searches
        self.own = tuple(self.params)
        taken = {name for parameter in self.own for name in parameter.opts}
        self.shared = tuple(shared_options(self.accepts.union(*self.accepts_with.values()), taken))
        for option in self.shared:
            option.help = (means or {}).get(str(option.name), option.help)
        self.params = [*self.own, *self.shared, help_all()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the command. A word too many is an error with a hint."""
        words = tuple(args)  # the parser empties the list
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise with_one_dash(error, words) from None
        except click.UsageError as error:
            if type(error) is not click.UsageError:
                error.ctx = error.ctx or ctx  # the parser doesn't name the command where an option lacks its value
                raise
            extra = error.message.partition("(")[2].removesuffix(")")
            message = f"{ctx.command_path}: unexpected argument: {extra}" if extra else error.message
            raise Misuse(message, self.extra_hint or f"{ctx.command_path} --help", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless an option was given that means nothing to it; in the formats that it concerns."""
        self.refuse_meaningless(ctx)
        options = options_of(ctx)
        try:
            if options.all and self.of_one:
                return self._in_projects(ctx, options)
            formats = () if self.several is Several.OWN else self.formats_of(ctx, options)
            return self._in_formats(ctx, options, formats) if formats else super().invoke(ctx)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # its help is the hint of an error that has none
            raise

    def formats_of(self, ctx: click.Context, options: Options) -> tuple[str, ...]:  # noqa: ARG002 - for `recover`
        """Return the formats of the project, if it has several and the options choose none of them."""
        from .context import formats_here, with_shared  # here: the help needs nothing of a project

        is_about_runs = "runs" in self.names.values() and self.several is not Several.FIRST
        return with_shared(options, formats_here(options)) if is_about_runs else formats_here(options)

    def _in_projects(self, ctx: click.Context, options: Options) -> NoReturn:
        """Run the command in every project, and end it."""
        from .scope.listing import list_all  # here: most commands are about one project

        if any(ctx.params[name] is not None for name in self.of_one):
            raise Misuse("--all lists whole projects", f"leave out {' and '.join(f'--{n}' for n in self.of_one)}", ctx)
        with self.run_with(ctx) as run:
            code = list_all(options, run, str(self.name))
        ctx.exit(code)

    @contextmanager
    def run_with(self, ctx: click.Context, **changed: object) -> Iterator[Callable[[Options], int]]:
        """Yield what runs the command with other options, and returns the exit code; ``changed``: own parameters."""
        given, root = {**ctx.params, **changed}, ctx.find_root()
        options = root.obj

        def run(own: Options) -> int:
            root.obj, ctx.params = own, dict(given)
            try:
                super(Command, self).invoke(ctx)
            except click.exceptions.Exit as ended:
                return ended.exit_code
            return ExitCode.DONE

        try:
            yield run
        finally:
            root.obj = options

    def _in_formats(self, ctx: click.Context, options: Options, formats: tuple[str, ...]) -> Any:
        from .scope.formats import first_alone, format_of, run_in_turn, with_newest  # here: most projects have one

        given, root = ctx.params, ctx.find_root()
        several = Several.FIRST if any(given[name] not in _UNSET for name in self.of_first) else self.several
        if named := list(self._named(ctx, options)):
            root.obj = format_of(options, formats, named)
        elif several is Several.FIRST:
            root.obj = first_alone(options, formats)
        elif several is Several.NEWEST:
            root.obj = with_newest(options, formats, redoes=self.name == "redo")
        else:
            with self.run_with(ctx) as run:
                code = run_in_turn(options, formats, run, prints_sides=self.prints_sides, searches=self.searches)
            ctx.exit(code)
        return super().invoke(ctx)

    def _named(self, ctx: click.Context, options: Options) -> Iterator[tuple[str, str]]:
        """Yield the names that were typed, each with its kind."""
        for parameter, kind in self.names.items():
            value = ctx.params[parameter]
            texts = value if isinstance(value, tuple) else () if value in _UNSET else (value,)
            yield from ((kind, text) for text in texts)
        yield from (("ids", text) for text in (*options.only, *options.below))

    def refuse_meaningless(self, context: click.Context) -> None:
        """Raise `Misuse` if a shared option was given that means nothing to this command."""
        given = sorted(options_of(context).given - self.accepts)
        conditional = {name: with_ for name in given if (with_ := self._gives_meaning(name))}
        if unknown := [spelling(name) for name in given if name not in conditional]:
            which = "it" if len(unknown) == 1 else "them"
            hint = f"leave {which} out; `{context.command_path} --help-all` lists the options"
            if unknown == ["--dry-run"]:
                hint = f"leave {which} out; `reconcile --dry-run` shows what a run would do"
            elif unknown == ["--all"] and self.name not in _WITHOUT_PROJECT:
                one = f"{self.name} is about one project: change to it, or name it with -w DIR; "
                one += "list your projects: reconcile ls --all"
                hint = "\n".join(filter(None, (_IN_EVERY_PROJECT.get(str(self.name)), one)))
            raise Misuse(f"{context.command_path}: {', '.join(unknown)} can't be used here", hint, context)
        for name, with_ in conditional.items():
            if not any(context.params[own] not in _UNSET for own in with_):
                needed = " or ".join(self._spelled(own) for own in with_)
                raise Misuse(
                    f"{context.command_path}: {spelling(name)} needs {needed}",
                    f"leave it out, or add {needed}",
                    context,
                )

    def _gives_meaning(self, name: str) -> list[str]:
        return [own for own, shared in self.accepts_with.items() if name in shared]

    def _spelled(self, name: str) -> str:
        return next(parameter.opts[-1] for parameter in self.own if parameter.name == name)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write what the command does."""
        write_prose(formatter, self.help or "")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the shared ones that it takes, then the examples.

        ``--help-all`` shows also the options that every command takes.
        """
        in_full = ctx.meta.get(_IN_FULL, False)
        own = _records(ctx, self.own)
        rest = [parameter for parameter in self.get_params(ctx) if parameter not in (*self.own, *self.shared)]
        shown = [each for each in self.shared if in_full or each.name not in EVERYWHERE]
        if own:
            with formatter.section("Options"):
                formatter.write_dl(own)
        with formatter.section("Shared options" if own else "Options"):
            formatter.write_dl(_records(ctx, [*shown, *rest]))
        if self.examples:
            write_examples(formatter, self.examples)


def write_prose(formatter: click.HelpFormatter, text: str) -> None:
    """Write paragraphs. No line ends within a command in backticks, unless that is wider than a line."""
    from .output.screen import wrap  # here, as below: most command lines ask for no help

    for paragraph in inspect.cleandoc(text).split("\n\n"):
        formatter.write_paragraph()
        formatter.write("".join(f"{line}\n" for line in wrap(" ".join(paragraph.split()), formatter.width, "  ")))


def write_examples(formatter: click.HelpFormatter, examples: Iterable[tuple[str, str]]) -> None:
    """Write a section with examples: each a command line, and its meaning in the line below."""
    from .output.screen import command_lines

    with formatter.section("Examples"):
        for command, meaning in examples:
            for line in command_lines(command, formatter.width, " " * formatter.current_indent):
                formatter.write(f"{line}\n")
            with formatter.indentation(), formatter.indentation():
                formatter.write_text(meaning)


def _records(context: click.Context, parameters: Iterable[click.Parameter]) -> list[tuple[str, str]]:
    found = (parameter.get_help_record(context) for parameter in parameters if isinstance(parameter, click.Option))
    return [record for record in found if record is not None]


def help_all(*, hidden: bool = False) -> click.Option:
    """Return the option that shows the help with the options that every command takes."""

    def show(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            context.meta[_IN_FULL] = True
            click.echo(context.get_help(), color=context.color)
            context.exit()

    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=hidden,
        callback=show,
        help="Show also the options that every command takes, and exit.",
    )


OF_OTHER_COMMANDS = {
    ("reconcile", "--take"): "reconcile resolve ID --take SIDE",
    ("reconcile redo", "--list"): "reconcile log",
    ("reconcile set-parent", "--root"): "reconcile set-parent ID --none",
    ("reconcile restore", "--list"): "reconcile vault",
    ("reconcile undo", "--list"): "reconcile log",
}
"""Options that a command lacks, with the command that does this."""


def report_usage(error: click.UsageError, *, as_json: bool) -> int:
    """Print wrong usage as an error with a hint, and return the exit code."""
    message, hint = _explained(error)
    print_error(message, hint, as_json=as_json)
    return ExitCode.USAGE


def _explained(error: click.UsageError) -> tuple[str, str | None]:
    """Return the message and the hint of wrong usage."""
    if isinstance(error, Misuse):
        return error.message, error.hint
    help_ = f"{error.ctx.command_path if error.ctx is not None else 'reconcile'} --help"
    if type(error) is click.UsageError:  # of a command here
        return error.message, help_
    if isinstance(error, click.NoSuchOption):
        known = _spellings(error.ctx)
        near = nearest(error.option_name, known)
        where = error.ctx.command_path if error.ctx is not None else "reconcile"
        if (other := OF_OTHER_COMMANDS.get((where, error.option_name))) is not None:
            near = [f"`{other}`"]
        return f"{where}: unknown option {error.option_name}", did_you_mean(near) if near else help_
    if isinstance(error, click.BadParameter) and error.param is not None and isinstance(error.param.type, click.Choice):
        typed = error.message.partition(" is not one of ")[0].strip("'")
        if near := nearest(typed, map(str, error.param.type.choices)):
            help_ = did_you_mean(near)
    text = error.format_message().rstrip(".")
    for pattern, words in _NUMBERS:
        text = re.sub(pattern, words, text)
    if isinstance(error, click.MissingParameter):
        text = " ".join(text.split())  # click lists the choices one a line
    return text[:1].lower() + text[1:], help_


def with_one_dash(error: click.NoSuchOption, words: Iterable[str]) -> click.NoSuchOption:
    """Return the error of an unknown letter; of an option that lacks its second dash, such as ``-from``, all of it."""
    known = {name[1:] for name in _spellings(error.ctx)}
    typed = (word.partition("=")[0] for word in words)
    whole = next((word for word in typed if word in known and error.option_name[1:] in word), error.option_name)
    return click.NoSuchOption(whole, ctx=error.ctx)


def _spellings(context: click.Context | None) -> list[str]:
    """Return the options that a command shows in its help."""
    if context is None:
        return []
    parameters = [each for each in context.command.get_params(context) if isinstance(each, click.Option)]
    return [name for each in parameters if not each.hidden for name in each.opts if name.startswith("--")]


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return the names that a mistyped word may stand for, best first.

    Those that have the same letters come before those that it begins; a similar one counts only without them.
    """
    import difflib  # here: most command lines have no mistake

    bare = {name.lstrip("-"): name for name in sorted(known)}
    typed = word.lstrip("-")
    swapped = [name for each, name in bare.items() if sorted(each) == sorted(typed)]
    begun = [name for each, name in bare.items() if len(typed) > 1 and each.startswith(typed) and name not in swapped]
    return [*swapped, *begun][:3] or [bare[each] for each in difflib.get_close_matches(typed, bare, n=1)]
