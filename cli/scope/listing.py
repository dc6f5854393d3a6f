"""``reconcile ls --all`` and ``status --all``: what the command prints of each project of the user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.adapters.claude_code.places import FORMAT
from reconcile.adapters.everywhere import every_project, with_stores

from ..arguments import Turn
from ..output.errors import FAILURES, ExitCode, first_code, report_failure
from ..output.interaction import print_message
from ..output.text import Style, short_path, show
from .projects import BESIDE, RESTORE_ALL, home_request, no_project, options_for, refuse_beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..arguments import Options


def list_all(options: Options, run: Callable[[Options], int], command: str) -> int:
    """List every project with ``run``, and return the worst exit code. No project stops the others.

    ``ls`` prints below a heading with the project, ``status`` one line that begins with it.
    """
    refuse_beside(options, BESIDE - {"dry_run", "check", "verbose", "quiet"})
    request = home_request()
    found = every_project(request, options.format)
    targets = sorted({*found.targets, *with_stores(request, options.format)})
    codes, projects = [int(ExitCode.DONE)], list[dict[str, object]]()
    for number, target in enumerate(targets):
        own = Turn(options_for(options, target), target.format)
        own.all, own.no_pager = False, True
        name = f"{short_path(target.project)} ({target.format})"
        gone = "" if os.path.isdir(target.project) else ", gone"
        own.heading = Style.choose(options.color)(f"{name[:-1]}{gone})", bold=True)
        if command == "ls" and not options.json:
            show([*([""] if number else []), own.heading])
        try:
            codes.append(run(own))
        except FAILURES as error:
            if not isinstance(error, Exception):
                raise  # Ctrl-C is about all of them
            codes.append(report_failure(error, as_json=options.json, of=name))
        part = "list" if command == "ls" else command
        projects += [{"project": target.project, "format": target.format, part: each} for each in own.documents]
    if options.json:
        from ..output.documents import print_document  # here: text needs none

        print_document(options, {"format": f"reconcile.{command}.all/1", "projects": projects})
    elif not targets:
        show([no_project(found.left_out)])
    if any(each.lost == FORMAT for each in found.left_out) and not options.json:
        print_message(
            options, "Claude Code has no session left; to restore those of a project: reconcile recover in it"
        )
    for each in (each for each in found.left_out if not (each.lost == FORMAT or options.json)):
        print_message(options, f"left out: {short_path(each.path)}: {each.why}")
    if sum(bool(each.lost) for each in found.left_out) > 1 and not options.json:
        print_message(options, RESTORE_ALL)
    return first_code([*codes, ExitCode.HELD] if found.left_out and not targets else codes)
