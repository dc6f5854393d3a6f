"""The comparison of two versions of a file, value by value or line by line."""

from __future__ import annotations

from reconcile.inspect.conversation import compare_contents


def test_only_a_newline_ends_a_line_of_json() -> None:
    """In a text of JSON, a line separator of Unicode needs no escape, and JavaScript writes none."""
    store = '{"id": "a", "text": "one\u2028two"}\n{"id": "b", "text": "x"}\n'.encode()
    workspace = '{"id": "a", "text": "one\u2028two"}\n{"id": "b", "text": "y\x85z"}\n'.encode()
    assert compare_contents(store, workspace).metadata == (("b.text", "x", "y\x85z"),)


def test_ends_of_lines_are_no_difference_of_values() -> None:
    assert compare_contents(b'{"id": "a"}\n{"id": "b"}\n', b'{"id": "a"}\r\n{"id": "b"}').empty
    assert compare_contents(b"one\ntwo\n", b"one\r\ntwo").empty
    assert compare_contents(b"", b"").empty
