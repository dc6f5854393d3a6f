"""Which two sides a command is about, and what it is asked to do there: what every start pays for, and no more."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reconcile.adapters.fixed.markers import MARKS, format_at
from reconcile.adapters.locate import locate, lost_format
from reconcile.adapters.roots import Request
from reconcile.config import Settings, load_settings
from reconcile.model.options import Layout, Prefer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.model.policy import Policy

    from .arguments import Options

_EVERYTHING: Mapping[str, frozenset[str]] = {"only": frozenset(), "below": frozenset()}


def find_roots(options: Options) -> Roots:
    """Locate the two sides."""
    cwd = os.getcwd()
    return locate(options.format, options.workspace, options.store, cwd, os.environ, sys.platform)


def fixed_format(options: Options) -> str | None:
    """The format with fixed places that is asked for, or that is found here, or was; None: another."""
    if options.format is not None:
        return options.format if options.format in MARKS else None
    request = Request(options.workspace, options.store, os.getcwd(), os.environ, sys.platform)
    start = request.path(options.workspace or "")
    return format_at(start) or lost_format(request)


def settings_of(roots: Roots) -> Settings:
    """Read the configuration for this workspace."""
    return load_settings(os.environ, roots.workspace_id)


def with_layout(options: Options, settings: Settings) -> Settings:
    """Let the option for the layout win over the settings."""
    return settings._replace(layout=Layout(options.layout)) if options.layout else settings


def policy_of(options: Options, settings: Settings, ids: Mapping[str, frozenset[str]] = _EVERYTHING) -> Policy:
    """Put options and settings together; ``ids`` are the resolved ``only`` and ``below``."""
    from reconcile.model.policy import Policy  # here: where nothing has changed none is needed

    settings = with_layout(options, settings)
    return Policy(
        layout=settings.layout,
        prefer=Prefer(options.prefer),
        stream=settings.stream,
        diverged=settings.diverged,
        missing=settings.missing,
        accept_bulk="bulk" in options.accept,
        only=ids["only"],
        below=ids["below"],
    )
