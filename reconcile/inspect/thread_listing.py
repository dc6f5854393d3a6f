"""The listing of Leslie's threads for ``ls``: with status, references, dependencies and objective, or as a tree."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from reconcile.errors import ReconcileError
from reconcile.formats.leslie.checks.control_files import known_elsewhere
from reconcile.formats.leslie.checks.records import cycles
from reconcile.formats.leslie.document import (
    DIRECTORY,
    OBJECTIVES,
    RELATIONS,
    Dialect,
    Document,
    ObjectivesDocument,
    read_objectives,
    read_relations,
    text,
)
from reconcile.formats.leslie.repair import proposal
from reconcile.inspect.listing import draw_tree
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.formats.leslie.checks.model import LeslieTree
    from reconcile.formats.leslie.document import Object


class ThreadRow(Struct, frozen=True):
    """One thread of a listing, as the file has it. ``branch`` is the drawing before the title in a tree."""

    thread: str
    title: str | None
    status: str | None
    parent: str | None
    objective: str | None
    objective_title: str | None
    references: tuple[str, ...]
    depends_on: tuple[str, ...]
    depends_on_indirectly: tuple[str, ...]
    """The threads that ``depends_on`` depend on in turn, nearest first."""
    branch: str = ""


class Threads(NamedTuple):
    """The threads of a listing. ``damage``: the error of a file of which only a part can be read."""

    rows: tuple[ThreadRow, ...]
    damage: ReconcileError | None


def list_threads(files: LeslieTree, *, tree: bool) -> Threads:
    """Return the threads in the order of the file, or as a tree by ``parent_id``.

    Of a damaged file, these are the threads that it and its backup still have, and the ids that other places have.

    Raises:
        ReconcileError: the file can't be read, and nothing is known of any thread.
    """
    main = files.file(RELATIONS)
    lacking = Fault(RELATIONS, main.instead or "no such file", "a file")
    found = lacking if main.content is None else read_relations(main.content)
    damage: ReconcileError | None = None
    if isinstance(found, Fault):
        error = ReconcileError(
            f"{DIRECTORY}/{RELATIONS}: {found.words}",
            "see what can be recovered: reconcile doctor --format leslie",
        )
        if (left := _left(files)) is None:
            raise error
        damage, read = error, left
    else:
        read = found
    file = files.file(OBJECTIVES).content
    document = None if file is None else read_objectives(file)
    titles = {
        objective: text(record.get("title"))
        for objective, record in (document.objectives if isinstance(document, ObjectivesDocument) else {}).items()
    }
    unrecorded = [] if damage is None else [each for each in known_elsewhere(files) if each not in read.threads]
    threads = {**read.threads, **{thread: {} for thread in unrecorded}}
    branches = _tree(threads) if tree else dict.fromkeys(threads, "")
    rows = (_row(thread, threads[thread], titles, read.relations, branch) for thread, branch in branches.items())
    return Threads(tuple(rows), damage)


def _left(files: LeslieTree) -> Document | None:
    """Return what a damaged file and its backup still have; None if that is nothing, and no other place has an id."""
    contents = [file.content for file in (files.file(RELATIONS), files.backup(RELATIONS)) if file.content]
    made = proposal(*contents) if contents else None
    read = None if made is None else read_relations(made)
    if isinstance(read, Document):
        return read
    return Document(b"", {"threads": {}, "operations": []}, Dialect.PROGRAM, ()) if known_elsewhere(files) else None


def _row(
    thread: str,
    record: Object,
    titles: Mapping[str, str | None],
    relations: Mapping[str, Mapping[str, list[str]]],
    branch: str,
) -> ThreadRow:
    direct = tuple(dict.fromkeys(relations.get(thread, {}).get("depends_on", ())))
    objective = text(record.get("objective"))
    return ThreadRow(
        thread=thread,
        title=text(record.get("title")),
        status=text(record.get("status")),
        parent=text(record.get("parent_id")),
        objective=objective,
        objective_title=titles.get(objective) if objective is not None else None,
        references=tuple(relations.get(thread, {}).get("references_to", ())),
        depends_on=direct,
        depends_on_indirectly=tuple(_indirect(thread, direct, relations)),
        branch=branch,
    )


def _indirect(thread: str, direct: tuple[str, ...], relations: Mapping[str, Mapping[str, list[str]]]) -> Iterator[str]:
    """Yield the dependencies of the direct dependencies, each once, also in a cycle."""
    seen, todo = {thread, *direct}, deque(direct)
    while todo:
        for other in relations.get(todo.popleft(), {}).get("depends_on", ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
                yield other


def _tree(threads: Mapping[str, Object]) -> dict[str, str]:
    """Return each thread with its drawing. Roots are threads without a known parent, and the smallest of each cycle."""
    parents = {thread: text(record.get("parent_id")) for thread, record in threads.items()}
    above = {thread: [parent] if parent is not None else [] for thread, parent in parents.items()}
    broken = {cycle[0] for cycle in cycles(above)}
    children: dict[str, list[str]] = {}
    starts = []
    for thread, parent in parents.items():
        if parent is None or parent not in threads or thread in broken:
            starts.append(thread)
        else:
            children.setdefault(parent, []).append(thread)
    return dict(draw_tree(starts, lambda thread: children.get(thread, [])))
