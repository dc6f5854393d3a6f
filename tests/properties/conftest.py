"""Says at the end how many small worlds and stories there were, over all processes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                counts.update({name: value for name, value in report.user_properties if isinstance(value, int)})
    for name, count in counts.items():
        terminalreporter.write_line(f"{count:,} {name}")
