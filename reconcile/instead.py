"""What is planned instead of a plain run when a command asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.core.requests import TakeBack
from reconcile.core.restore import NoPlaceError, plan_restore
from reconcile.core.undo import plan_undo
from reconcile.kept import NoVersionError, find_versions, kept_units
from reconcile.past import find_run, past_run

if TYPE_CHECKING:
    from reconcile.core.plan import Plan
    from reconcile.core.policy import Policy
    from reconcile.core.requests import Request
    from reconcile.session import Look, Session


def plan_instead(session: Session, request: Request, look: Look, policy: Policy, now_ns: int) -> Plan:
    """Return the plan of a command that isn't a plain run.

    Raises:
        NoRunError, NoVersionError, VaultError: what it names isn't there.
    """
    if isinstance(request, TakeBack):
        past = past_run(session.state, find_run(session.state, request.run), session.checkout)
        return plan_undo(past, look.store, look.workspace, policy, session.rules, now_ns)
    versions = find_versions(session.state, request.version, session.format)
    units = kept_units(session.state, session.vault, versions, session.format)
    try:
        return plan_restore(units, look.store, look.workspace, look.memory, policy, session.rules, now_ns)
    except NoPlaceError as error:
        raise NoVersionError(f"{request.version}: {error}") from None
