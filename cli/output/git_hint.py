"""One line where git still has what a command takes out of the workspace: reconcile doesn't change its history."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.fs.git_state import has_committed

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look


def tell_history(session: Session, look: Look, conversations: Collection[str]) -> None:
    """Say of which conversations git has files, in its index or its last commit."""
    top = session.roots.workspace_conversations
    paths: dict[str, list[str]] = {}
    for copy in look.workspace.copies:
        if copy.conversation in conversations:
            paths.setdefault(copy.conversation, []).append(os.path.join(top, copy.path))
    known = [each for each, found in paths.items() if has_committed(session.roots.project, found)]
    if known:
        words = "git has files of it" if len(known) == 1 else "git has files of them"
        session.messages.append(
            f"{', '.join(known)}: {words}; what was committed stays in git's history, which reconcile doesn't change"
        )
