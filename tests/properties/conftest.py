"""Says at the end how many small worlds were played, over all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (
        each for found in terminalreporter.stats.values() for each in found if getattr(each, "when", "") == "call"
    )
    properties = (each for report in reports for each in getattr(report, "user_properties", ()))
    count = sum(value for name, value in properties if name == "worlds")
    if count:
        terminalreporter.write_line(f"{count:,} small worlds, every law kept in all that passed")
