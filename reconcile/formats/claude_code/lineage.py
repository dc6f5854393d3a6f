"""The sessions that are forks of others. No line names the parent: a fork begins with the lines of its ancestor.

See docs/design/formats/claude-code.md#forks. It is taken for granted that a program gives an uuid to one line only, so
that equal uuids mean a copy. All sessions with a common beginning are compared line by line.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cmp_to_key
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.formats.claude_code.ends import text_of
from reconcile.formats.claude_code.lines import parsed, raw_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class Lineage(Struct, frozen=True):
    """The lines of a session: each uuid and each time of another line, with its time as written.

    ``named`` are the sessions that the model was asked in (2.1.330). ``used`` is the time of the last use, in the same
    form as the times.
    """

    used: str
    times: Mapping[str, str]
    named: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, chunks: Iterable[bytes], used: str) -> Lineage:
        """Read the lines of a file."""
        times, named = dict[str, str](), set[str]()
        for raw, _ in raw_lines(chunks):
            if (line := parsed(raw)) is None:
                continue
            if key := text_of(line.uuid) or text_of(line.timestamp):
                times.setdefault(key, text_of(line.timestamp))
            named.add(text_of(line.request_session_id))
        return cls(used, times, frozenset(named) - {""})

    def begun(self, other: Lineage) -> str:
        """Return the time of the first line that the other one lacks; the time of the last use if it has all."""
        own = (time for key, time in self.times.items() if time and key not in other.times)
        return min(own, default=self.used)


def families(first: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the sessions that share a line, in groups of two or more; ``first`` has the first uuids of each."""
    above, having = {session: session for session in first}, dict[str, str]()

    def top(session: str) -> str:
        while (upper := above[session]) != session:
            above[session] = session = above[upper]
        return session

    for session, uuids in first.items():
        for uuid in uuids:
            above[top(having.setdefault(uuid, session))] = top(session)
    members = defaultdict[str, list[str]](list)
    for session in first:
        members[top(session)].append(session)
    return [family for family in members.values() if len(family) > 1]


def parents(lines: Mapping[str, Lineage], first: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the parent of each fork in a family, by the ids of sessions.

    Most of a fork's first lines are its parent's. Of several such sessions, the one with most common lines is the
    parent, and of these the oldest. The older one of two is the one that the other names, or else the one with the
    older line of its own.
    """
    found: dict[str, str] = {}
    for session, own in lines.items():
        common = {
            other: sum(key in its.times for key in own.times)
            for other, its in lines.items()
            if other != session
            and 2 * sum(uuid in its.times for uuid in first[session]) > len(first[session])
            and _is_older(other, session, lines)
        }

        def order(one: str, other: str, common: Mapping[str, int] = common) -> int:
            first, second = common[one], common[other]
            return second - first or (-1 if _is_older(one, other, lines) else 1)

        for other in sorted(common, key=cmp_to_key(order)):
            if session not in _above(other, found):  # the order of ages needs not be one of all three
                found[session] = other
                break
    return found


def _is_older(one: str, other: str, lines: Mapping[str, Lineage]) -> bool:
    first, second = lines[one], lines[other]
    if (one in second.named) is not (other in first.named):
        return one in second.named
    return (first.begun(second), one) < (second.begun(first), other)


def _above(session: str, parents: Mapping[str, str]) -> list[str]:
    """Return a session and its ancestors."""
    line = [session]
    while (parent := parents.get(line[-1])) is not None:
        line.append(parent)
    return line
