"""What `doctor --quarantine` plans and refuses (docs/design/formats/jp.md#sanitizer).

The command is in fixtures/scenarios/commands.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.plan import Heading
from reconcile.model.snapshot import WHOLE, Fault, File, nested_git
from reconcile.planning.context import RefusedError
from reconcile.planning.requests.quarantine import plan_quarantine
from tests.support.scenarios.building import NOW_NS, agreed_on, context_of, here, stored, unreadable
from tests.support.scenarios.pure_level import RULES

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
CHILD = '1-a/conversations/2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
BROKEN = '1-a/events.json 10:00 "[{"'


def targets(store: tuple[str, ...], workspace: tuple[str, ...]) -> list[str]:
    plan = plan_quarantine(context_of(stored(*store), here(*workspace), agreed_on(A)), ["jp-c1"])
    return [f"{action.kind} {action.target}" for action in plan.actions]


def test_what_is_broken_moves_away_on_either_side() -> None:
    assert targets((A,), (A, BROKEN)) == ["project workspace:1-a/TRASHED.md", "move workspace:.trash/1-a"]
    assert targets((A, BROKEN), (A,)) == ["copy store:1-a/TRASHED.md", "move store:.trash/1-a"]


@pytest.mark.parametrize("side", ["store", "workspace"])
def test_what_cannot_be_read_is_not_known_to_be_broken(side: str) -> None:
    """A disk that fails, or rights that are missing, say nothing of what a file holds."""
    store, workspace = stored(A), here(A)
    if side == "store":
        store = unreadable(store, "1-a/events.json")
    else:
        workspace = unreadable(workspace, "1-a/events.json")
    with pytest.raises(RefusedError, match="can't be read, so it may be whole"):
        plan_quarantine(context_of(store, workspace, agreed_on(A)), ["jp-c1"])


def test_a_note_says_what_was_found_and_comes_first() -> None:
    context = context_of(stored(A), here(A, BROKEN), agreed_on(A))
    plan = plan_quarantine(context, ["jp-c1"])
    note, move = plan.actions
    assert (note.unit, move.unit, move.needs) == ("extra:TRASHED.md", WHOLE, (note.id,))
    (write,) = note.writes
    assert write.content is not None
    fault = context.views["jp-c1"].workspace.units["stream"].fault
    assert fault is not None
    said = f"**Error:** events.json: {fault.words}"
    assert said in write.content.decode()
    assert (write.size, write.mtime_ns, write.digest) == (len(write.content), NOW_NS, RULES.digest(write.content))
    assert (plan.outline, plan.now_ns, plan.policy) == ((Heading("jp-c1", "A", 0),), NOW_NS, context.policy)
    assert (plan.policy is context.policy, plan.about) == (True, frozenset({"jp-c1"}))


def test_a_directory_with_a_repository_in_it_is_not_moved() -> None:
    workspace = replace(here(A, BROKEN), foreign=(nested_git("1-a/.git", directory=True),))
    with pytest.raises(RefusedError, match=r"workspace:1-a/\.git: a git repository"):
        plan_quarantine(context_of(stored(A), workspace, agreed_on(A)), ["jp-c1"])


def test_a_title_or_a_name_that_is_no_unicode_is_no_obstacle() -> None:
    store = stored(A, '1-a/NOTE.md  09:00 "x"')
    fault = Fault("\udcff", "\udcff", "a title")
    strange = replace(store.copies[0], files=(*store.copies[0].files, File("\udcff", 1, 1, "d")), stream=fault)
    context = context_of(replace(store, copies=(strange,)), here(A), agreed_on(A))
    assert [action.kind.value for action in plan_quarantine(context, ["jp-c1"]).actions] == ["copy", "move"]


def test_names_in_the_trash_are_counted() -> None:
    taken = ('.trash/1-a  metadata 09:00 title "A"', '.trash/1-a-1  metadata 09:00 title "A"')
    assert targets((A,), (A, BROKEN, *taken))[1] == "move workspace:.trash/1-a-2"
    assert targets((A,), (A, BROKEN, *taken[:1]))[1] == "move workspace:.trash/1-a-1"


def test_what_is_sound_or_holds_others_stays() -> None:
    with pytest.raises(RefusedError, match="nothing in it is broken"):
        targets((A,), (A,))
    with pytest.raises(RefusedError, match="jp-c2 is in this directory and would be moved with it"):
        targets((A,), (A, CHILD, BROKEN))
    below = CHILD.replace("2-b", "3-c"), CHILD.replace("2-b", "2-b/conversations/4-d")
    with pytest.raises(RefusedError, match="jp-c2, jp-c3, jp-c4 is in this directory and would be moved with it"):
        targets((A,), (A, CHILD, *below, BROKEN))
    carried = f".trash/9-z/conversations/{A}"
    with pytest.raises(RefusedError, match="nothing in it is broken"):
        targets((A,), ('9-z  metadata 09:00 title "Z"  stream 09:00 [1]', carried))
