"""Forks of records, as far as the stories of Claude Code don't show them."""

from __future__ import annotations

import pytest

from reconcile.model.baseline import Baseline
from reconcile.model.format import EventSelection
from reconcile.model.policy import ForkRequest, Policy
from reconcile.model.snapshot import Side, Unreadable
from reconcile.planning.context import RefusedError
from reconcile.planning.decide import decide
from reconcile.planning.requests.fork_record import plan_record_fork
from tests.support.formats.notes import FORMAT, RULES, side


def test_what_changes_while_it_is_read_is_not_forked() -> None:
    files = {"shopping.md": b"bread\n"}
    context = decide(side(Side.STORE, files), side(Side.WORKSPACE, files), Baseline(), Policy(), RULES, 0)
    changed = {"shopping.md": Unreadable("shopping.md", "changed", "the content that was scanned")}
    with pytest.raises(RefusedError, match=r"shopping\.md: .*changed"):
        plan_record_fork(context, ForkRequest("shopping.md", EventSelection(), uuid="x"), FORMAT, changed)
