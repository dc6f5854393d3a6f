"""What a process knows of the files on both sides, and each way to look at them: all, a part, what was swept before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.adapters.roots import identity_of
from reconcile.index.stat_cache import Index
from reconcile.index.stat_table import KeptSweep, Sweep
from reconcile.model.snapshot import Side
from reconcile.scan.content_cache import Facts
from reconcile.scan.parallel import Where, scan_both
from reconcile.scan.reader import Spot
from reconcile.scan.rescan import look_again, look_at, place_of
from reconcile.scan.scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reconcile.index.stat_cache import Row
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Place, Snapshot
    from reconcile.planning.incremental.side_index import SideIndex
    from reconcile.scan.rescan import Again
    from reconcile.scan.scan import Scanned


class _Looks(Struct):
    """Looks at parts of a side since it was swept, where somebody goes on from that."""

    sweeps: list[Sweep] = field(default_factory=list)
    gone: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()


class Scanner:
    """Looks at both sides, reads what has another status than the index says, and learns from it."""

    def __init__(
        self,
        where: Mapping[Side, str],
        directory: str,
        roots: Mapping[Side, str],
        fmt: Format,
        clock: Callable[[], int],
    ) -> None:
        """Load the indexes from the state's ``directory``; ``roots`` are the names that the sides have there."""
        self._where, self._directory, self._roots = where, directory, roots
        self._format, self._clock = fmt, clock
        self._indexes = {side: Index.load(directory, roots[side]) for side in Side}
        self._facts = Facts()
        self._moved: set[Side] = set()
        self._sweeps: dict[Side, KeptSweep] = {side: KeptSweep(()) for side in Side}
        self._looks: dict[Side, _Looks] = {}
        self._found: dict[Side, Snapshot] = {}

    def look(self, touched: Collection[Side] = tuple(Side)) -> dict[Side, Snapshot]:
        """Scan both sides.

        ``touched`` are those that this run has written to since the last look. Of another one, the status of every path
        tells whether anybody has.
        """
        rested = {side: known for side, known in self._found.items() if side not in touched and self._rests(side)}
        found = {side: self._with_found(known) for side, known in rested.items()}
        for side, scanned in self._scanned([side for side in Side if side not in rested]).items():
            found[side], self._sweeps[side] = self._with_found(scanned.snapshot), scanned.sweep
            self._looks.pop(side, None)
            if scanned.changed:
                self._indexes[side] = scanned.index
                self._moved.add(side)
        self._found = found
        return found

    def again(self, known: SideIndex, paths: Collection[str]) -> Again | None:
        """Look at some directories of a side once more; None: that can't suffice (`reconcile.scan.rescan`)."""
        side = known.side
        found = look_again(known, self._where[side], self._format, self._indexes[side], paths)
        if found is not None:
            self._moved.add(side)
            if (looks := self._looks.get(side)) is not None:
                looks.sweeps.append(found.sweep)
                looks.gone |= found.gone
        return found

    def at(self, known: SideIndex, spots: Collection[Spot]) -> tuple[Copy, ...] | None:
        """Look at single directories of a side, without what is inside them; None: that can't suffice."""
        found = look_at(known, self._where[known.side], self._format, self._indexes[known.side], spots)
        if found is not None:
            self._moved.add(known.side)
        return found

    def know(self, rows: Mapping[Place, Row]) -> None:
        """Have the next look take these copies for what was written, where their status still is the same."""
        for side in {place.side for place in rows}:
            identity = identity_of(self._where[side])
            if self._indexes[side].identity != identity:  # it was not there before
                self._indexes[side] = Index(self._format.name, identity)
            self._indexes[side].rows.update((place.path, row) for place, row in rows.items() if place.side is side)
            self._moved.add(side)

    def save(self) -> None:
        """Save what has been learned of the files' contents, so that the next process need not read them."""
        self._facts = Facts()
        for side in self._moved:
            self._indexes[side].save(self._directory, self._roots[side])
        self._moved.clear()

    def index(self, side: Side) -> Index:
        """Return what is known of the files' contents on a side."""
        return self._indexes[side]

    def copies_in_index(self, side: Side) -> Callable[[str], Copy]:
        """Return what makes a copy of what the index knows now: all of it, as nobody has changed it since."""
        rows = self._indexes[side].rows.frozen()
        rows.arrange()

        def copy(path: str) -> Copy:
            row, spot = rows[path], place_of(path, self._format)
            assert isinstance(spot, Spot)  # noqa: S101 - it was the path of a copy
            return row.copy(side, spot.conversation, path, spot.partition, spot.container)

        return copy

    def resume(self, side: Side, sweep: KeptSweep, stale: Collection[str]) -> None:
        """Go on from what was swept before; ``stale`` are the names that have another status now."""
        self._sweeps[side], self._looks[side] = sweep, _Looks(stale=frozenset(stale))

    def swept(self, side: Side) -> KeptSweep:
        """Return everything on a side that was looked at, with its status at the last look at it."""
        looks = self._looks.pop(side, None)
        sweep = self._sweeps[side]
        return sweep if looks is None else sweep.patched(looks.sweeps, looks.stale, looks.gone)

    def _rests(self, side: Side) -> bool:
        """Tell whether all that was looked at has the status that it had; where nothing was, there may be something."""
        sweep = self._sweeps[side]
        return len(sweep) > 0 and not sweep.changed(self._where[side])

    def _scanned(self, sides: Collection[Side]) -> dict[Side, Scanned]:
        where = {side: Where(self._where[side], self._indexes[side]) for side in sides}
        if len(where) == len(Side):
            return scan_both(where, self._format, self._facts)
        return {
            side: scan(side, each.conversations, self._format, each.known, facts=self._facts)
            for side, each in where.items()
        }

    def _with_found(self, snapshot: Snapshot) -> Snapshot:
        """What a workspace holds besides its records, where a format derives data from them."""
        if self._format.places is None or snapshot.side is Side.STORE or not snapshot.exists:
            return snapshot
        from reconcile.adapters.derived_inputs import read_inputs

        inputs = read_inputs(self._format.name, self._where[Side.WORKSPACE], self._clock())
        return replace(snapshot, derived_inputs=inputs)
