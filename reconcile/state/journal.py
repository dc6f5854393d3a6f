"""The journal: the planned steps of each run and their results, written ahead of each change."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconcile.model.baseline import (
    AsideKind,
    AsideRecord,
    BaselineEntry,
    ConversationRecord,
    DecidedUnit,
    Intent,
    IntentKind,
    PendingRequest,
    Verb,
)
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, WHOLE, Side
from reconcile.state import baseline_table
from reconcile.state.connection import as_json, encoded_rows, select, write_rows
from reconcile.state.schema import LIBRARY, REMOTE, state_errors, transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

ROOTS = "roots"
"""A key of a step's record: after the step, the conversation has no parent any more."""
_ROOTED = """INSERT INTO parent SELECT conversation, NULL FROM step
    WHERE run = ? AND action = ?
    ON CONFLICT DO UPDATE SET parent = NULL"""
_ROOTING = "SELECT action FROM step WHERE run = ? AND instr(record, ?) AND json_extract(record, ?)"
_STAMP = "%Y%m%d-%H%M%S"
_RUNS = "SELECT id, checkout, command, started_ns, finished_ns, exit_code, summary, undoes FROM run"


INTERRUPTED = "interrupted"
"""The beginning of the message of a step that was not done because its run was killed."""


class StepState(StrEnum):
    """The state of a step. A run that was killed leaves steps that are `PLANNED` or `BEGUN`."""

    PLANNED = "planned"
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Step(Struct, frozen=True):
    """One action of a run. ``record`` is the action as JSON."""

    action: str
    conversation: str
    unit: str
    kind: str
    record: str
    state: StepState = StepState.PLANNED
    message: str | None = None
    at_ns: int = 0


class Run(Struct, frozen=True):
    """One run. ``finished_ns`` is None if it still runs or was killed; ``summary`` is that of its plan, as JSON.

    ``undoes`` is the run that it has undone.
    """

    id: str
    checkout: int | None
    command: str
    started_ns: int
    finished_ns: int | None
    exit_code: int | None
    summary: str
    undoes: str | None = None


class IntentChange(Struct, frozen=True):
    """A change of an intent by a run; None means no intent."""

    conversation: str
    before: Intent | None
    after: Intent | None


class Mark(Struct, frozen=True):
    """A moment in the journal: the newest run, and the open runs of the library."""

    newest: str
    open: tuple[str, ...]


class Journal:
    """The runs of one store. Every method is one transaction at most, durable when the method returns.

    All methods raise `StateError`. Times are in ns since the epoch; the caller reads the clock.
    """

    __slots__ = ("_connection", "_path", "_rooting")

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._rooting: dict[str, frozenset[str]] = {}
        """For runs under way, the actions that leave a conversation without a parent."""

    def begin_run(
        self, checkout: int | None, command: str, now_ns: int, *, summary: str = "{}", undoes: str | None = None
    ) -> str:
        """Open a run and return its id, such as ``20261121-233012-00``: the time in UTC and a number in that second.

        Ids ascend in the order of the runs, even if the clock was set back.
        """
        with transaction(self._connection, self._path):
            (newest,) = self._connection.execute("SELECT max(id) FROM run").fetchone()
            run = _next_id(newest, now_ns)
            row = (run, checkout, command, now_ns, None, None, summary, undoes)
            self._connection.executemany("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)", encoded_rows([row]))
        return run

    def add_records(self, run: str, before: Mapping[str, ConversationRecord]) -> None:
        """Record the baseline of the conversations that a run concerns, before the run changes it."""
        with transaction(self._connection, self._path):
            write_rows(
                self._connection,
                "INSERT INTO remembered VALUES (?, ?, ?)",
                ((run, key, as_json(remembered)) for key, remembered in before.items()),
            )

    def records_of(self, run: str) -> dict[str, ConversationRecord]:
        """Return the baseline of a run's conversations before the run."""
        sql = "SELECT conversation, content FROM remembered WHERE run = ?"
        with state_errors(self._path):
            rows = select(self._connection, sql, (run,))
        return {conversation: _record_from_json(content) for conversation, content in rows}

    def untouched(self, run: str) -> set[str]:
        """Return the conversations for which a run has planned steps and done none."""
        sql = "SELECT conversation FROM step WHERE run = ? GROUP BY conversation HAVING max(state = 'done') = 0"
        with state_errors(self._path):
            rows = select(self._connection, sql, (run,))
        return {conversation for (conversation,) in rows}

    def without_step(self, run: str) -> set[str]:
        """Return the conversations that a run concerns, and for which no step is done; none if it is an undo."""
        sql = """SELECT conversation FROM remembered JOIN run ON id = run WHERE run = ? AND undoes IS NULL
            EXCEPT SELECT conversation FROM step WHERE run = ? AND state = 'done'"""
        with state_errors(self._path):
            rows = select(self._connection, sql, (run, run))
        return {conversation for (conversation,) in rows}

    def unmade_forks(self, run: str) -> set[str]:
        """Return the forks that a run has planned and not made."""
        sql = "SELECT conversation FROM step WHERE run = ? AND kind = ? AND state <> ?"
        with state_errors(self._path):
            rows = select(self._connection, sql, (run, Kind.FORK.value, StepState.DONE.value))
        return {conversation for (conversation,) in rows}

    def drop_records(self, run: str, conversations: Iterable[str]) -> None:
        """Remove the recorded baseline of conversations that a run has not changed, on disk or in the state."""
        rows = encoded_rows((run, conversation) for conversation in conversations)
        if rows:
            with transaction(self._connection, self._path):
                sql = "DELETE FROM remembered WHERE run = ? AND conversation = ?"
                self._connection.executemany(sql, rows)

    def concerned_since(self, run: str = "") -> dict[str, tuple[str, ...]]:
        """Return, by conversation, the runs that concerned it, oldest first: all, or those after one run."""
        sql = "SELECT conversation, run FROM remembered WHERE run > ? ORDER BY run"
        runs: dict[str, tuple[str, ...]] = {}
        with state_errors(self._path):
            for conversation, later in select(self._connection, sql, (run,)):
                runs[conversation] = (*runs.get(conversation, ()), later)
        return runs

    def decided_since(self, now_ns: int) -> frozenset[str]:
        """Return the conversations whose intents were changed by a run that began after this time."""
        sql = """SELECT conversation FROM intent_change JOIN run ON run.id = run WHERE started_ns > ?
            UNION SELECT conversation FROM remembered JOIN run ON run.id = run
            WHERE started_ns > ? AND undoes IS NOT NULL"""
        with state_errors(self._path):
            return frozenset(row[0] for row in select(self._connection, sql, (now_ns, now_ns)))

    def record_intents(
        self,
        run: str,
        checkout: int,
        update: baseline_table.BaselineUpdate,
        restored: Mapping[str, ConversationRecord] | None = None,
    ) -> None:
        """Write the changes of the baseline that precede a plan's actions, and record the old intents for undo.

        ``restored`` are baselines that are written back first.
        """
        if update.empty and not restored:
            return
        with transaction(self._connection, self._path):
            baseline_table.restore(self._connection, checkout, restored or {})
            if update.intents:
                before = baseline_table.load_intents(self._connection, checkout, update.intents)
                (last,) = self._connection.execute(
                    "SELECT coalesce(max(seq), 0) FROM intent_change WHERE run = ?", (run,)
                ).fetchone()
                changed = [(key, before.get(key), now) for key, now in update.intents.items() if before.get(key) != now]
                self._connection.executemany(
                    "INSERT INTO intent_change VALUES (?, ?, ?, ?, ?)",
                    encoded_rows(
                        (run, seq, key, _intent_to_json(old), _intent_to_json(new))
                        for seq, (key, old, new) in enumerate(changed, last + 1)
                    ),
                )
            baseline_table.save(self._connection, checkout, update)

    def plan_steps(self, run: str, steps: Iterable[Step], now_ns: int) -> None:
        """Record planned steps, in order, after those that the run has planned before."""
        self._rooting.pop(run, None)
        with transaction(self._connection, self._path):
            (last,) = self._connection.execute(
                "SELECT coalesce(max(seq), 0) FROM step WHERE run = ?", (run,)
            ).fetchone()
            write_rows(
                self._connection,
                "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, 'planned', NULL, ?)",
                (
                    (run, seq, step.action, step.conversation, step.unit, step.kind, step.record, now_ns)
                    for seq, step in enumerate(steps, last + 1)
                ),
            )

    def step_begun(self, run: str, actions: Iterable[str], now_ns: int) -> None:
        """Record that these actions are about to change files."""
        self._mark(run, StepState.BEGUN, ((action, None) for action in actions), now_ns)

    def step_done(self, run: str, actions: Iterable[str], now_ns: int) -> None:
        """Record that these actions are done and flushed; those with the key `ROOTS` remove the parent."""
        self._mark(run, StepState.DONE, ((action, None) for action in actions), now_ns)

    def step_failed(self, run: str, messages: Mapping[str, str], now_ns: int) -> None:
        """Record that these actions failed, each with a message for the user."""
        self._mark(run, StepState.FAILED, messages.items(), now_ns)

    def step_skipped(self, run: str, messages: Mapping[str, str], now_ns: int) -> None:
        """Record that these actions were skipped, each with the reason."""
        self._mark(run, StepState.SKIPPED, messages.items(), now_ns)

    def finish_run(self, run: str, exit_code: int, now_ns: int) -> None:
        """Record the end of a run."""
        self._rooting.pop(run, None)
        with transaction(self._connection, self._path):
            self._connection.execute(
                "UPDATE run SET finished_ns = ?, exit_code = ? WHERE id = ?", (now_ns, exit_code, run)
            )

    def open_runs(self) -> tuple[Run, ...]:
        """Return the runs that are not finished, oldest first. For the holder of the run lock, they were killed."""
        return self._runs(f"{_RUNS} WHERE finished_ns IS NULL ORDER BY id")

    def is_open(self, run: str) -> bool:
        """Tell whether a run is not finished."""
        with state_errors(self._path):
            return bool(select(self._connection, "SELECT 1 FROM run WHERE id = ? AND finished_ns IS NULL", (run,)))

    def mark(self) -> Mark:
        """Return the present moment of the journal."""
        sql = "SELECT id FROM run WHERE finished_ns IS NULL AND command = ? ORDER BY id"
        with state_errors(self._path):
            (newest,) = self._connection.execute("SELECT coalesce(max(id), '') FROM run").fetchone()
            return Mark(newest, tuple(row[0] for row in select(self._connection, sql, (LIBRARY,))))

    def written_since(self, mark: Mark) -> frozenset[str]:
        """Return the conversations of the library's runs that were open at that moment or began later."""
        places = ", ".join("?" * len(mark.open))
        sql = f"""SELECT DISTINCT conversation FROM run JOIN step ON step.run = run.id
            WHERE run.id > ? AND command = ? UNION SELECT conversation FROM step WHERE run IN ({places})"""  # noqa: S608
        with state_errors(self._path):
            return frozenset(row[0] for row in select(self._connection, sql, (mark.newest, LIBRARY, *mark.open)))

    def runs(self) -> tuple[Run, ...]:
        """Return all runs, newest first."""
        return self._runs(f"{_RUNS} ORDER BY id DESC")

    def steps(self, run: str) -> tuple[Step, ...]:
        """Return the steps of a run, in order."""
        sql = """SELECT action, conversation, unit, kind, record, state, message, at_ns
            FROM step WHERE run = ? ORDER BY seq"""
        with state_errors(self._path):
            rows = select(self._connection, sql, (run,))
        return tuple(Step(row[0], row[1], row[2], row[3], row[4], StepState(row[5]), row[6], row[7]) for row in rows)

    def forks(self) -> dict[int, set[str]]:
        """Return the forks that the runs of each known checkout made."""
        sql = """SELECT checkout, conversation FROM step JOIN run ON run.id = step.run
            WHERE kind = ? AND state = ? AND checkout IS NOT NULL"""
        made: dict[int, set[str]] = {}
        with state_errors(self._path):
            for checkout, conversation in select(self._connection, sql, (Kind.FORK.value, StepState.DONE.value)):
                made.setdefault(checkout, set()).add(conversation)
        return made

    def possible_sources(self) -> set[tuple[str, str]]:
        """Return the forks whose step names no source, each with what had diverged in the same run."""
        sql = """SELECT fork.conversation, other.conversation FROM step AS fork JOIN step AS other USING (run)
            WHERE fork.kind = ? AND fork.state = ? AND json_extract(fork.record, '$.source') IS NULL
            AND other.conversation <> fork.conversation AND json_extract(other.record, '$.reason') = ?"""
        values = Kind.FORK.value, StepState.DONE.value, Reason.DIVERGED.value
        with state_errors(self._path):
            return {(fork, other) for fork, other in select(self._connection, sql, values)}

    def removed_by(self, conversation: str, checkout: int) -> str | None:
        """Return the newest run of a checkout that removed a conversation from its workspace; None if there is none."""
        sql = """SELECT max(run) FROM step JOIN run ON run.id = step.run WHERE conversation = ? AND checkout = ?
            AND kind IN (?, ?) AND state = ? AND unit = ? AND json_extract(record, '$.target') LIKE 'workspace:%'"""
        key = (conversation, checkout, Kind.REMOVE.value, Kind.REMOVE_STALE.value, StepState.DONE.value, WHOLE)
        with state_errors(self._path):
            ((run,),) = select(self._connection, sql, key)
        return None if run is None else str(run)

    def published_files(self, conversations: Iterable[str]) -> dict[tuple[str, str], set[str]]:
        """Return the digests of the files that runs copied to or from a workspace, by conversation and name.

        Without the tree of a remote, which has all of the store.
        """
        sql = """SELECT conversation, unit, record FROM step JOIN run ON run.id = step.run
            JOIN checkout ON checkout.id = run.checkout WHERE state = ? AND NOT (checkout.identity GLOB ?)
            AND (unit = ? OR unit GLOB ?) AND conversation IN (SELECT value FROM json_each(?))"""
        of = (StepState.DONE.value, f"{REMOTE}*", WHOLE, f"{EXTRA}*", json.dumps(sorted(conversations)))
        found: dict[tuple[str, str], set[str]] = {}
        with state_errors(self._path):
            rows = select(self._connection, sql, of)
        for conversation, unit, text in rows:
            record = json.loads(text)
            for write in record["writes"]:
                if any(str(write[end]).startswith(f"{Side.WORKSPACE.value}:") for end in ("source", "target")):
                    inside = write["target"].removeprefix(f"{record['target']}/")
                    name = inside if unit == WHOLE else unit.removeprefix(EXTRA)
                    found.setdefault((conversation, name), set()).add(write["digest"])
        return found

    def intent_changes(self, run: str) -> tuple[IntentChange, ...]:
        """Return the intents that a run changed, in order."""
        sql = "SELECT conversation, before, after FROM intent_change WHERE run = ? ORDER BY seq"
        with state_errors(self._path):
            rows = select(self._connection, sql, (run,))
        return tuple(IntentChange(row[0], _intent_from_json(row[1]), _intent_from_json(row[2])) for row in rows)

    def noting_runs(self) -> frozenset[str]:
        """Return the runs without a step that only concluded intents from the workspace."""
        sql = """SELECT run, after FROM intent_change
            WHERE NOT EXISTS (SELECT 1 FROM step WHERE step.run = intent_change.run)"""
        with state_errors(self._path):
            changes = [(run, _intent_from_json(after)) for run, after in select(self._connection, sql, ())]
        deciding = {run for run, after in changes if after is None or not after.is_noticed}
        return frozenset(run for run, _ in changes) - deciding

    def skipped_runs(self) -> frozenset[str]:
        """Return the finished runs that have changed nothing: all of their steps were skipped."""
        sql = """SELECT id FROM run WHERE finished_ns IS NOT NULL AND undoes IS NULL
            AND EXISTS (SELECT 1 FROM step WHERE run = id)
            AND NOT EXISTS (SELECT 1 FROM step WHERE run = id AND state <> ?)
            AND NOT EXISTS (SELECT 1 FROM intent_change WHERE run = id)"""
        with state_errors(self._path):
            return frozenset(run for (run,) in select(self._connection, sql, (StepState.SKIPPED.value,)))

    def _runs(self, sql: str) -> tuple[Run, ...]:
        with state_errors(self._path):
            return tuple(Run(*row) for row in select(self._connection, sql))

    def _mark(self, run: str, state: StepState, marks: Iterable[tuple[str, str | None]], now_ns: int) -> None:
        rows = [(state.value, message, now_ns, run, action) for action, message in marks]
        if rows:
            with transaction(self._connection, self._path):
                sql = "UPDATE step SET state = ?, message = ?, at_ns = ? WHERE run = ? AND action = ?"
                write_rows(self._connection, sql, rows)
                if state is StepState.DONE:
                    rooted = encoded_rows((run, row[4]) for row in rows if row[4] in self._actions_rooting(run))
                    if rooted:
                        self._connection.executemany(_ROOTED, rooted)
                        sql = "SELECT DISTINCT conversation FROM step WHERE run = ?"
                        baseline_table.note_changed(
                            self._connection, (key for (key,) in select(self._connection, sql, (run,)))
                        )

    def _actions_rooting(self, run: str) -> frozenset[str]:
        """Return the actions of a run with the key `ROOTS`; they are read once, as there are few."""
        if run not in self._rooting:
            rows = select(self._connection, _ROOTING, (run, f'"{ROOTS}":', f"$.{ROOTS}"))
            self._rooting[run] = frozenset(action for (action,) in rows)
        return self._rooting[run]


def _next_id(newest: str | None, now_ns: int) -> str:
    """Return the id of a run at this time, or the next one after ``newest`` if the time isn't later."""
    first = f"{datetime.fromtimestamp(now_ns // 10**9, UTC).strftime(_STAMP)}-00"
    if newest is None or newest < first:
        return first
    stamp, number = newest[:-3], int(newest[-2:], 16)
    if number < 0xFF:  # two hexadecimal digits
        return f"{stamp}-{number + 1:02x}"
    second = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC) + timedelta(seconds=1)
    return f"{second.strftime(_STAMP)}-00"


def _intent_to_json(intent: Intent | None) -> str | None:
    return None if intent is None else as_json(intent)


def _record_from_json(text: str) -> ConversationRecord:
    fields = json.loads(text)
    agreed, intent = fields["agreed"], fields["intent"]
    return ConversationRecord(
        agreed=None if agreed is None else BaselineEntry(**agreed),
        intent=None if intent is None else _intent_of(intent),
        parent=fields["parent"],
        parent_known=fields["parent_known"],
        tombstone=frozenset(fields["tombstone"]),
        asides={
            unit: AsideRecord(AsideKind(aside["kind"]), aside["store"], aside["workspace"])
            for unit, aside in fields["asides"].items()
        },
        dropped={Verb(verb): _request_of(request) for verb, request in fields.get("dropped", {}).items()},
    )


def _request_of(fields: dict[str, Any]) -> PendingRequest:
    decided = tuple(DecidedUnit(each["unit"], tuple(each["seen"]), each["take"]) for each in fields.pop("decided"))
    return PendingRequest(along=tuple(fields.pop("along")), decided=decided, **fields)


def _intent_from_json(text: str | None) -> Intent | None:
    return None if text is None else _intent_of(json.loads(text))


def _intent_of(fields: dict[str, Any]) -> Intent:
    return Intent(IntentKind(fields.pop("kind")), **fields)
