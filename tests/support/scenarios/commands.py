"""The commands of a scenario, and the lines that a plan is written as."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from reconcile.formats import get_format
from reconcile.model.format import EventSelection
from reconcile.model.options import Diverged, Layout, Missing, OnConflict, Prefer, StreamRule, Take
from reconcile.model.plan import Kind
from reconcile.model.policy import (
    Children,
    ForkRequest,
    GcRequest,
    LocalRequest,
    Policy,
    ProjectRequest,
    QuarantineRequest,
    RemoveRequest,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.model.snapshot import WHOLE
from tests.support.scenarios.line_reader import ScenarioError
from tests.support.scenarios.past_runs import LATEST, REDO

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.plan import Action, Item, Note, Plan
    from reconcile.model.policy import Request

_FORMAT = get_format("jp")
_KINDS = {kind.value for kind in Kind}
_LATER = ("held", "aside", "skipped", "failed", "note")
_REFUSED = "refused "
_CHECKOUTS = ("@2", "@3")


@dataclass(frozen=True, slots=True)
class Command:
    """One ``$ reconcile`` line. ``checkout`` is 1, or 2 for ``@2``, or 3."""

    argv: tuple[str, ...]
    checkout: int = 1
    policy: Policy = field(default_factory=Policy)
    dry_run: bool = False
    source: str | None = None
    """The workspace whose record ``recover --from`` goes by."""

    @property
    def workspace(self) -> str:
        return f"workspace{self.checkout}" if self.checkout > 1 else "workspace"

    @property
    def recovers(self) -> bool:
        return isinstance(self.policy.request, ProjectRequest) and self.policy.request.records is not None

    def plain(self) -> Command:
        """Return a run over everything in the same checkout and layout."""
        layout = tuple(word for word in self.argv if word in ("--layout", *Layout))
        return Command(layout, self.checkout, Policy(layout=self.policy.layout))

    def under(self, config: Mapping[str, str], git_busy: str | None) -> Policy:
        """Return the policy with what the configuration and git say."""
        return replace(
            self.policy,
            stream=StreamRule(config.get("stream", self.policy.stream)),
            diverged=Diverged(config.get("diverged", self.policy.diverged)),
            conflict=OnConflict(config.get("conflict", self.policy.conflict)),
            missing=Missing(config.get("missing", self.policy.missing)),
            git_busy=git_busy,
        )


class _Parser(argparse.ArgumentParser):
    """The options of the command that make a policy."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("words", nargs="*")
        self.add_argument("--layout", type=Layout, default=Layout.NESTED)
        self.add_argument("--prefer", type=Prefer, default=Prefer.NEWEST)
        self.add_argument("--allow-bulk-removal", action="store_true")
        self.add_argument("--only", type=_id, action="append", default=[])
        self.add_argument("--below", type=_id, action="append", default=[])
        self.add_argument("--take", type=Take)
        self.add_argument("--keep", dest="take", action="store_const", const=Take.KEEP)
        self.add_argument("--dry-run", action="store_true")
        self.add_argument("--last", type=int)
        self.add_argument("--quarantine", type=_id, action="append", default=[])
        self.add_argument("--title")
        self.add_argument("--from", dest="source")
        for flag in ("--local", "--all", "--behind", "--with-ancestors", "--cascade", "--promote", "--none"):
            self.add_argument(flag, action="store_true")

    def error(self, message: str) -> NoReturn:
        raise ScenarioError(message)


@functools.cache  # making it costs more than reading a command
def _parser() -> _Parser:
    return _Parser()


@functools.lru_cache(maxsize=4096)  # most scenarios have the same few commands
def read_command(text: str) -> Command:
    """Read what follows ``$``."""
    program, *argv = shlex.split(text) or [""]
    checkout = next((int(word[1:]) for word in argv if word in _CHECKOUTS), 1)
    argv = [word for word in argv if word not in _CHECKOUTS]
    given = _parser().parse_intermixed_args(argv)
    name, *ids = given.words or [""]
    if program == "reconcile" and name in _REQUESTS:
        try:
            policy = Policy(
                layout=given.layout,
                accept_bulk=given.allow_bulk_removal,
                only=frozenset(given.only),
                below=frozenset(given.below),
                request=_REQUESTS[name](ids, given),
            )
        except IndexError:
            raise ScenarioError(f"found {text!r}, expected more words after {name}") from None
        return Command(tuple(argv), checkout, policy, given.dry_run, given.source)
    if program != "reconcile" or name not in ("", "resolve"):
        raise ScenarioError(f"found {text!r}, expected reconcile, reconcile resolve ID --take SIDE|--keep, or undo")
    if (name == "resolve") != (given.take is not None and bool(ids)):
        raise ScenarioError(f"found {text!r}, expected ids and --take or --keep, after resolve alone")
    resolved = [_id(number) for number in ids]
    policy = Policy(
        layout=given.layout,
        prefer=given.prefer,
        accept_bulk=given.allow_bulk_removal,
        only=frozenset([*given.only, *resolved]),
        below=frozenset(given.below),
        decisions=dict.fromkeys(resolved, given.take),
    )
    return Command(tuple(argv), checkout, policy, given.dry_run)


def _all_ids(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_id(text) for text in texts))


def _children(given: argparse.Namespace) -> Children:
    return Children.CASCADE if given.cascade else Children.PROMOTE if given.promote else Children.REFUSE


_REQUESTS: Mapping[str, Callable[[list[str], argparse.Namespace], Request]] = {
    "undo": lambda words, _: UndoRequest((*words, LATEST)[0]),
    "redo": lambda words, _: UndoRequest(f"{REDO}{(*words, LATEST)[0]}"),
    "restore": lambda words, _: RestoreRequest(words[0]),
    "local": lambda words, _: LocalRequest(_all_ids(words)),
    "project": lambda words, given: ProjectRequest(_all_ids(words), given.all, given.behind, given.with_ancestors),
    "recover": lambda _, given: ProjectRequest((), given.all, records=()),
    "rm": lambda words, given: RemoveRequest(_all_ids(words), _children(given)),
    "set-parent": lambda words, given: SetParentRequest(_id(words[0]), None if given.none else _id(words[1])),
    "gc": lambda *_: GcRequest(),
    "doctor": lambda _, given: QuarantineRequest(tuple(given.quarantine)),
    "fork": lambda words, given: ForkRequest(_id(words[0]), EventSelection(last=given.last), given.title, given.local),
}


def _id(text: str) -> str:
    """Return the id that a spelling names; one that is none is for the command to refuse."""
    return _FORMAT.parse_id(text) or text


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command has said, as lines. ``held``: something needs a decision."""

    actions: tuple[str, ...]
    items: tuple[str, ...]
    notes: tuple[str, ...]
    exit_code: int

    @property
    def held(self) -> bool:
        return any(line.startswith(("held ", "skipped ")) for line in self.items)

    def cleared(self, side: str) -> list[str]:
        """Return the directories of a side that were removed in whole: another may have taken the place since."""
        start = f"-> {'workspace' if side.startswith('workspace') else 'store'}:"
        removals = (line for line in self.actions if line.split()[1] == Kind.REMOVE_STALE)
        return [line.partition(start)[2] for line in removals if start in line]

    def renamed(self, shown: Callable[[str], str]) -> Outcome:
        """Return the same with other names for ids that the run has made up."""
        actions, items, notes = (
            tuple(shown(line) for line in lines) for lines in (self.actions, self.items, self.notes)
        )
        return Outcome(actions, items, notes, self.exit_code)

    def lines(self, like: Iterable[str]) -> list[str]:
        """Return the lines to show, with notes and the exit code where ``like`` has them or they surprise.

        Items are in the order of ``like``: the plan of a part keeps the positions that items had before.
        """
        wanted = list(like)
        places = {line: place for place, line in enumerate(wanted)}
        lines = [*_aligned(self.actions), *sorted(self.items, key=lambda line: places.get(line, len(places)))]
        if any(line.startswith("note ") for line in wanted):
            lines += self.notes
        lines = lines or ["(nothing)"]
        if any(line.startswith("exit ") for line in wanted) or self.exit_code != self.usual_exit_code:
            lines.append(f"exit {self.exit_code}")
        return lines

    def skipping(self, actions: Iterable[Action], busy: Collection[str]) -> Outcome:
        """Return the same with actions that were not carried out, for a lock or for what they need."""
        lines = tuple(
            f"skipped {_short(action.conversation)} {action.unit} {'busy' if action.id in busy else 'needs-skipped'}"
            for action in actions
        )
        return Outcome(self.actions, (*self.items, *lines), self.notes, 4 if lines else self.exit_code)

    @property
    def usual_exit_code(self) -> int:
        if any(line.startswith("failed ") for line in self.items):
            return 1
        return 2 if self.refused else 4 if self.held else 0

    @property
    def refused(self) -> bool:
        """Whether there was no plan at all."""
        return any(line.startswith(_REFUSED) for line in self.items)


def refusal(message: str, exit_code: int) -> Outcome:
    """Write what a command says that has come to no plan."""
    return Outcome((), (f"{_REFUSED}{message}",), (), exit_code)


def outcome_of(plan: Plan) -> Outcome:
    """Write a plan that the planner made."""
    return Outcome(
        tuple(_action(_from_action(action)) for action in plan.actions),
        (*(_item("held", item) for item in plan.held), *(_item("aside", item) for item in plan.aside)),
        tuple(_item("note", note) for note in plan.notes),
        4 if plan.held else 0,
    )


def outcome_of_json(printed: Mapping[str, Any], exit_code: int) -> Outcome:
    """Write a plan that the command has printed."""
    return Outcome(
        tuple(_action(action) for action in printed["actions"]),
        (
            *(_json_item(kind, item) for kind in ("held", "aside") for item in printed[kind]),
            *_not_done(printed),
        ),
        tuple(_json_item("note", note) for note in printed["notes"]),
        exit_code,
    )


def _from_action(action: Any) -> dict[str, Any]:
    return {
        "kind": action.kind.value,
        "case": action.case,
        "conversation": action.conversation,
        "unit": action.unit,
        "reason": action.reason.value,
        "target": str(action.target),
        "events": dict(zip(("before", "after"), action.events, strict=True)) if action.events else None,
    }


def _action(action: Mapping[str, Any]) -> str:
    words = [
        "-" if action["case"] is None else str(action["case"]),
        action["kind"],
        _short(action["conversation"]),
        action["unit"],
        action["reason"],
    ]
    change = action["events"]["after"] - action["events"]["before"] if action["events"] else 0
    if change:
        words.append(f"{change:+}")
    if action["unit"] == WHOLE:
        words.append(f"-> {action['target']}")
    elif action["kind"] == Kind.SET_PARENT:
        words.append(f"-> {action['target'].rpartition('/')[0]}")
    return " ".join(words)


def _item(kind: str, item: Item | Note) -> str:
    return f"{kind} {_short(item.conversation)} {item.unit} {item.reason.value}"


def _json_item(kind: str, item: Mapping[str, Any]) -> str:
    return f"{kind} {_short(item['conversation'])} {item['unit']} {item['reason']}"


def _not_done(printed: Mapping[str, Any]) -> list[str]:
    """Say which actions were not carried out after all."""
    actions = {action["id"]: action for action in printed["actions"]}
    results = printed.get("outcome", {}).get("results", ())
    left = [each for each in results if each["result"] != "done"]
    return [_json_item(each["result"], {**actions[each["id"]], "reason": each["reason"]}) for each in left]


def _short(conversation: str | None) -> str:
    return "*" if conversation is None else conversation.removeprefix("jp-c")


def read_plan_line(line: str) -> str:
    """Check one expected line, and bring it into the form that is compared."""
    text = re.sub(r"\s+#.*", "", line).strip()
    words = text.split()
    if text == "(nothing)" or text.startswith(_REFUSED) or re.fullmatch(r"exit \d+", text):
        return text
    if words[0] in _LATER and len(words) == 4:
        return " ".join(words)
    if len(words) < 5 or words[1] not in _KINDS:
        raise ScenarioError(
            f"found {text!r}, expected CASE KIND ID UNIT REASON, {'|'.join(_LATER)} ID UNIT REASON, "
            "refused MESSAGE, exit N or (nothing)"
        )
    return " ".join(words)


def aligned_plan(lines: Iterable[str]) -> list[str]:
    """Write expected lines in columns, as `Outcome.lines` does."""
    checked = [read_plan_line(line) for line in lines]
    others = (*_LATER, "refused", "exit", "(nothing)")
    actions = [line for line in checked if line.partition(" ")[0] not in others]
    return [*_aligned(actions), *(line for line in checked if line not in actions)]


def _aligned(actions: Iterable[str]) -> list[str]:
    rows = [line.split(" ", 5) for line in actions]
    widths = [max(len(row[column]) for row in rows) for column in range(5)] if rows else []
    return [
        " ".join([row[0].rjust(widths[0])] + [row[c].ljust(widths[c]) for c in range(1, 5)] + row[5:]).rstrip()
        for row in rows
    ]
