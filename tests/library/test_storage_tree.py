"""After each change the tree gives the answers of an index that is built anew."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from reconcile.library.storage import Tree
from reconcile.planning.rules.tree import TreeIndex
from tests.support.scenarios.pure_level import FORMAT

IDS = st.sampled_from([f"jp-c{number}" for number in (2, 3, 10, 17, 40, 100)])
PARENTS = st.dictionaries(IDS, st.none() | IDS)
CHANGES = st.lists(st.tuples(IDS, st.none() | IDS | st.just("remove")), max_size=12)


@given(PARENTS, CHANGES)
@example({"jp-c2": "jp-c3", "jp-c3": "jp-c2"}, [("jp-c3", "remove"), ("jp-c3", "jp-c2")])
def test_every_answer_after_every_change(parents: dict[str, str | None], changes: list[tuple[str, str | None]]) -> None:
    tree, stated = Tree(parents, FORMAT.order), dict(parents)
    for conversation, parent in changes:
        if parent == "remove":
            tree.remove(conversation)
            stated.pop(conversation, None)
        else:
            tree.put(conversation, parent)
            stated[conversation] = parent
        anew = TreeIndex(stated, FORMAT.order)
        assert tree.all() == sorted(stated, key=FORMAT.order)
        for each in stated:
            assert tree.parent_of(each) == anew.parent_of(each)
            assert tree.children_of(each) == [*anew.children_of(each)]
            assert tree.ancestors_of(each) == [*anew.ancestors(each)]
            assert tree.descendants_of(each) == [*anew.descendants(each)]
