"""The examples of docs/library.md and README.md, run one after the other where `make demo` has reconciled."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from typing import TYPE_CHECKING

import pytest

from tests.support.documents import DOCS, PROJECT

if TYPE_CHECKING:
    from pathlib import Path

_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(PROJECT / "fixtures" / "demo", tmp_path / "fixtures" / "demo")
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=":")
    subprocess.run([str(tmp_path / "fixtures" / "demo" / "run")], check=True, capture_output=True)
    made = tmp_path / ".demo"
    for name, below in {
        "JP_USER_DATA_DIR": "data",
        "RECONCILE_STATE_DIR": "state",
        "XDG_CONFIG_HOME": "config",
    }.items():
        monkeypatch.setenv(name, str(made / below))
    monkeypatch.chdir(made / "project")
    return made


@pytest.mark.parametrize("page", [DOCS / "library.md", PROJECT / "README.md"], ids=lambda page: page.name)
def test_the_examples_run(page: Path, demo: Path) -> None:
    text = page.read_text(encoding="utf-8").split("\n## Reference\n")[0]
    examples = _EXAMPLE.findall(text)
    assert examples
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, page.name, "exec"), names)  # noqa: S102 - our own page
    done = subprocess.run(["reconcile", "--check"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
