"""The order of two contents by commits: as a picture of each history, and against one that is worked out from paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.planning.rules.commit_order import Change, Commits, Order

FILE = ("jp-c1", "events.json")
OLDER, NEWER, EITHER = Order


def history(text: str, head: str = "") -> Commits:
    """Return the history of one file: ``b a Y`` is the commit b, with the parent a and the content Y.

    Parents are written before children; a merge names its parents as ``a+b``, a commit without the file has ``-``.
    """
    parents: dict[str, tuple[str, ...]] = {}
    content: dict[str, str] = {}
    changes = []
    for line in text.split(", "):
        commit, above, has = line.split()
        parents[commit] = tuple(above.replace("-", "").split("+")) if above != "-" else ()
        content[commit] = has
        before = {content[parent] for parent in parents[commit]} or {"-"}
        changes += [
            Change(commit, FILE, frozenset({has} - {"-"}), frozenset({each} - {"-"})) for each in before - {has}
        ]
    return Commits(dict(reversed(parents.items())), changes, [head] if head else [])


LINE = "a - X, b a Y, c b Z"
BACK = "a - X, b a Y, c b X"
FORK = "a - X, b a Y, c a Z"


@pytest.mark.parametrize(
    ("text", "head", "mine", "other", "at_head", "order"),
    [
        pytest.param(LINE, "c", "Z", "X", True, NEWER, id="the-newest-is-newer-than-any"),
        pytest.param(LINE, "a", "X", "Z", True, OLDER, id="the-first-is-older-than-any"),
        pytest.param(LINE, "b", "Y", "Z", True, OLDER, id="between-and-before"),
        pytest.param(LINE, "b", "Y", "X", True, NEWER, id="between-and-after"),
        pytest.param(LINE, "c", "X", "Y", False, OLDER, id="an-old-one-put-back-and-not-committed"),
        pytest.param(LINE, "c", "Y", "W", True, None, id="the-other-was-never-committed"),
        pytest.param(LINE, "c", "W", "Y", False, None, id="this-one-was-never-committed"),
        pytest.param(BACK, "c", "X", "Y", True, NEWER, id="reverted"),
        pytest.param(BACK, "a", "X", "Y", True, OLDER, id="before-what-was-reverted"),
        pytest.param(BACK, "b", "Y", "X", True, EITHER, id="what-was-reverted-may-be-either"),
        pytest.param(BACK, "c", "Y", "X", False, EITHER, id="what-was-reverted-put-back"),
        pytest.param(FORK, "b", "Y", "Z", True, None, id="two-branches"),
        pytest.param(f"{FORK}, d b Y", "d", "Y", "X", True, NEWER, id="a-branch-and-its-root"),
        pytest.param("a - X, b a X, c b X, d a Y", "c", "X", "Y", True, OLDER, id="replaced-on-another-branch-alone"),
        pytest.param(f"{FORK}, m b+c Y", "m", "Y", "Z", True, NEWER, id="merged-and-not-taken"),
        pytest.param(f"{FORK}, m b+c Y", "c", "Z", "Y", True, OLDER, id="merged-elsewhere-and-not-taken"),
        pytest.param(f"{FORK}, m b+c W", "m", "W", "Z", True, NEWER, id="merged-into-a-third"),
        pytest.param(f"{FORK}, m b+c W", "b", "Y", "W", True, OLDER, id="before-a-merge-into-a-third"),
        pytest.param("a - X, b a X, c a Y, m b+c X", "m", "X", "Y", True, NEWER, id="ours-though-theirs-had-gone-on"),
        pytest.param("a - X, b a X, c a Y, m b+c X", "c", "Y", "X", True, EITHER, id="before-that-merge"),
        pytest.param("a - X, b a Y, c a Y, d b Z", "c", "Y", "Z", True, OLDER, id="picked-onto-two-branches"),
        pytest.param("a - X, b a Y, c b Z, d a W, e d Y, f e Z", "b", "Y", "Z", True, OLDER, id="rebased"),
        pytest.param("a - X, b a Y, c a W, d c Y, e d Z", "b", "Y", "Z", True, OLDER, id="rebased-and-gone-on"),
        pytest.param("a - X, b a -, c b Y", "a", "X", "Y", True, OLDER, id="removed-between"),
        pytest.param("a - X, b - Y", "a", "X", "Y", True, None, id="nothing-in-common"),
        pytest.param(LINE, "", "X", "Y", True, OLDER, id="no-commit-of-head-has-it"),
    ],
)
def test_the_order_of_two_contents(text: str, head: str, mine: str, other: str, at_head: bool, order: Order) -> None:
    assert history(text, head).order(FILE, mine, other, at_head=at_head) is order


def test_contents_are_of_one_file() -> None:
    found = history(LINE)
    assert found.contents(FILE) == {"X", "Y", "Z"}
    assert found.contents(("jp-c2", "events.json")) == frozenset()
    assert found.order(("jp-c2", "events.json"), "X", "Y", at_head=False) is None


def test_a_head_that_changed_nothing_is_none() -> None:
    """A commit that isn't among those that changed the directory says nothing."""
    assert history(LINE, "q").order(FILE, "X", "Y", at_head=True) is OLDER


@pytest.mark.parametrize(
    ("text", "head", "content", "since"),
    [
        pytest.param(LINE, "c", "Z", {"c"}, id="the-commit-that-added-it"),
        pytest.param(LINE, "c", "X", set(), id="a-later-one-replaced-it"),
        pytest.param(LINE, "b", "Z", set(), id="head-comes-before-it"),
        pytest.param(BACK, "c", "X", {"c"}, id="the-one-that-restored-it"),
        pytest.param(FORK, "a", "X", {"a"}, id="replaced-on-other-branches-alone"),
        pytest.param("a - X, b a Y, c a Y, m b+c Y", "m", "Y", {"b", "c"}, id="each-branch-that-was-merged"),
    ],
)
def test_since_when_head_has_had_a_content(text: str, head: str, content: str, since: set[str]) -> None:
    assert history(text, head).since(FILE, content) == since


def test_a_content_that_head_has_in_another_directory_has_replaced_nothing() -> None:
    none: frozenset[str] = frozenset()
    changes = [Change("a", FILE, frozenset("X"), none), Change("b", FILE, frozenset("Y"), none)]
    beside = Commits({"b": ("a",), "a": ()}, changes, ["b"])
    assert beside.order(FILE, "X", "Y", at_head=True) is NEWER
    assert not beside.replaced_at_head(FILE, "X", "Y")


@st.composite
def lines(draw: st.DrawFn) -> list[tuple[str, tuple[int, ...], str]]:
    """Return random histories: name, parents by their number, content."""
    count = draw(st.integers(2, 9))
    found = []
    for number in range(count):
        most = min(2, number)
        above = (
            draw(st.lists(st.integers(0, number - 1), min_size=min(1, most), max_size=most, unique=True))
            if most
            else []
        )
        found.append((f"c{number}", tuple(above), draw(st.sampled_from("WXYZ"))))
    return found


@given(lines(), st.data())
def test_an_order_is_that_of_every_path(found: list[tuple[str, tuple[int, ...], str]], data: st.DataObject) -> None:
    """Where there is an order, commits of both contents lie on a path that way; and turned round it is never the same.

    A content that no path leads back to is never said to be older; along one line without a return it always is.
    """
    text = ", ".join(f"{name} {'+'.join(f'c{each}' for each in above) or '-'} {has}" for name, above, has in found)
    number = data.draw(st.integers(0, len(found) - 1))
    name, _, mine = found[number]
    other = data.draw(st.sampled_from([has for each in "WXYZ" for has in each if has != mine]))
    above: list[set[int]] = []
    for _, parents, _ in found:
        above.append({each for parent in parents for each in above[parent] | {parent}})
    paths = {(found[low][2], found[high][2]) for high in range(len(found)) for low in above[high]}
    commits = history(text, name)
    order = commits.order(FILE, mine, other, at_head=True)
    if order is OLDER:
        assert (mine, other) in paths
    elif order is NEWER:
        assert (other, mine) in paths
    back = commits.order(FILE, other, mine, at_head=False)
    there = commits.order(FILE, mine, other, at_head=False)
    assert {there, back} in ({None}, {EITHER}, {OLDER, NEWER})
    if (mine, other) in paths and (other, mine) not in paths and mine in {has for _, _, has in found}:
        assert there is OLDER
