"""Paths of which one would have to be inside the other."""

from __future__ import annotations

from reconcile.planning.rules.shapes import collisions, folders_of


def test_the_folders_above_a_file() -> None:
    assert list(folders_of("a/b/c")) == ["a/b", "a"]
    assert not list(folders_of("a"))


def test_only_a_file_and_what_is_below_its_name_collide() -> None:
    assert collisions({"a", "b/c", "d/e/f"}, {"a/x", "a/y/z", "ab/x", "b", "d/e"}) == [
        ("a", "a/x"),
        ("a", "a/y/z"),
        ("b/c", "b"),
        ("d/e/f", "d/e"),
    ]
    assert not collisions(set(), {"a"})
    assert not collisions({"a/b", "c"}, {"a/bc", "a/d", "c"})
