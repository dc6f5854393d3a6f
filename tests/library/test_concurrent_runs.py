"""Runs of reconcile at the same time: what they have seen before a program wrote, they don't remember after it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.adapters.locate import locate
from reconcile.apply.run import carry_out
from reconcile.engine.engine import Engine
from reconcile.engine.session import Session
from reconcile.model.policy import Policy
from tests.support.library.conversations import check, directory, mutable, say
from tests.support.projects.changing_sides import planned
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.world import LONG_AGO, SECOND, append, events, write_conversation

if TYPE_CHECKING:
    from reconcile import Workspace
    from reconcile.model.baseline import WorldState
    from tests.support.projects.world import World


def opened(world: World) -> Session:
    roots = locate("jp", str(world.project), None, str(world.project), os.environ, sys.platform)
    return Session(roots, str(world.state))


def test_what_a_pass_saw_before_is_not_remembered(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(directory(world.store, THIRD), 1, "s", LONG_AGO + SECOND)
    looked = Session.scan

    def late(session: Session, *args: object) -> WorldState:
        found = looked(session, *args)  # type: ignore[arg-type]
        with mutable(workspace) as mut:
            say(mut, "hello")
        return found

    with opened(world) as session, session.exclusively("reconcile", 5):
        engine = Engine(session)
        found = planned(engine, Policy())
        with monkeypatch.context() as patched:
            patched.setattr(Session, "scan", late)
            engine.apply(found, "reconcile")
        now = session.scan()
        (copy,) = (each for each in now.store.copies if each.conversation == f"jp-c{FIRST}")
        digests = {file.digest for file in copy.files}
        assert set(now.baseline.agreed[f"jp-c{FIRST}"].units["stream"].split("+")) <= digests
        assert now.baseline.history[f"jp-c{FIRST}", "stream"][-1] == now.baseline.agreed[f"jp-c{FIRST}"].units["stream"]
    check(world)


def test_a_watcher_looks_at_what_a_program_wrote_before_it_hears_of_it(world: World, workspace: Workspace) -> None:
    with opened(world) as session:
        engine = Engine(session)
        with session.exclusively("watch", 5):
            engine.apply(planned(engine, Policy()), "watch")
        with mutable(workspace, SECOND_ID) as mut:
            say(mut, "hello")
        with session.exclusively("watch", 5):
            found = planned(engine, Policy(), {})
            assert (found.full, found.plan.actions) == (False, ())
            engine.apply(found, "watch")
        with workspace.create_conversation(title="New") as new:
            pass
        with session.exclusively("watch", 5):
            found = planned(engine, Policy(), {})
            assert found.full
            assert new.id in found.conversations
            assert not engine.apply(found, "watch").results
    check(world)


def test_a_run_that_goes_on_is_not_called_interrupted(world: World, workspace: Workspace) -> None:
    """And who runs beside it leaves alone what it has open."""
    with workspace.create_conversation(title="Open") as new, opened(world) as session:
        new.flush()
        run = session.state.journal.runs()[0].id
        with session.state.transaction():
            session.state.journal._connection.execute("UPDATE run SET finished_ns = NULL WHERE id = ?", (run,))
        check(world)
        assert world.run("--workspace", world.project).exit_code == 0
        assert session.state.journal.is_open(run)
    assert world.run("--workspace", world.project).exit_code == 0
    with opened(world) as session:
        assert not session.state.journal.is_open(run)


@pytest.mark.parametrize("is_public", [True, False], ids=["on both sides", "in the store alone"])
def test_a_private_mark_holds_for_what_is_written_meanwhile(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, *, is_public: bool
) -> None:
    number = FIRST
    if not is_public:
        number = 17500000009
        write_conversation(world.store / f"{number}-it", "Nine", events(3))
        world.reconcile()
    due = [True]

    def late(site: Any, plan: Any, *args: Any) -> Any:
        if due:
            due.clear()
            with mutable(workspace, number) as mut:
                say(mut, "hello")
        return carry_out(site, plan, *args)

    with monkeypatch.context() as patch:
        patch.setattr("reconcile.engine.session.carry_out", late)
        world.run("--workspace", world.project, "local", str(number))
    assert not due
    assert world.remembered()["intent_local"]
    world.run("--workspace", world.project)
    assert not list(world.workspace.glob(f"{number}*"))
    assert world.event_count(number) == 4
