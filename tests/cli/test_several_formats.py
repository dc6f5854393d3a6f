"""Commands in a project with several formats: what names something, and the exit code of several."""

from __future__ import annotations

import pytest

from tests.cli.modules import module

APP, COMMAND, ERRORS = module("app"), module("command"), module("output.errors")


@pytest.mark.parametrize("name", APP.COMMANDS)
def test_what_is_completed_by_ids_runs_or_versions_names_them(name: str) -> None:
    """A new argument that names something must be declared: else the command would do every format."""
    command = APP.main.get_command(None, name)
    kinds = {completer: kind for kind, completer in _completers().items()}
    completed = {
        parameter.name: kinds[parameter._custom_shell_complete]
        for parameter in command.own
        if parameter._custom_shell_complete in kinds
    }
    assert command.names.items() >= completed.items()


def _completers() -> dict[str, object]:
    options = module("options")
    return {"ids": options.IDS, "runs": options.RUNS, "versions": options.VERSIONS, "sources": options.SOURCES}


@pytest.mark.parametrize(
    ("codes", "first"),
    [([0, 0], 0), ([3, 0], 3), ([3, 4], 4), ([4, 1], 1), ([1, 5], 5), ([5, 2], 2), ([0, 130], 130), ([2, 0], 2)],
)
def test_the_first_code_of_the_documented_order_counts(codes: list[int], first: int) -> None:
    assert ERRORS.first_code(codes) == first
