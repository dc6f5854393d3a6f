"""``reconcile merge-driver`` and ``textconv``: what git calls for one file of a conversation.

`reconcile hooks install --merge-driver` configures both. git starts them in the top directory of a checkout.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec.structs import replace

from reconcile.errors import ReconcileError
from reconcile.formats import get_format
from reconcile.formats.jp.times import instant_ns
from reconcile.fs.files import read_if_there
from reconcile.fs.hashing import digest
from reconcile.inspect.markdown import to_markdown
from reconcile.model.format import EventSelection
from reconcile.model.names import CHILDREN, MARKER
from reconcile.model.options import Diverged
from reconcile.model.policy import ForkRequest
from reconcile.model.snapshot import Fault
from reconcile.model.units import Rules
from reconcile.planning.file_merge import FileMerge, Versions, merge_events, merge_metadata

from ..arguments import Options
from ..command import Command, Several
from ..context import find_roots, settings_of
from ..options import FILES
from ..output.errors import ExitCode, print_error
from ..output.text import clean
from ..run import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.engine.engine import Engine
    from reconcile.model.format import Format
    from reconcile.model.policy import Policy


class _Place(NamedTuple):
    """A managed file of a conversation by its path in the checkout: its project, its id, and its name."""

    project: str
    conversation: str
    name: str


@click.command(
    "merge-driver",
    cls=Command,
    several=Several.OWN,
    examples=(
        ("reconcile hooks install --merge-driver", "Let git call it for every merge."),
        ("reconcile merge-driver %O %A %B %P", "The command line in git's configuration."),
    ),
)
@click.argument("base", type=click.Path())
@click.argument("ours", type=click.Path())
@click.argument("others", type=click.Path(), metavar="THEIRS")
@click.argument("path", metavar="PATH")
@click.pass_context
def merge_driver(context: click.Context, base: str, ours: str, others: str, path: str) -> None:
    """Merge two versions of a conversation's file for git.

    git calls it with the files of three versions (%O %A %B) and the path in the checkout (%P). The result replaces
    OURS. Events get the rules of a run: the longer one of two streams stays. Of two continuations the newer one stays,
    and the other one becomes a fork in the store. Metadata is merged key by key.

    Exits with 1 if a person has to decide. OURS is valid then, with our values, and git's index has both versions.
    """
    place = _place(path)
    if place is None:
        raise click.UsageError(f"{path!r} is no events.json or metadata.json of a conversation")
    versions = Versions(read_if_there(base) or None, read_if_there(ours) or b"", read_if_there(others) or b"")
    form = get_format("jp")
    beside = read_if_there(os.path.join(os.path.dirname(path), form.stream_files[0]))
    merged = _merged(place, versions, beside, form)
    if isinstance(merged, Fault):
        context.exit(_left_to_git(path, f"a version is not valid: {merged.words}"))
    if merged.continuation is not None and (trouble := _kept(place, merged.continuation, beside, form)):
        context.exit(_left_to_git(path, f"two continuations, and no fork could be made: {trouble}"))
    if merged.content != versions.ours:
        with open(ours, "wb") as file:
            file.write(merged.content)
    if merged.conflict:
        what = f"both branches edited {', '.join(merged.keys)}" if merged.keys else "both branches edited the same part"
        context.exit(_left_to_git(path, what))


@click.command(
    "textconv",
    cls=Command,
    several=Several.OWN,
    examples=(
        ("reconcile hooks install --merge-driver", "Let git call it for `git diff` and `git log -p`."),
        ("reconcile textconv .jp/conversations/17780300000-release-notes/events.json", "Print events as text."),
    ),
)
@click.argument("file", type=click.Path(), shell_complete=FILES)
def textconv(file: str) -> None:
    """Print the events in a file as text, for git diff.

    The content of a FILE without valid events is printed. Control characters are escaped.
    """
    with open(file, "rb") as stream:
        content = stream.read()
    form = get_format("jp")
    name = form.stream_files[-1]
    facts = form.summarise([content], events=False)
    if isinstance(facts, Fault):
        text = content.decode(errors="surrogateescape")
    else:
        text = to_markdown(replace(form.transcript("", {name: content}), title=os.path.basename(file)))
    # git prints it as it is. A tab has no effect but a space.
    click.echo("\n".join("\t".join(map(clean, line.split("\t"))) for line in text.split("\n")), nl=False)


def _place(path: str) -> _Place | None:
    """Return the place of a path in the checkout; None if it is no file that the driver merges."""
    form = get_format("jp")
    above, *rest = f"/{path}".rsplit(f"/{MARKER}/{CHILDREN}/", 1)  # the project may be below a directory `CHILDREN`
    *_, directory, name = ("", *"".join(rest).split("/"))
    conversation = form.id_of(directory)
    if conversation is None or name not in (form.metadata_file, form.stream_files[-1]):
        return None
    return _Place(above[1:] or ".", conversation, name)


def _merged(place: _Place, versions: Versions, beside: bytes | None, form: Format) -> FileMerge | Fault:
    rules = Rules(form, digest)
    if place.name == form.metadata_file:
        return merge_metadata(place.conversation, versions, rules)
    return merge_events(place.conversation, versions, beside, rules, Diverged.FORK, instant_ns)


def _kept(place: _Place, continuation: bytes, beside: bytes | None, form: Format) -> str:
    """Make the fork of a continuation in the store; return the reason if that is impossible."""
    name = form.stream_files[-1]
    files: dict[str, bytes] = {name: continuation}
    if beside is not None:
        files[form.stream_files[0]] = beside
    elif isinstance(form.read_stream(files, events=False), Fault):
        return "its base_config.json is not in the checkout"
    options = Options()
    options.workspace, options.quiet, options.yes = place.project, True, True
    try:
        roots = find_roots(options)
        if not roots.store_exists:
            return "this workspace has no store yet (run reconcile once)"
        if settings_of(roots).diverged is not Diverged.FORK:
            return 'the setting diverged is not "fork"'
        code = run(options, lambda: "reconcile merge-driver", _Continuation(place.conversation, files).adjust)
    except ReconcileError as error:
        return error.message
    except OSError as error:
        return error.strerror or str(error)
    return "" if code == ExitCode.DONE else "see what is blocked: reconcile status"


class _Continuation(NamedTuple):
    conversation: str
    files: Mapping[str, bytes]

    def adjust(self, policy: Policy, engine: Engine) -> Policy:  # noqa: ARG002 - as every command's
        """Return the policy with the request for the fork."""
        return replace(policy, request=ForkRequest(self.conversation, EventSelection(), continuation=self.files))


def _left_to_git(path: str, reason: str) -> int:
    """Report a conflict that git leaves to a person, with both versions."""
    hint = f"the file has ours; theirs: git show :3:{path}\nkeep ours: git add {path}"
    print_error(f"{path}: {reason}", hint, as_json=False, label="reconcile")
    return ExitCode.FAILED
