"""Everything known of one conversation, as plain values for ``status ID``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reconcile.model.reasons import CASES, case_of
from reconcile.model.snapshot import Side

if TYPE_CHECKING:
    from reconcile.model.units import Unit
    from reconcile.planning.context import Board
    from reconcile.planning.rules.views import View


def describe(board: Board, conversation: str) -> dict[str, Any]:
    """Return places, intent, parents and the case of each unit with the digests and times of all three."""
    view = board.views[conversation]
    intent = view.intent
    chain = list(board.tree.ancestors(conversation)) if conversation in board.tree else []
    found: dict[str, Any] = {
        "intent": "local" if view.local else intent.kind.value if intent else "projected" if view.agreed else "none",
        "waits_for": intent.waits_for if intent else None,
        "parents": chain,
        "known_parent": view.known_parent,
        "units": [_unit(view, name) for name in _names(view)],
    }
    for side in Side:
        seen = view.side(side)
        found[side.value] = [copy.path for copy in ((seen.main, *seen.stale) if seen.main else ())]
    return found


def _names(view: View) -> list[str]:
    base = view.agreed.units if view.agreed else {}
    return sorted({*base, *view.store.units, *view.workspace.units})


def _unit(view: View, name: str) -> dict[str, Any]:
    base = view.agreed.units.get(name) if view.agreed else None
    seen = {side: view.side(side).units.get(name) for side in Side}
    broken = [side.value for side, unit in seen.items() if unit is not None and unit.digest is None]
    case = None if broken else case_of(base, view.store.digest(name), view.workspace.digest(name))
    return {
        "unit": name,
        "case": case,
        "meaning": CASES[case][1] if case else f"can't be read in the {' and the '.join(broken)}",
        "baseline": {"digest": base} if base else None,
        "store": _seen(seen[Side.STORE]),
        "workspace": _seen(seen[Side.WORKSPACE]),
    }


def _seen(unit: Unit | None) -> dict[str, Any] | None:
    if unit is None:
        return None
    fault = unit.fault and f"found {unit.fault.found}, expected {unit.fault.expected}"
    return {"digest": unit.digest, "mtime_ns": unit.mtime_ns, "time": time_text(unit.mtime_ns), "fault": fault}


def time_text(mtime_ns: int) -> str:
    """Return a time in UTC to the second; one that no calendar holds as the bare number."""
    try:
        return datetime.fromtimestamp(mtime_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{mtime_ns} ns"
