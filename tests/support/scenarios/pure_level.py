"""Where scenarios are played: the pure level, which has no file system at all, and what every level can do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from unittest import mock

from msgspec.structs import replace

from reconcile.apply.recorder import planned_update
from reconcile.formats import get_format
from reconcile.fs.hashing import digest
from reconcile.model.baseline import Verb, WorldState
from reconcile.model.options import Prefer
from reconcile.model.plan import Kind
from reconcile.model.policy import ForkRequest, ProjectRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Side
from reconcile.model.units import Rules
from reconcile.planning import baseline_update as updating
from reconcile.planning import decide as deciding
from reconcile.planning.baseline_update import Changes, brought, update_baseline
from reconcile.planning.context import RefusedError
from reconcile.planning.decide import decide
from reconcile.planning.filters import withheld, without_git
from reconcile.planning.incremental import status
from reconcile.planning.incremental.status import dirty_conversations
from reconcile.planning.planner import make_plan, needs_events, plan_by_rules
from reconcile.planning.requests.fork import plan_branch
from reconcile.planning.requests.recover import absent, coming, default_choice, offers, with_records
from reconcile.planning.requests.undo import plan_undo
from reconcile.planning.rules.guards import has_lost_all
from reconcile.planning.simulate import listing_of
from tests.support.scenarios.commands import outcome_of, refusal
from tests.support.scenarios.laws import Carried, check_laws, check_none_lost, numbers_in, removed_by_hand, whole_in
from tests.support.scenarios.line_reader import DAY_NS, HOUR_NS
from tests.support.scenarios.memories import Memories
from tests.support.scenarios.past_runs import PastRuns
from tests.support.scenarios.plan_execution import blobs_of, carry_out
from tests.support.scenarios.pure_scan import scan_tree
from tests.support.scenarios.trees import Blob, Entry, Tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.past_run import PastRun
    from reconcile.model.plan import Item, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Snapshot
    from reconcile.planning.context import PlanningContext
    from tests.support.scenarios.commands import Command, Outcome
    from tests.support.scenarios.plan_execution import Trees

FORMAT = get_format("jp")
RULES = Rules(FORMAT, digest)

_MADE = re.compile(r"(?<!\d)\d{10,11}(?!\d)")
_NAMED = re.compile(r"(?<![\w-])(new\d*)(?!\w)")
_GIT = {"merge": "a merge", "rebase": "a rebase", "clean": None}


class Level(Protocol):
    """A level: sides that can be looked at and changed, and the command."""

    def tree(self, side: str) -> Tree | None:
        """Return a side, None where it isn't there."""

    def change(self, side: str, tree: Tree | None, *, another: bool) -> None:
        """Have a side look like this; ``another``: the directory itself is a new one."""

    def run(self, command: Command) -> Outcome: ...

    def verb(self, words: tuple[str, ...]) -> None:
        """Do what a `Verb` says."""


@dataclass(slots=True)
class Names:
    """Ids that a run has made up, by the names that scenarios have for them: ``new``, ``new2``, ..."""

    known: dict[str, str] = field(default_factory=dict)
    """By number. Those that the scenario itself has are called by it."""

    @classmethod
    def beside(cls, source: Iterable[str]) -> Names:
        """Return names for the ids that aren't in the scenario's text."""
        return cls({number: number for line in source for number in _MADE.findall(line)})

    def learn(self, paths: Iterable[str]) -> None:
        """Name the ids in these paths by what else the paths say: a repeated run makes its forks in another order."""
        for path in sorted(paths, key=lambda path: (_MADE.sub("", path), path)):
            self.shown(path)

    def shown(self, text: str) -> str:
        return _MADE.sub(lambda match: self._name(match[0]), text)

    def real(self, text: str) -> str:
        numbers = {name: number for number, name in self.known.items()}
        return _NAMED.sub(lambda match: numbers.get(match[0], match[0]), text)

    def tree(self, tree: Tree | None) -> Tree | None:
        """Return a side as if the ids in its names and files were those of the scenario."""
        if tree is None:
            return None
        return {self.shown(path): self._entry(entry) for path, entry in tree.items()}

    def _entry(self, entry: Entry) -> Entry:
        if not isinstance(entry, Blob) or not _MADE.search(entry.content.decode(errors="replace")):
            return entry
        return replace(entry, content=self.shown(entry.content.decode()).encode())

    def _name(self, number: str) -> str:
        count = sum(name.startswith("new") for name in self.known.values()) + 1
        return self.known.setdefault(number, f"new{count}" if count > 1 else "new")


def _is_limited(policy: Policy) -> bool:
    return bool(policy.only or policy.below or policy.request)


def _open(plan: Plan, policy: Policy) -> tuple[Item, ...]:
    """Return what a plan of everything leaves open: what is held, and what an undo has set aside until its redo."""
    undone = (item for item in plan.aside if item.reason is Reason.UNDONE)
    return (*plan.held, *(undone if isinstance(policy.request, UndoRequest) else ()))


def _due(plan: Plan) -> frozenset[tuple[str, ...]]:
    """Return what a plan does, and which intents it remembers, but for how and why."""
    steps = {(action.conversation, action.kind.value, action.unit, action.target.side) for action in plan.actions}
    return frozenset(steps | {(conversation, "is remembered") for conversation, _ in plan.intents})


def _ahead(plan: Plan, look: WorldState, run: str) -> Changes:
    """Return what a plan has remembered before its first step."""
    ahead = planned_update(plan, look, run)
    return Changes(
        agreed=dict(ahead.agreed),
        intents={key: intent and replace(intent, run=None) for key, intent in ahead.intents.items()},
        asides=ahead.asides,
        tombstones={key: None if each is None else tuple(each) for key, each in ahead.tombstones.items()},
        parents=dict(ahead.parents),
        store_identity=ahead.store_identity,
        store_lost=ahead.store_lost,
        waiting=ahead.waiting,
    )


@dataclass(slots=True)
class PureLevel:
    """Trees in memory; planned with the real planner, carried out by `simulate`, remembered by `update_baseline`."""

    trees: dict[str, Tree | None] = field(default_factory=lambda: {"store": {}, "workspace": {}})
    memories: Memories = field(default_factory=Memories)
    config: dict[str, str] = field(default_factory=dict)
    git_busy: str | None = None
    identities: dict[str, int] = field(default_factory=dict)
    now_ns: int = DAY_NS
    past: PastRuns = field(default_factory=PastRuns)
    vault: dict[str, bytes] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    """The numbers of conversations that somebody has removed from the store, which was not lost."""
    stored: set[str] = field(default_factory=set)
    """The numbers of those that the store had whole when it was last looked at: its tree may be changed in place."""
    locked: set[str] = field(default_factory=set)
    wiped: set[str] = field(default_factory=set)
    """Workspaces whose ``.jp`` isn't there, where nothing but `recover` does anything."""

    def tree(self, side: str) -> Tree | None:
        return self.trees.get(side)

    def change(self, side: str, tree: Tree | None, *, another: bool) -> None:
        if side == "store":
            known = {conversation.removeprefix("jp-c") for conversation, _ in self.memories.history}
            self.removed |= set() if another else removed_by_hand(self.stored, numbers_in([tree]), known)
        self.trees[side] = tree
        if side == "store":
            self._know_stored()
        if tree is not None:
            self.wiped.discard(side)
        if another or tree is None:
            self.identities[side] = self.identities.get(side, 0) + 1

    def _check_none_lost(self, policy: Policy, baseline: Baseline, trees: Mapping[str, Tree | None]) -> None:
        if isinstance(policy.request, UndoRequest):  # a person takes back that the store got it
            self.removed |= numbers_in([self.trees["store"]]) - numbers_in([trees["store"]])
        elif policy.request is None:
            asked = {each for each, verb in baseline.waiting if verb is Verb.REMOVE}
            buried = {each.removeprefix("jp-c") for each in baseline.tombstones.keys() | asked}
            check_none_lost(self.trees.values(), trees.values(), self.removed | buried)

    def _know_stored(self) -> None:
        """Know what the store has whole; one that is removed file by file is removed when the last one goes."""
        tree = self.trees["store"]
        self.stored = whole_in(tree) | (self.stored & numbers_in([tree]))
        self.removed -= numbers_in([tree])

    def verb(self, words: tuple[str, ...]) -> None:
        match words:
            case ("forget", "state"):
                self.memories.forget()
                self.past.runs.clear()
            case ("wipe", workspace):
                self.change(workspace, None, another=True)
                self.memories.wipe(workspace)
                self.wiped.add(workspace)
            case ("config", key, value):
                self.config[key] = value
            case ("git", what):
                self.git_busy = _GIT[what]
            case ("clock", hours):
                self.now_ns += int(hours) * HOUR_NS
            case ("lock", number, *_):
                self.locked.add(f"jp-c{number}")
            case ("unlock", number, *_):
                self.locked.discard(f"jp-c{number}")
            case ("killed", *_):
                pass  # a plan that isn't carried out here can't be interrupted either
            case _:
                message = f"the pure level can't {' '.join(words)}"
                raise AssertionError(message)

    def run(self, command: Command) -> Outcome:
        self.now_ns += 10**9
        if command.workspace in self.wiped and not command.recovers:
            self.past.count += 1
            return refusal("project: the .jp directory of this checkout is missing", 2)
        own = baseline = self.memories.of(command.workspace)
        # Git is in the middle of something in the first checkout alone.
        policy = command.under(self.config, self.git_busy if command.workspace == "workspace" else None)
        store, workspace = self._scan(command)
        if command.recovers:
            self.wiped -= set() if policy.git_busy else {command.workspace}  # it makes the ``.jp`` that is missing
            baseline, policy = self._recovering(command, policy, WorldState(store, workspace, baseline))
        if isinstance(policy.request, UndoRequest):
            request = UndoRequest(self.past.resolved(command.workspace, policy.request.run))
            policy = replace(policy, request=request)
            plan = self._undo(self.past.find(request.run), WorldState(store, workspace, baseline), policy)
        else:
            try:
                plan = self._plan(store, workspace, baseline, policy)
            except RefusedError as error:
                self.past.count += 1
                return refusal(str(error), 4)
        # Where there is nothing to put back, not even the directory, `recover` ends with what it has to say.
        put_off = bool(policy.git_busy and plan.intents)
        if command.dry_run or (command.recovers and not plan.actions and workspace.exists and not put_off):
            self.past.count += 1
            return outcome_of(plan)
        plain = self._plain(policy)
        rest = make_plan(store, workspace, baseline, plain, RULES, self.now_ns) if _is_limited(policy) else None
        before: Trees = {Side.STORE: self.trees["store"], Side.WORKSPACE: self.trees.get(command.workspace)}
        self.vault |= {digest(content): content for content in blobs_of(before).values()}
        busy, undone = self._undone(plan)
        carried = replace(plan, actions=tuple(action for action in plan.actions if action.id not in undone))
        self.past.add(command.workspace, carried, own, listing_of(store, workspace))
        after = carry_out(carried, before, listing_of(store, workspace), self.vault)
        check_laws(Carried(carried, store, workspace, baseline, before, after))
        trees = {**self.trees, "store": after[Side.STORE], command.workspace: after[Side.WORKSPACE]}
        self._check_none_lost(policy, baseline, trees)
        self.trees = trees
        self._know_stored()
        self.memories.put_back(command.workspace, dict(plan.remembered))
        run = str(self.now_ns)
        plan = replace(plan, store_lost=not plan.quiet and has_lost_all(store, baseline, FORMAT))
        ahead = _ahead(plan, WorldState(store, workspace, own), f"run{self.past.count}")
        self.memories.remember(command.workspace, ahead, run, brought(plan))
        baseline = self.memories.of(command.workspace)
        found = self._scan(command)
        changes = self._learned(*found, baseline, plan, undone)
        self.memories.remember(command.workspace, changes, run)
        dirty = dirty_conversations(*found, self.memories.of(command.workspace), RULES)
        assert dirty.isdisjoint(changes.known_clean), f"taken for clean, and yet dirty: {dirty & changes.known_clean}"
        # Nothing can be brought to rest beforehand in a workspace that is gone.
        partly = policy.only or policy.below or (policy.request and (plan.held or not workspace.exists))
        held = {item.conversation for item in (*(_open(rest, policy) if rest else ()), *(plan.held if partly else ()))}
        # What git is in the middle of is done in two steps: the rest may follow from what was done before its end.
        merging = any(item.conversation is None and item.reason is Reason.GIT_BUSY for item in plan.held)
        if None not in held and not undone and not merging:
            self._check_settled(command, plain, _due(rest) if rest else frozenset(), held, plan)
        return outcome_of(plan).skipping([action for action in plan.actions if action.id in undone], busy)

    def _recovering(self, command: Command, policy: Policy, look: WorldState) -> tuple[Baseline, Policy]:
        """Return what is remembered where `recover` makes its plan, and what it asks for when nobody answers."""
        records = self.memories.records(command.source or command.workspace)
        known = with_records(look.baseline, records)
        context = decide(look.store, look.workspace, known, replace(policy, request=None), RULES, self.now_ns)
        everything = isinstance(policy.request, ProjectRequest) and policy.request.everything
        chosen = (
            tuple(coming(context, absent(context))) if everything else default_choice(context, offers(context, records))
        )
        request = ProjectRequest(chosen, records=tuple(range(len(records))))
        return with_records(look.baseline, records, chosen), replace(policy, request=request)

    def _undo(self, past: PastRun, look: WorldState, policy: Policy) -> Plan:
        return plan_undo(past, look, policy, RULES, self.now_ns)

    def _plan(self, store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy) -> Plan:
        if isinstance(policy.request, ForkRequest):
            context = decide(store, workspace, baseline, policy, RULES, self.now_ns)
            return without_git(
                plan_branch(context, policy.request, self._stored(context, policy.request.id)), policy.git_busy
            )
        # As of a large world, of which most is told at a glance.
        with mock.patch.object(status, "MOST", len(store.copies) + len(workspace.copies) + 1):
            plan = make_plan(store, workspace, baseline, policy, RULES, self.now_ns)
        again = plan_by_rules(store, workspace, baseline, policy, RULES, self.now_ns)
        assert plan.quiet or plan == again, f"the same input gives another plan: {plan}\nnot {again}"
        with mock.patch.object(deciding, "is_unchanged", return_value=False):
            slowly = plan_by_rules(store, workspace, baseline, policy, RULES, self.now_ns)
        assert again == slowly, f"what is unchanged has something to do: {slowly}\nnot {again}"
        said = (again.actions, again.held, again.aside, again.notes, again.concerned)
        assert not plan.quiet or not any(said), f"taken for quiet, but there is something to say: {said}"
        return plan

    def _undone(self, plan: Plan) -> tuple[set[str], set[str]]:
        """Return the actions for which somebody else holds a lock, and with them all that can't be done then."""
        held = {action.id for action in plan.actions if not self.locked.isdisjoint(action.touches)}
        groups = {action.together for action in plan.actions if action.id in held} - {None}
        busy = held | {action.id for action in plan.actions if action.together in groups}
        return busy, withheld(plan.actions, busy)

    def _learned(
        self, store: Snapshot, workspace: Snapshot, baseline: Baseline, plan: Plan, undone: Collection[str]
    ) -> Changes:
        changes = update_baseline(store, workspace, baseline, plan, RULES, undone)
        with mock.patch.object(updating, "adoption", return_value=None):
            slowly = update_baseline(store, workspace, baseline, plan, RULES, undone)
        assert replace(changes, known_clean=set()) == slowly, (
            f"what is alike at a glance is remembered otherwise: {changes}\nnot {slowly}"
        )
        assert not plan.quiet or changes == Changes(), f"nothing was to do, and yet something is remembered: {changes}"
        return changes

    def _stored(self, context: PlanningContext, conversation: str) -> dict[str, bytes]:
        """Return a conversation's files in the store."""
        copy, tree = context.views[conversation].store.main, self.trees["store"] or {}
        files = {file.name: tree[f"{copy.path}/{file.name}"] for file in copy.files} if copy else {}
        return {name: entry.content for name, entry in files.items() if isinstance(entry, Blob)}

    @staticmethod
    def _plain(policy: Policy) -> Policy:
        """Return the policy of a run over everything, in the same surroundings."""
        everything: frozenset[str] = frozenset()
        return replace(
            policy,
            prefer=Prefer.NEWEST,
            accept_bulk=False,
            only=everything,
            below=everything,
            decisions={},
            request=None,
        )

    def _check_settled(
        self,
        command: Command,
        plain: Policy,
        due: frozenset[tuple[str, ...]],
        held: Collection[str | None],
        done: Plan,
    ) -> None:
        """A second run has nothing to do but, after one that was limited to a part, with what was ``due`` before.

        By what a redo has written, a copy that came back since the undo becomes the older one: the next run resets its
        time (docs/design/run.md#rule-53).

        Of what is ``held``, what a limited run was asked for may have become possible by the rest, and what a guard
        held before it by what it did. What is held otherwise stays held without actions, too.
        """
        baseline = self.memories.of(command.workspace)
        plan = make_plan(*self._scan(command), baseline, plain, RULES, self.now_ns)
        open_before = {*held, *(each[0] for each in due)}
        # What is only remembered later of a tree with a cycle, say, changes no file.
        limited = _is_limited(command.policy)
        new = {each for each in _due(plan) - due if each[0] not in open_before and not (limited and len(each) == 2)}
        if "redo" in command.argv:
            new -= {each for each in new for action in done.actions if each[:2] == (action.conversation, Kind.AGE)}
        if new:
            lines = "\n  ".join(outcome_of(plan).lines(()))
            words = ", ".join(sorted(" ".join(each) for each in new))
            raise AssertionError(f"a second run still has something to do:\n  {lines}\nnew: {words}")

    def _scan(self, command: Command) -> tuple[Snapshot, Snapshot]:
        """Look at both sides, with the events that the planner needs."""
        sides = ((Side.STORE, "store"), (Side.WORKSPACE, command.workspace))
        wanted: frozenset[str] = frozenset()
        for _ in range(2):
            store, workspace = (
                scan_tree(self.trees.get(name), side, self._identity(name), FORMAT, wanted) for side, name in sides
            )
            wanted = needs_events(store, workspace, RULES)
            if not wanted:
                break
        return store, workspace

    def _identity(self, side: str) -> str:
        return f"{side}:{self.identities.get(side, 0)}"
