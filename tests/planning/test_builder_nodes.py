"""Where directories are while a plan is made."""

from __future__ import annotations

from msgspec.structs import replace

from reconcile.model.snapshot import Foreign, Place, Side, nested_git
from reconcile.planning.builder import Node, nodes_of
from tests.support.scenarios.building import here

LINES = [
    "1-a  metadata 09:00",
    "1-a/conversations/2-b  metadata 09:00",
    "1-a/conversations/2-b/conversations/3-c  metadata 09:00",
    ".archive/4-d  metadata 09:00",
    ".archive/4-d/conversations/5-e  metadata 09:00",
    "1-a/conversations/.trash/6-f  metadata 09:00",
]


def nodes() -> dict[str, Node]:
    return {path.rpartition("/")[2]: node for path, node in nodes_of(here(*LINES)).items()}


def paths(found: dict[str, Node]) -> dict[str, str]:
    return {name: node.path for name, node in found.items()}


def test_every_copy_has_a_node_where_the_scan_found_it() -> None:
    found = nodes_of(here(*LINES))
    assert sorted(found) == sorted(line.split()[0] for line in LINES)
    assert all(node.path == path and node.copy is not None and node.copy.path == path for path, node in found.items())


def test_containers_and_partitions() -> None:
    found = nodes()
    assert (found["1-a"].container, found["1-a"].prefix) == (None, "")
    assert (found["3-c"].container, found["3-c"].prefix) == (found["2-b"], "")
    assert (found["4-d"].container, found["4-d"].prefix) == (None, ".archive/")
    assert (found["5-e"].container, found["5-e"].prefix) == (found["4-d"], "")
    assert (found["6-f"].container, found["6-f"].prefix) == (found["1-a"], ".trash/")


def test_a_move_carries_everything_below_along() -> None:
    found = nodes()
    found["2-b"].move(found["4-d"], "", "2-x")
    assert found["2-b"].place == Place(Side.WORKSPACE, ".archive/4-d/conversations/2-x")
    assert found["3-c"].file("a") == Place(Side.WORKSPACE, ".archive/4-d/conversations/2-x/conversations/3-c/a")
    assert set(found["1-a"].subtree()) == {found["6-f"]}
    assert set(found["4-d"].subtree()) == {found["2-b"], found["3-c"], found["5-e"]}
    found["2-b"].move(None, "", "2-b")
    assert found["3-c"].path == "2-b/conversations/3-c"
    assert set(found["4-d"].subtree()) == {found["5-e"]}


def test_a_new_directory_is_below_its_container_at_once() -> None:
    found = nodes()
    new = Node(Side.WORKSPACE, found["3-c"], "", "7-g")
    assert new.path == "1-a/conversations/2-b/conversations/3-c/conversations/7-g"
    assert new in set(found["1-a"].subtree())
    assert found["1-a"].conversations_below() == {
        "jp-c2",
        "jp-c3",
        "jp-c6",
    }  # nobody lived in the new one when the run began


def test_is_at() -> None:
    found = nodes()
    assert found["2-b"].is_at(found["1-a"], "", "2-b")
    assert not found["2-b"].is_at(None, "", "2-b")
    assert not found["2-b"].is_at(found["1-a"], ".trash/", "2-b")
    assert not found["2-b"].is_at(found["1-a"], "", "2-c")


def test_lies_below() -> None:
    found = nodes()
    assert found["3-c"].lies_below(found["1-a"])
    assert found["3-c"].lies_below(found["3-c"])
    assert not found["1-a"].lies_below(found["3-c"])
    assert not found["5-e"].lies_below(found["1-a"])


def test_a_chain_of_3000_needs_no_recursion() -> None:
    top = above = Node(Side.STORE, None, "", "0")
    for number in range(1, 3000):
        above = Node(Side.STORE, above, "", str(number))
    assert above.path.count("/conversations/") == 2999
    assert above.lies_below(top)
    assert len(list(top.subtree())) == 2999
    assert paths({"last": above})["last"].endswith("/2999")


def test_a_directory_has_the_files_that_it_is_given() -> None:
    node = nodes()["1-a"]
    assert node.files.keys() == {"metadata.json"}
    node.files = {}
    assert node.files == {}
    assert not node.is_empty_tree(), "those below it still have theirs"


def test_only_a_repository_keeps_a_directory_where_it_is() -> None:
    """What the vault can't keep only keeps it from being removed."""
    pipe = Foreign("1-a/pipe", "a pipe", special=True)
    snapshot = here(*LINES)
    found = nodes_of(replace(snapshot, foreign=(pipe,)))["1-a"]
    assert (found.anchor(), found.obstacle() is None) == (None, False)
    inner = nested_git("1-a/conversations/2-b/.git", directory=True)
    found = nodes_of(replace(snapshot, foreign=(inner,)))["1-a"]
    assert (found.anchor() is None, found.obstacle()) == (False, None)
