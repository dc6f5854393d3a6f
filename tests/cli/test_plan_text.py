"""A plan for people: everything of a short one, the sums of a long one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.plan import Action, Conflict, Heading, Item, Kind, Note, Plan, Rival
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, WHOLE, Place, Side
from tests.cli.modules import module
from tests.support.scenarios.building import agreed_on, here, plan_of, stored

render, style, words = module("output.plan_text"), module("output.text"), module("output.words")
PLAIN = style.Style(colored=False)
MANY = 10_000


def lines(plan: Plan, *, verbose: bool = False) -> list[str]:
    return list(render.PlanText(plan, PLAIN, verbose=verbose).lines())


def action(number: int, kind: Kind = Kind.COPY) -> Action:
    return Action(
        id=str(number),
        kind=kind,
        conversation=f"jp-c{number}",
        title=f"Title {number}",
        unit="stream",
        reason=Reason.EDITED_WORKSPACE if kind is Kind.COPY else Reason.EDITED_STORE,
        target=Place(Side.STORE if kind is Kind.COPY else Side.WORKSPACE, f"{number}-a/events.json"),
        bytes=1000,
        events=(1, 3),
    )


def plan_with(count: int) -> Plan:
    actions = tuple(action(number, Kind.COPY if number % 4 else Kind.PROJECT) for number in range(1, count + 1))
    outline = tuple(Heading(each.conversation, each.title, 0) for each in actions)
    return Plan(layout="nested", actions=actions, outline=outline)


def test_a_plan_of_60_actions_is_shown_whole() -> None:
    shown = lines(plan_with(60))
    assert sum(line.startswith("Title ") for line in shown) == 60
    assert not any("-v shows all" in line for line in shown)


def test_a_plan_of_10000_actions_is_summed_up() -> None:
    shown = lines(plan_with(MANY))
    assert len(shown) < 60
    assert sum(line.startswith("Title ") for line in shown) == 20
    assert "... and 9980 more conversations (-v shows all); in total:" in shown
    summed = [
        line.split() for line in shown[shown.index("... and 9980 more conversations (-v shows all); in total:") + 1 :]
    ]
    assert [words[:5] for words in summed if words] == [
        ["->", "store", "7500", "7.5", "MB"],
        ["->", "workspace", "2500", "2.5", "MB"],
    ]


def test_with_v_all_of_it_is_shown() -> None:
    shown = lines(plan_with(MANY), verbose=True)
    assert sum(line.startswith("Title ") for line in shown) == MANY
    assert sum("+2 events" in line for line in shown) == MANY


@pytest.mark.parametrize("verbose", [False, True])
def test_10000_items_and_notes(verbose: bool) -> None:
    held = tuple(
        Item(conversation=f"jp-c{number}", title=None, unit="stream", reason=Reason.INVALID, message=f"found {number}")
        for number in range(MANY)
    )
    notes = tuple(
        Note(conversation="jp-c1", reason=Reason.CONFLICT, message=f"edited {number}") for number in range(MANY)
    )
    shown = lines(Plan(layout="nested", held=held, notes=notes), verbose=verbose)
    assert sum(line.startswith("    events: found") for line in shown) == (MANY if verbose else 60)
    assert sum("edited" in line for line in shown) == (MANY if verbose else 20)
    assert ("  ... and 9940 more (-v shows all)" in shown) is not verbose
    assert ("  ... and 9980 more (-v shows all)" in shown) is not verbose


def test_many_removals_name_both_options_that_allow_them() -> None:
    ways = ("reconcile --allow-bulk-removal",)
    message = "4 of 6 directories would be removed: A, B, C, D"
    item = Item(conversation=None, title=None, unit=WHOLE, reason=Reason.BULK, message=message, resolve=ways)
    assert lines(Plan(layout="nested", held=(item,)))[1:3] == [
        "  4 of 6 directories would be removed: A, B, C, D; this or --yes allows it:",
        "      reconcile --allow-bulk-removal",
    ]


def test_foreign_names_are_counted_and_listed_with_v() -> None:
    notes = tuple(Note(conversation=None, reason=Reason.FOREIGN, message=f"store:{name}: no id") for name in "xy")
    assert lines(Plan(layout="nested", notes=notes)) == [
        "2 other entries are no conversations, and stay as they are (-v lists them)"
    ]
    assert lines(Plan(layout="nested", notes=notes[:1])) == [
        "1 other entry is no conversation, and stays as it is (-v lists it)"
    ]
    assert "  store:x: no id" in lines(Plan(layout="nested", notes=notes), verbose=True)


def test_links_and_pipes_in_conversations_are_counted_as_not_copied() -> None:
    inside = tuple(
        Note(conversation=None, unit=f"extra:{name}", reason=Reason.FOREIGN, message=f"store:1-a/{name}: a link")
        for name in "xy"
    )
    beside = Note(conversation=None, reason=Reason.FOREIGN, message="store:z: no id")
    assert lines(Plan(layout="nested", notes=(*inside, beside))) == [
        "2 files in conversations are not copied, and stay as they are (-v lists them)",
        "1 other entry is no conversation, and stays as it is (-v lists it)",
    ]
    assert lines(Plan(layout="nested", notes=inside[:1])) == [
        "1 file in a conversation is not copied, and stays as it is (-v lists it)"
    ]


def test_an_empty_plan_says_nothing() -> None:
    assert lines(Plan(layout="nested")) == []


def test_nothing_that_a_title_or_a_name_brings_acts_on_the_terminal() -> None:
    """Also not what is the id itself: with ``--format plain`` that is the directory's name."""
    evil = "\x1b[2J\u202e\n"
    title = f"A{evil}"
    one = replace(action(1), title=title, unit=f"extra:{evil}")
    move = replace(action(1, Kind.MOVE), source=Place(Side.STORE, "1-a"), target=Place(Side.STORE, f"1-{evil}"))
    gone = replace(
        action(1, Kind.REMOVE_STALE),
        unit="conversation",
        reason=Reason.DUPLICATE,
        target=Place(Side.WORKSPACE, f"1-{evil}"),
    )
    item = Item(conversation="jp-c1", title=title, unit=f"extra:{evil}", reason=Reason.INVALID, message=evil)
    item = replace(item, conversation=evil, resolve=(f"reconcile resolve {evil}",))
    note = Note(conversation=evil, reason=Reason.CONFLICT, message=evil)
    outline = (Heading("jp-c1", title, 0), Heading(evil, title, 0))
    plan = Plan(layout="nested", actions=(one, move, gone), held=(item,), aside=(item,), notes=(note,), outline=outline)
    text = "".join(lines(plan))
    assert not set("\x1b\u202e\n") & set(text)
    assert text.count("\\x1b[2J\\u202e\\x0a") == 16


def test_ancestors_are_shown_above_what_is_done_below_them() -> None:
    parent = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    baseline = agreed_on(parent, f"1-a/conversations/{child}")
    workspace = here(parent, f"1-a/conversations/{child.replace('[1]', '[1 2]')}")
    shown = lines(plan_of(stored(parent, child), workspace, baseline))
    assert [line.split()[0] for line in shown if line] == ["A", "B", "->"]
    assert [len(line) - len(line.lstrip()) for line in shown if line] == [0, 2, 4]


MOVES = {
    "renamed": ("1-a", Place(Side.WORKSPACE, "1-b"), "rename in workspace to 1-b"),
    "renamed in the store": ("1-a", Place(Side.STORE, "1-b"), "rename in store to 1-b"),
    "to the top": ("2-b/conversations/1-a", Place(Side.WORKSPACE, "1-a"), "move in workspace to the top level"),
    "below another": ("1-a", Place(Side.WORKSPACE, "2-b/conversations/1-a"), "move in workspace into 2-b"),
    "both": ("1-a", Place(Side.WORKSPACE, "2-b/conversations/1-c"), "move in workspace into 2-b, as 1-c"),
    "into the archive": ("1-a", Place(Side.WORKSPACE, ".archive/1-a"), "move in workspace into .archive"),
}


@pytest.mark.parametrize(("source", "target", "words"), MOVES.values(), ids=MOVES)
def test_where_a_directory_goes(source: str, target: Place, words: str) -> None:
    move = replace(action(1, Kind.MOVE), source=Place(target.side, source), target=target)
    plan = Plan(layout="nested", actions=(move,), outline=(Heading("jp-c1", None, 0),))
    (_, line, _) = lines(plan)
    assert " ".join(line.split()).startswith(f"{words} ")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((1, 3), "+2 events"),
        ((3, 2), "-1 event"),
        ((2, 2), "still 2 events"),
        ((1, 1), "still 1 event"),
        ((0, 0), ""),
        (None, ""),
    ],
)
def test_the_change_in_the_number_of_events(events: tuple[int, int] | None, words: str) -> None:
    plan = replace(plan_with(1), actions=(replace(action(1), events=events),))
    assert words in lines(plan)[1]
    assert (lines(plan)[1].count("event") > 1) is (words != "")


def test_a_version_whose_time_is_put_back() -> None:
    plan = replace(plan_with(1), actions=(action(1, Kind.AGE),))
    assert " ".join(lines(plan)[1].split()).startswith("reset time in workspace events ")


def two_in_a_tree(*order: int) -> Plan:
    """A plan for a conversation and its child, whose steps have this order."""
    outline = (Heading("jp-c1", "Title 1", 0), Heading("jp-c2", "Title 2", 1))
    actions = tuple(replace(action(number), id=str(step)) for step, number in enumerate(order, 1))
    return Plan(layout="nested", actions=actions, outline=outline)


def test_a_plan_in_the_order_of_the_tree_has_no_numbers() -> None:
    for verbose in (False, True):
        starts = {line.split()[0] for line in lines(two_in_a_tree(1, 2), verbose=verbose) if line}
        assert starts == {"Title", "->"}


def test_where_a_run_has_another_order_the_text_says_so_and_v_numbers_the_steps() -> None:
    plan = two_in_a_tree(2, 1)
    assert lines(plan)[-2:] == [render.IN_TREE, ""]
    numbered = lines(plan, verbose=True)
    assert [line.split()[:2] for line in numbered[1:4:2]] == [["2.", "->"], ["1.", "->"]]
    assert numbered[-2:] == [render.IN_STEPS, ""]
    done = list(render.PlanText(plan, PLAIN, verbose=False, done=True).lines())
    assert render.IN_TREE not in done


def test_the_numbers_are_those_of_a_real_plan() -> None:
    """Contents are copied before directories are moved, and the moved one is listed first."""
    parent = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    other = '3-c  metadata 09:00 title "C"  stream 09:00 [1]'
    found = here(parent, child, other.replace("[1]", "[1 2]"))
    plan = plan_of(stored(parent, child, other), found, agreed_on(other))
    assert [each.kind for each in plan.actions] == [Kind.COPY, Kind.MOVE]
    shown = lines(plan, verbose=True)
    assert [line.split()[:2] for line in shown if line.startswith(("    ", "  1"))] == [
        ["2.", "move"],
        ["1.", "->"],
    ]


LETTER = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'


def summed(plan: Plan) -> str:
    return " ".join(module("output.summary").summary(plan, PLAIN))


def test_a_rename_on_both_sides_counts_as_the_one_conversation_and_says_both_sides() -> None:
    found = here(LETTER.replace('09:00 title "A"', '09:10 title "B"'))
    plan = plan_of(stored(LETTER), found, agreed_on(LETTER))
    assert [each.kind for each in plan.actions].count(Kind.MOVE) == 2
    assert summed(plan) == "Plan: 1 to update in the store, 1 to rename on both sides."


def test_a_move_on_one_side_says_no_side() -> None:
    parent, child = LETTER, '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    plan = plan_of(stored(parent, child), here(parent, child), agreed_on(parent))
    assert [each.kind for each in plan.actions] == [Kind.MOVE]
    assert summed(plan) == "Plan: 1 to move."


def test_a_summary_counts_the_conflicts_above_it() -> None:
    there = stored(LETTER.replace('09:00 title "A"', '09:05 title "C"'))
    found = here(LETTER.replace('09:00 title "A"', '09:10 title "B"'))
    plan = plan_of(there, found, agreed_on(LETTER))
    assert len(plan.conflicts) == 1
    assert summed(plan) == "Plan: 1 to update in the store, 1 to rename on both sides; 1 conflict."
    twice = replace(plan, conflicts=plan.conflicts * 2)
    assert summed(twice).endswith("; 2 conflicts.")
    held = replace(plan, conflicts=(replace(plan.conflicts[0], takes=None),))
    assert "conflict" not in summed(held)


def test_a_conversation_counts_once_as_blocked_or_left_alone_with_all_its_files() -> None:
    """As `status` counts it; what concerns a side as a whole counts beside it."""
    items = tuple(
        Item(conversation=conversation, title=None, unit=unit, reason=Reason.INVALID, message="it is broken")
        for conversation in ("jp-c1", "jp-c2", None)
        for unit in (METADATA, "stream")[: 1 if conversation is None else 2]
    )
    assert summed(Plan(layout="nested", held=items)) == "3 blocked; nothing else to do."
    assert summed(Plan(layout="nested", aside=items[:3])) == "2 left alone; nothing else to do."


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "start", ["jp init: the XDG directory issue on Linux ", "", "设计一个非常长的标题并且继续写下去 " * 2]
)
def test_the_values_of_a_conflict_show_where_they_differ(columns: int, start: str) -> None:
    ends = ("again and again", "and on other systems")
    store, workspace = (Rival(1, values=(f'"{start}{end}"',)) for end in ends)
    conflict = Conflict(
        conversation="jp-c1",
        title="A",
        unit=METADATA,
        case=15,
        store=store,
        workspace=workspace,
        keys=("title",),
        takes=Side.STORE,
        reason=Reason.NEWER_STORE,
    )
    lines = list(module("output.conflict_text").value_lines(conflict, columns, "  "))
    assert [line for line in lines if style.width(line) > columns] == []
    assert ("ag" in lines[0], "an" in lines[-1]) == (True, True), lines


def test_two_conflicts_are_counted_in_the_plural() -> None:
    counted = words.state_counts([("held", 2), ("conflict", 2)], "conversation")
    assert counted == "4 conversations: 2 conflicts, 2 blocked"
    assert words.state_counts([("conflict", 1)], "conversation") == "1 conversation: 1 conflict"
    for count, word in ((1, "waiting for its parent"), (2, "waiting for their parents")):
        assert words.state_counts([("waiting", count)], "thread").endswith(f": {count} {word}")


def test_values_that_fit_on_lines_of_their_own_are_not_cut() -> None:
    pairs = [("title", '"IANA ref (desktop)"', '"IANA ref (laptops)"')]
    lines = list(
        module("output.conflict_text").difference_lines(pairs, ("this machine", "the other machine"), 80, "    ")
    )
    assert lines == [
        '    title (this machine): "IANA ref (desktop)"',
        '    title (the other machine): "IANA ref (laptops)"',
    ]


def test_a_message_about_many_secrets_has_the_first_of_them_whatever_punctuation_they_have() -> None:
    found = tuple(f"event {number}: password, a; b{number}…" for number in range(1, 6))
    item = Item(
        conversation="jp-c1",
        title="A",
        unit=WHOLE,
        reason=Reason.SECRET,
        message=f"not published: {'; '.join(found)}",
        findings=found,
    )
    text = " ".join(" ".join(lines(Plan(layout="nested", held=(item,)))).split())
    assert f"not published: {'; '.join(found[:3])}; and 2 more (-v names all)" in text
    few = replace(item, message=f"not published: {'; '.join(found[:3])}", findings=found[:3])
    assert "more (-v" not in " ".join(lines(Plan(layout="nested", held=(few,))))
