"""Passes: when a part is enough, when everything has to be looked at, and what is done after it could not be."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from reconcile.adapters.locate import locate
from reconcile.engine.engine import MOST, Engine
from reconcile.engine.session import Session
from reconcile.model.baseline import IntentKind
from reconcile.model.options import Prefer
from reconcile.model.plan import Kind
from reconcile.model.policy import LocalRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Side
from tests.support.faults.disturbances import hold
from tests.support.projects.changing_sides import FIRST, LATER, POLICY, Watched, planned, watched
from tests.support.projects.world import append, events, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconcile.apply.executor import Outcome
    from reconcile.engine.engine import Pass
    from reconcile.model.policy import Policy

NAMES = [f"{FIRST + number}-it" for number in range(10)]
ALONE = NAMES[5]
IDS = [f"jp-c{FIRST + number}" for number in range(10)]


@pytest.fixture(params=["as scanned", "released"])
def it(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    made = watched(tmp_path, 10)
    if request.param == "released":  # as a watcher after a full pass
        made.engine.release()
    yield made
    made.engine.close()
    made.engine.session.state.close()


def taken_up(it: Watched, *paths: str, side: Side = Side.STORE) -> Pass:
    """Make a pass over what was named; then nothing is due any more."""
    found = planned(it.engine, POLICY, {side: set(paths)})
    it.engine.apply(found, "watch")
    return found


def kinds(found: Pass) -> list[Kind]:
    return [action.kind for action in found.plan.actions]


def test_the_first_pass_is_about_everything(it: Watched) -> None:
    assert planned(Engine(it.engine.session), POLICY, {}).full


def test_where_nothing_has_changed_a_pass_is_about_nothing(it: Watched) -> None:
    found = taken_up(it, ALONE)
    assert (found.full, found.conversations, found.plan.quiet) == (False, frozenset(), True)


def test_what_was_known_before_is_free_at_once(it: Watched) -> None:
    """A watcher knows everything anew now and then; the collector comes late where there is little of other garbage."""
    before = weakref.ref(it.engine.known)
    gc.disable()
    try:
        it.engine.apply(planned(it.engine, POLICY), "watch")
        assert before() is None
    finally:
        gc.enable()


def test_a_release_frees_the_copies_and_a_pass_builds_those_that_it_needs(it: Watched) -> None:
    time.sleep(0.05)  # a file that was written a moment ago has no row
    it.engine.apply(planned(it.engine, POLICY), "watch")
    known = it.engine.known.sides[Side.STORE]
    before = {path: known.copy(path) for path in known.paths}
    it.engine.release()
    assert not known.loaded_paths()
    assert {path: known.copy(path) for path in known.paths} == before
    it.engine.release()
    append(it.store / ALONE, 1, "b", LATER)
    assert kinds(taken_up(it, ALONE)) == [Kind.PROJECT]
    assert 0 < len(known.loaded_paths()) < len(before)


def test_what_was_done_leaves_nothing_in_memory(it: Watched) -> None:
    """A watcher goes on for weeks: how many values it has doesn't depend on how many changes it has seen."""

    def values_after(changes: range) -> int:
        for number in changes:
            append(it.store / NAMES[number % 10], 1, chr(ord("b") + number), LATER)
            assert kinds(taken_up(it, NAMES[number % 10])) == [Kind.PROJECT]
        gc.collect()
        # Of its cursors sqlite3 has a weak reference each, and forgets them 200 at a time.
        return sum(type(each) is not weakref.ReferenceType for each in gc.get_objects())

    before = values_after(range(20))
    assert values_after(range(20, 50)) < before + 10


def test_own_writes_are_known(it: Watched) -> None:
    append(it.store / ALONE, 1, "b", LATER)
    assert kinds(taken_up(it, ALONE)) == [Kind.PROJECT]
    assert not taken_up(it, ALONE).conversations
    assert not taken_up(it, ALONE, side=Side.WORKSPACE).conversations


def test_a_part_is_about_what_lies_above_and_below(it: Watched) -> None:
    append(it.store / NAMES[1], 1, "b", LATER)
    found = taken_up(it, NAMES[1])
    assert not found.full
    assert found.conversations == {IDS[0], IDS[1]}
    assert {copy.conversation for copy in found.world.store.copies} == {IDS[0], IDS[1]}


def test_a_removal_is_believed_after_a_look_at_everything(it: Watched) -> None:
    shutil.rmtree(it.store / ALONE)
    found = taken_up(it, ALONE)
    assert (found.full, kinds(found)) == (True, [Kind.REMOVE_STALE])
    append(it.store / NAMES[6], 1, "b", LATER)
    assert not taken_up(it, NAMES[6]).full


def foreign(it: Watched) -> None:
    (it.store / ALONE / "link").symlink_to("nowhere")


def another_store(it: Watched) -> None:
    it.store.rename(it.store.with_name("old"))
    shutil.copytree(it.store.with_name("old"), it.store)


def forgotten(it: Watched) -> None:
    with another_session(it) as session:
        session.state.forget_checkout(session.site.number)


@pytest.mark.parametrize("change", [foreign, another_store, forgotten])
def test_what_concerns_a_side_as_a_whole_is_looked_at_as_a_whole(
    it: Watched, change: Callable[[Watched], None]
) -> None:
    append(it.store / ALONE, 1, "b", LATER)
    change(it)
    assert planned(it.engine, POLICY, {Side.STORE: {ALONE}}).full


def test_another_policy_is_about_everything(it: Watched) -> None:
    policy = replace(POLICY, prefer=Prefer.STORE)
    assert planned(it.engine, policy, {}).full
    assert planned(it.engine, replace(POLICY, only=frozenset(IDS[:1])), {}).full


def test_what_was_not_applied_is_looked_at_again(it: Watched) -> None:
    append(it.store / ALONE, 1, "b", LATER)
    assert kinds(planned(it.engine, POLICY, {Side.STORE: {ALONE}})) == [Kind.PROJECT]
    found = taken_up(it)
    assert (found.full, kinds(found)) == (True, [Kind.PROJECT])


def test_too_much_is_looked_at_as_a_whole(it: Watched) -> None:
    assert planned(it.engine, POLICY, {Side.STORE: {f"{number}-x" for number in range(MOST + 1)}}).full


def another_session(it: Watched) -> Session:
    session = it.engine.session
    return Session(it.roots, session.directory)


def test_after_another_process_has_been_at_work_here_everything_is_looked_at(it: Watched) -> None:
    with another_session(it) as session:
        once(session, replace(POLICY, request=LocalRequest((IDS[5],))))
    found = taken_up(it)
    assert (found.full, kinds(found)) == (True, [])
    assert found.world.baseline.intents[IDS[5]].kind is IntentKind.LOCAL
    assert not taken_up(it).full


def test_a_side_that_was_not_there_may_be_by_the_next_look(it: Watched) -> None:
    away = it.workspace.with_name("away")
    it.workspace.rename(away)
    with another_session(it) as session:
        assert not session.scan().workspace.exists
        away.rename(it.workspace)
        assert len(session.scan(touched=()).workspace.copies) == 10


@pytest.fixture
def elsewhere(it: Watched, tmp_path: Path) -> Iterator[Session]:
    """Open another checkout of the same store, with the same in it."""
    project = tmp_path / "elsewhere"
    shutil.copytree(it.workspace.parent, project / ".jp")
    roots = locate("jp", str(project), str(it.store.parent), str(project), os.environ, sys.platform)
    with Session(roots, it.engine.session.directory) as session:
        once(session, POLICY)
        taken_up(it)
        yield session


def once(session: Session, policy: Policy) -> None:
    engine = Engine(session)
    engine.apply(planned(engine, policy), "reconcile")


def test_what_was_done_in_another_checkout_concerns_its_conversations(it: Watched, elsewhere: Session) -> None:
    append(Path(elsewhere.roots.workspace_conversations) / ALONE, 1, "b", LATER)
    once(elsewhere, POLICY)
    found = taken_up(it)
    assert (found.full, set(found.conversations), kinds(found)) == (False, {IDS[5]}, list[Kind]())
    assert not taken_up(it, NAMES[6]).conversations
    found = taken_up(it, ALONE)
    assert (found.full, kinds(found)) == (False, [Kind.PROJECT])


def test_what_became_local_in_another_checkout_is_local_here(it: Watched, elsewhere: Session) -> None:
    once(elsewhere, replace(POLICY, request=LocalRequest((IDS[5],))))
    found = taken_up(it)
    assert (found.full, set(found.conversations), kinds(found)) == (False, {IDS[5]}, list[Kind]())
    assert [item.reason for item in found.plan.aside] == [Reason.LOCAL_PRESENT]


def test_what_is_busy_is_due(it: Watched) -> None:
    append(it.store / ALONE, 1, "b", LATER)
    lock = it.store.with_name("locks") / f"{IDS[5]}.lock"
    with hold(lock):
        for _ in range(2):
            found = planned(it.engine, POLICY, {Side.STORE: {ALONE}})
            outcome = it.engine.apply(found, "watch")
            assert [deed.reason for deed in outcome.results.values()] == [Reason.BUSY]
            assert not found.full
    assert kinds(taken_up(it)) == [Kind.PROJECT]
    assert not taken_up(it).conversations


def test_what_is_busy_after_a_look_at_everything_is_due(it: Watched) -> None:
    append(it.store / ALONE, 1, "b", LATER)
    with hold(it.store.with_name("locks") / f"{IDS[5]}.lock"):
        it.engine.apply(planned(it.engine, POLICY), "watch")
    found = taken_up(it)
    assert (found.full, kinds(found)) == (False, [Kind.PROJECT])


def test_what_is_being_written_is_left_out_also_of_a_look_at_everything(it: Watched) -> None:
    path = it.store / ALONE / "events.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    append(it.store / NAMES[6], 1, "b", LATER)
    found = planned(it.engine, POLICY, moving=frozenset({IDS[5]}))
    it.engine.apply(found, "watch")
    assert (kinds(found), found.plan.held) == ([Kind.PROJECT], ())
    assert [found.is_about(each) for each in (IDS[5], IDS[6], None)] == [False, True, True]
    path.write_bytes(whole)
    append(it.store / ALONE, 1, "b", LATER)
    found = taken_up(it)
    assert (found.full, kinds(found)) == (False, []), "nothing has been heard of it yet"
    assert kinds(taken_up(it, ALONE)) == [Kind.PROJECT]


def test_while_git_is_busy_everything_is_looked_at(it: Watched) -> None:
    git = it.workspace.parent.parent / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "MERGE_HEAD").write_text("0" * 40)
    append(it.store / ALONE, 1, "b", LATER)
    found = taken_up(it, ALONE)
    assert [item.reason for item in found.plan.held] == [Reason.GIT_BUSY]
    (git / "MERGE_HEAD").unlink()
    found = taken_up(it)
    assert (found.full, kinds(found)) == (True, [Kind.PROJECT])


def test_what_a_pass_has_made_is_known(it: Watched) -> None:
    """Two continuations: the older one lives on as a child, which is in the store alone."""
    append(it.store / ALONE, 1, "b", LATER)
    append(it.workspace / ALONE, 1, "c", LATER + 1)
    found = planned(it.engine, POLICY, {side: {ALONE} for side in Side})
    it.engine.apply(found, "watch")
    assert (found.full, kinds(found)) == (False, [Kind.FORK, Kind.COPY])
    fork = found.plan.actions[0].conversation
    (made,) = it.engine.known.sides[Side.STORE].of(fork)
    assert not taken_up(it, made.path).conversations
    append(it.store / made.path, 1, "d", LATER)
    assert taken_up(it, made.path).conversations == {fork, IDS[5]}
    assert planned(it.engine, POLICY).plan.quiet


def test_a_new_child_is_imported_below_its_parent(it: Watched) -> None:
    path = f"{NAMES[0]}/conversations/{FIRST + 99}-new"
    write_conversation(it.workspace / path, "New", events(1), parent=FIRST)
    found = taken_up(it, path, side=Side.WORKSPACE)
    assert (found.full, kinds(found)) == (False, [Kind.COPY])
    assert IDS[0] in found.conversations
    assert planned(it.engine, POLICY).plan.quiet


def test_where_a_side_keeps_changing_after_a_run_everything_is_looked_at(
    it: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(it.store / ALONE, 1, "b", LATER)
    found = planned(it.engine, POLICY, {Side.STORE: {ALONE}})
    monkeypatch.setattr(it.engine.session.scanner, "rescan", lambda *_: None)
    outcome = it.engine.apply(found, "watch")
    assert not outcome.undone()
    monkeypatch.undo()
    assert planned(it.engine, POLICY).plan.quiet


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have somebody do something once, while a run works."""
    carry_out = Session.carry_out

    def acting(session: Session, *args: Any, **kwargs: Any) -> Outcome:
        outcome = carry_out(session, *args, **kwargs)
        monkeypatch.setattr(Session, "carry_out", carry_out)
        act()
        return outcome

    monkeypatch.setattr(Session, "carry_out", acting)


def test_what_appears_in_a_directory_meanwhile_is_due(it: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    new = f"{FIRST + 50}-new"
    append(it.workspace / ALONE, 1, "b", LATER)
    meanwhile(monkeypatch, lambda: write_conversation(it.workspace / ALONE / "conversations" / new, "New", events(2)))
    assert kinds(taken_up(it, ALONE, side=Side.WORKSPACE)) == [Kind.COPY]
    assert it.engine.due == {f"jp-c{FIRST + 50}"}
    assert Kind.COPY in kinds(taken_up(it))
    assert (it.store / new / "events.json").exists()


def test_what_is_moved_into_a_directory_meanwhile_is_due(it: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = NAMES[6]
    append(it.workspace / ALONE, 1, "b", LATER)

    def move() -> None:
        (it.workspace / ALONE / "conversations").mkdir()
        (it.workspace / moved).rename(it.workspace / ALONE / "conversations" / moved)

    meanwhile(monkeypatch, move)
    taken_up(it, ALONE, side=Side.WORKSPACE)
    assert IDS[6] in it.engine.due
    found = taken_up(it)
    assert Kind.REMOVE_STALE not in kinds(found), "where it was before is known to be empty"
    assert (it.workspace / ALONE / "conversations" / moved / "events.json").exists()
    assert not planned(it.engine, POLICY).plan.actions


def test_where_something_has_left_a_side_meanwhile_everything_is_looked_at(
    it: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(it.workspace / ALONE, 1, "b", LATER)
    meanwhile(monkeypatch, lambda: shutil.rmtree(it.workspace / ALONE))
    taken_up(it, ALONE, side=Side.WORKSPACE)
    assert not it.engine.is_resumable
    assert planned(it.engine, POLICY, {}).full


def test_where_a_part_could_not_tell_afterwards_everything_is_looked_at(
    it: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something that is nobody's has appeared, so that both sides are looked at as wholes; another was edited, too."""
    append(it.workspace / ALONE, 1, "b", LATER)

    def act() -> None:
        (it.workspace / ALONE / "conversations").mkdir()
        (it.workspace / ALONE / "conversations" / "README").write_bytes(b"foreign")
        append(it.workspace / NAMES[6], 1, "c", LATER)

    meanwhile(monkeypatch, act)
    taken_up(it, ALONE, side=Side.WORKSPACE)
    assert not it.engine.is_resumable
    assert kinds(taken_up(it)) == [Kind.COPY]
