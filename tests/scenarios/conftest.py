"""The option that rewrites what scenario files expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-scenarios",
        action="store_true",
        help="rewrite the plans and trees that scenario files expect to what the pure level finds",
    )
