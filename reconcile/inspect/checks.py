"""`doctor` for the formats with derived data: what is wrong at a place, by the format's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Checkup: TypeAlias = Callable[[str, int], tuple["Ill", ...]]


class Ill(Struct, frozen=True):
    """A finding of any format, in words. ``severity`` is error, warning or note; notes alone are no trouble.

    ``repairable``: any run mends it; ``on_request``: only where somebody asks for it, by its ``id``.
    """

    id: str
    kind: str
    severity: str
    place: str
    found: str
    matters: str
    mend: tuple[str, ...]
    repairable: bool
    on_request: bool


def _claudesidian(start: str, now_ns: int) -> tuple[Ill, ...]:
    from reconcile.adapters.claudesidian.files import read_vault
    from reconcile.formats.claudesidian.checks.examine import examine, id_of
    from reconcile.inspect.brief import vault_at

    return tuple(
        Ill(
            id_of(each),
            each.code,
            each.severity.value,
            each.place,
            each.found,
            each.matters,
            (each.mend,),
            each.repairable,
            each.on_request,
        )
        for each in examine(read_vault(vault_at(start)), now_ns // 1_000_000)
    )


def _leslie(start: str, now_ns: int) -> tuple[Ill, ...]:
    from reconcile.adapters.leslie.files import project_at, read_leslie
    from reconcile.formats.leslie.checks.examine import examine

    return tuple(
        Ill(
            each.id,
            each.kind.number or each.kind.value,
            each.severity.value,
            each.place,
            each.found,
            each.kind.matters,
            (each.next,) if each.next else (),
            each.repair is not None and not each.repair.on_request,
            each.repair is not None and bool(each.repair.on_request),
        )
        for each in examine(read_leslie(project_at(start), now_ns))
    )


CHECKUPS: Mapping[str, Checkup] = {"claudesidian": _claudesidian, "leslie": _leslie}
"""What is wrong at or above a directory, at a time; nothing is written."""
