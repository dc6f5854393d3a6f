"""The tree index: parents that are gone, cycles, and orders (docs/design/placement.md#rule-4)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.planning.rules.tree import TreeIndex
from tests.support.scenarios.pure_level import FORMAT


def index(parents: dict[int, int | None]) -> TreeIndex:
    """Index conversations by their numbers."""
    named = {name(child): None if parent is None else name(parent) for child, parent in parents.items()}
    return TreeIndex(named, FORMAT.order)


def name(number: int) -> str:
    return f"jp-c{number}"


def numbers(conversations: object) -> list[int]:
    assert isinstance(conversations, (tuple, list))
    return [int(conversation.removeprefix("jp-c")) for conversation in conversations]


TREES: dict[str, tuple[dict[int, int | None], list[int], list[int]]] = {
    "nobody": ({}, [], []),
    "roots come in the order of their numbers": ({10: None, 9: None, 2: None}, [2, 9, 10], [2, 9, 10]),
    "a child comes after its parent": ({1: 2, 2: None}, [2], [2, 1]),
    "siblings come in the order of their numbers": ({1: None, 10: 1, 9: 1}, [1], [1, 9, 10]),
    "a subtree is finished before the next sibling": ({1: None, 2: 1, 3: 2, 4: 1}, [1], [1, 2, 3, 4]),
    "a parent that isn't live makes a root": ({1: 9, 2: 1}, [1], [1, 2]),
    "its own parent": ({1: 1, 2: 1}, [1], [1, 2]),
    "a cycle hangs below its smallest member": ({3: 2, 2: 1, 1: 3}, [1], [1, 2, 3]),
    "what hangs on a cycle stays on it": ({1: 2, 2: 1, 3: 2, 4: 3}, [1], [1, 2, 3, 4]),
    "two cycles": ({1: 2, 2: 1, 3: 4, 4: 3}, [1, 3], [1, 2, 3, 4]),
}


@pytest.mark.parametrize(("parents", "roots", "walk"), TREES.values(), ids=TREES)
def test_roots_and_order(parents: dict[int, int | None], roots: list[int], walk: list[int]) -> None:
    tree = index(parents)
    assert numbers(tree.roots()) == roots
    assert numbers(list(tree.walk())) == walk


@pytest.mark.parametrize(("parents", "walk"), [tree[::2] for tree in TREES.values()], ids=TREES)
def test_depths_and_tops_are_those_of_the_ancestors(parents: dict[int, int | None], walk: list[int]) -> None:
    tree = index(parents)
    chains = {name(number): list(tree.ancestors(name(number))) for number in walk}
    assert tree.depths == {each: len(chain) for each, chain in chains.items()}
    assert tree.tops == {each: (chain or [each])[-1] for each, chain in chains.items()}
    assert list(tree.depths) == list(tree.walk())


def test_who_is_a_root_because_a_cycle_was_broken() -> None:
    tree = index({1: 2, 2: 1, 3: 1, 4: 9, 5: None, 6: 6})
    assert [number for number in range(1, 7) if tree.breaks_cycle(name(number))] == [1, 6]


@pytest.mark.parametrize("length", range(1, 7))
def test_a_cycle_is_broken_at_its_smallest_member_wherever_it_is_entered(length: int) -> None:
    for members in itertools.permutations(range(1, length + 1)):
        following = (*members[1:], members[0])
        tree = index(dict(zip(members, following, strict=True)))
        ((first, *rest),) = tree.cycles
        assert first == name(1)
        assert sorted(numbers([first, *rest])) == sorted(members)
        assert numbers(tree.roots()) == [1]
        assert all(tree.parent_of(child) == parent for child, parent in itertools.pairwise((*rest, first)))
        assert len(list(tree.descendants(first))) == length - 1


def test_a_cycle_is_listed_from_its_smallest_member_on_along_the_parents() -> None:
    assert index({5: 3, 3: 7, 7: 5, 9: 5}).cycles == (("jp-c3", "jp-c7", "jp-c5"),)
    assert index({10: 9, 9: 10}).cycles == (("jp-c9", "jp-c10"),)


def test_a_cycle_is_the_same_where_what_hangs_on_it_comes_first() -> None:
    assert index({1: 7, 7: 5, 5: 3, 3: 7}).cycles == (("jp-c3", "jp-c7", "jp-c5"),)


def test_two_cycles_are_both_reported_in_the_order_of_their_numbers() -> None:
    assert index({10: 10, 9: 9, 1: 2, 2: 1}).cycles == (("jp-c1", "jp-c2"), ("jp-c9",), ("jp-c10",))


def test_a_chain_of_5000_needs_no_recursion() -> None:
    tree = index({number: number - 1 if number > 1 else None for number in range(1, 5001)})
    assert numbers(list(tree.walk())) == list(range(1, 5001))
    assert len(list(tree.ancestors(name(5000)))) == 4999
    assert len(list(tree.descendants(name(1)))) == 4999


def test_a_cycle_of_5000_needs_no_recursion() -> None:
    tree = index({number: number % 5000 + 1 for number in range(1, 5001)})
    assert [len(cycle) for cycle in tree.cycles] == [5000]
    assert numbers(tree.roots()) == [1]


def test_relatives() -> None:
    tree = index({1: None, 2: 1, 3: 2, 4: 9, 5: 1})
    assert name(3) in tree
    assert name(9) not in tree
    assert tree.parent_of(name(1)) is None
    assert tree.parent_of(name(3)) == name(2)
    assert numbers(tree.children_of(name(1))) == [2, 5]
    assert numbers(tree.children_of(name(3))) == []
    assert (tree.has_children(name(1)), tree.has_children(name(3))) == (True, False)
    assert list(tree.ancestors(name(3))) == [name(2), name(1)]
    assert list(tree.descendants(name(1))) == [name(2), name(3), name(5)]


def test_only_a_stated_parent_can_be_gone() -> None:
    tree = index({1: None, 2: 1, 4: 9, 5: 5})
    assert [tree.parent_is_gone(name(number)) for number in (1, 2, 4, 5)] == [False, False, True, False]


FORESTS = st.dictionaries(st.integers(1, 12), st.none() | st.integers(1, 14), max_size=12)


@given(FORESTS)
def test_every_conversation_comes_once_and_after_its_parent(parents: dict[int, int | None]) -> None:
    tree = index(parents)
    walk = list(tree.walk())
    assert sorted(numbers(walk)) == sorted(parents)
    for at, conversation in enumerate(walk):
        parent = tree.parent_of(conversation)
        assert parent is None or parent in walk[:at]


@given(FORESTS)
def test_a_parent_is_the_one_stated_unless_it_is_gone_or_closes_a_cycle(parents: dict[int, int | None]) -> None:
    tree = index(parents)
    broken = {cycle[0] for cycle in tree.cycles}
    for child, parent in parents.items():
        kept = None if parent not in parents or name(child) in broken else name(parent or 0)
        assert tree.parent_of(name(child)) == kept


@given(FORESTS)
def test_descendants_are_those_whose_ancestors_say_so(parents: dict[int, int | None]) -> None:
    tree = index(parents)
    for above in map(name, parents):
        below = {child for child in map(name, parents) if above in tree.ancestors(child)}
        assert set(tree.descendants(above)) == below
