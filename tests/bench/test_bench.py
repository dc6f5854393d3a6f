"""The benchmark runs, and says what it found."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from reconcile.planning.planner import plan_by_rules
from tests.bench import least, plot, results, rules, table, targets
from tests.bench.commands import LABELS
from tests.bench.race import Sample
from tests.bench.results import START_COUNT, Results
from tests.bench.sections import GROWTH, SECTIONS, USUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROJECT = Path(__file__).parents[2]
PEERS = ("rsync -a --dry-run", "unison -batch -times", "git status -s")


def runs(seconds: float, peak: int) -> dict[str, list[Sample]]:
    """Three rounds: reconcile half as fast as its peers, and a round in which everything was slow."""
    times = (seconds, seconds * 10, seconds)
    own = {"reconcile": [Sample(2 * each, peak) for each in times]}
    return {peer: [Sample(each, peak // 2) for each in times] for peer in PEERS} | own


@pytest.fixture
def found() -> Results:
    """Of the start 20 MB, and 2 KB for each conversation above it."""
    sizes = {START_COUNT: 0.01, 1_000: 0.1, 10_000: 1.0}
    no_op = {size: runs(seconds, 20_000_000 + (size - START_COUNT) * 2_000) for size, seconds in sizes.items()}
    growth = {size: runs(seconds, 20_000_000) for size, seconds in {10_000: 1.0, 100_000: 11.5}.items()}
    return Results(["a machine"], 9_000_000, {"no-op": no_op, "growth-no-op": growth})


def bench(*words: str | Path) -> str:
    command = [sys.executable, "-m", "tests.bench.run", *map(str, words)]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    ("world", "actions"), [*zip(rules.WORLDS.values(), (0, 0, 100, 100, 1), strict=True)], ids=rules.WORLDS
)
def test_the_rules_are_measured_on_what_the_worlds_say(world: Callable[[int], rules.World], actions: int) -> None:
    plan = plan_by_rules(*world(100), rules.RULES, rules.NOW_NS)
    assert (len(plan.actions), plan.held, plan.aside, plan.notes) == (actions, (), (), ())


def test_the_rules_are_measured_beside_another_checkout() -> None:
    words = ("--count", "100", "--rounds", "1", "--pairs", "1", "--against", str(PROJECT))
    command = [sys.executable, "-m", "tests.bench.rules", *words]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    _, *lines = ran.stdout.splitlines()
    assert [line[:26].rstrip() for line in lines] == list(rules.WORLDS)
    assert all(float(figure) > 0 for line in lines for figure in line[26:].split())


@pytest.mark.long
def test_every_question_is_asked_and_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    words = ("--sizes", "10", "--rounds", "1", "--dir", tmp_path, "--save", kept)
    bench("--only", "no-op", *words)
    said = bench("--only", ",".join(name for name in USUAL if name not in ("no-op", "commands")), *words)
    asked = USUAL.keys() - {"commands"}  # they have a test of their own
    assert all(f"\n{USUAL[name].title}\n" in said for name in asked)
    assert set(results.load(kept).sections) == asked
    assert list(tmp_path.iterdir()) == [kept]
    assert str(tmp_path) not in kept.read_text()


def test_a_command_is_judged_by_its_ratio_to_a_run_with_nothing_to_do() -> None:
    slow = {"reconcile status": 2.5, "reconcile doctor": 3.5}
    labels = ["reconcile", *(f"reconcile {words}" for words in LABELS)]
    samples = {label: [Sample(slow.get(label, 1.0), 1)] for label in labels}
    found = Results([], 1, {"commands": {1_000: samples, 10_000: samples}, "growth-commands": {100_000: samples}})
    judged = [(verdict.work, verdict.size, verdict.met) for verdict in targets.verdicts(found) if verdict.measured > 1]
    assert judged == [
        ("reconcile status, to reconcile", "10,000", False),
        ("reconcile status, to reconcile", "100,000", False),
        ("reconcile doctor, to reconcile", "10,000", True),
        ("reconcile doctor, to reconcile", "100,000", True),
    ]


@pytest.mark.long
def test_growth_and_every_command_are_measured_with_small_files(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    said = bench("--growth", "--sizes", "10", "--rounds", "1", "--dir", tmp_path, "--save", kept)
    assert all(f"\n{section.title}\n" in said for section in GROWTH.values())
    measured = results.load(kept).sections["growth-commands"][10]
    assert list(measured) == ["reconcile", *(f"reconcile {words}" for words in LABELS)]
    assert sorted(LABELS) == sorted(targets.COMMANDS)
    assert SECTIONS["commands"].measure is SECTIONS["growth-commands"].measure
    assert "met" not in said, "so few conversations have no target"


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("rsync"), reason="no rsync here")
def test_a_sync_is_measured_beside_its_peers(tmp_path: Path) -> None:
    words = ("-m", "tests.bench.machines", "--size", "10", "--rounds", "1", "--small", "--dir", str(tmp_path))
    said = subprocess.run((sys.executable, *words), cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in said.splitlines() if line[0] == "|"]
    labels, found = rows[0], {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[2:]}
    assert {"reconcile sync", "reconcile sync, encrypted"} < set(labels)
    assert list(found) == [
        "first sync",
        "nothing to do",
        "one conversation continued",
        "100 continued",
        "a new machine",
    ]
    assert found["nothing to do"]["reconcile sync"].endswith(", 0 B")
    assert not found["one conversation continued"]["reconcile sync"].endswith(", 0 B")


def test_a_ratio_is_that_inside_the_rounds(found: Results) -> None:
    no_op = found.sections["no-op"]
    assert results.ratio(no_op[1_000], "reconcile", PEERS[0]) == 2.0
    assert results.ratio(no_op[1_000], "reconcile", "not installed") is None


def test_memory_is_what_lies_above_the_start(found: Results) -> None:
    assert results.memory_each(found.sections["no-op"], "reconcile", found.floor) == 2_000
    assert results.memory_each(found.sections["no-op"], "reconcile", 1e9) is None


def test_the_start_has_no_column_beside_others(found: Results) -> None:
    assert results.shown(found.sections["no-op"]) == [1_000, 10_000]
    assert results.growth(found.sections["no-op"], "reconcile") == pytest.approx(10)


def test_a_target_is_shown_beside_the_least_that_python_takes() -> None:
    seconds = {"rsync -a": 1.0, least.LABEL: 1.5, "reconcile": 2.0}
    samples = {label: [Sample(each, 1)] for label, each in seconds.items()}
    (judged, *_) = targets.verdicts(Results([], 1, {"one": {10_000: samples}}))
    assert (judged.limit, judged.measured, judged.least) == (0.45, 2.0, 1.5)
    assert targets.render([judged]).splitlines()[-1].split()[-5:] == ["10,000", "0.45", "2.00", "1.50", "NO"]


def test_every_target_is_judged(found: Results) -> None:
    judged = [
        (each.work, each.size, round(each.limit, 2), round(each.measured, 2), each.met)
        for each in targets.verdicts(found)
    ]
    assert judged == [
        ("nothing changed, to rsync -a --dry-run", "1,000", 1.0, 2.0, False),
        ("nothing changed, to rsync -a --dry-run", "10,000", 0.5, 2.0, False),
        ("nothing changed, to unison -batch -times", "1,000", 1.0, 2.0, False),
        ("nothing changed, to unison -batch -times", "10,000", 0.45, 2.0, False),
        ("growth: nothing changed, small files", "100,000", 11.0, 11.5, False),
        ("KB a conversation, nothing changed", "10,000", 1.5, 2.0, False),
        ("KB a conversation, growth: nothing changed", "100,000", 1.5, 0.0, True),
    ]
    assert table.render(found).count("  NO\n") == 6


def test_targets_name_questions_and_their_contenders() -> None:
    assert {section for section, _, _ in targets.RATIOS} == set(USUAL) <= set(SECTIONS)


def test_the_targets_are_those_of_the_page() -> None:
    page = (PROJECT / "docs" / "benchmarks.md").read_text().split("\n## Targets\n", 1)[1].split("\n## ", 1)[0]
    limits = [
        (float(few or 0), float(many or few)) for few, many in re.findall(r"\| ([\d.]*) ?\| ([\d.]*)[^|]*\|\n", page)
    ]
    others = (targets.MEMORY, targets.MEMORY_OF_ALL["first"], targets.GROWTH_PER_SIZE * 10, targets.RESIDENT)
    ratios = ((few or 0.0, many) for few, many in targets.RATIOS.values())
    assert limits == [*ratios, *((0.0, limit) for limit in others), (targets.EVENT, targets.EVENT)]


def test_the_plot_has_a_line_for_every_tool_and_question(found: Results) -> None:
    drawn = ET.fromstring(plot.draw(found))  # noqa: S314 -- our own
    names = [line.findtext("{*}title") for line in drawn.iter("{http://www.w3.org/2000/svg}polyline")]
    assert names == [*PEERS, "reconcile"] * 2
    for panel in drawn.findall("{*}g"):
        heights = sorted(float(text.attrib["y"]) for text in _named(panel, names))
        assert all(below - above >= plot.LINE - 0.2 for above, below in pairwise(heights))


def _named(panel: ET.Element, names: list[str | None]) -> Iterator[ET.Element]:
    return (text for text in panel.findall("{*}text") if text.text in names)
