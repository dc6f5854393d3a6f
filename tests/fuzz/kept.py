"""Inputs that once failed a check, one file each: bytes as they were, anything else as JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "kept"


def keep(name: str, value: Any) -> Path:
    """Write an input down, under a name made of its content."""
    content = value if isinstance(value, bytes) else (json.dumps(value, indent=1) + "\n").encode()
    path = KEPT / name / f"{hashlib.sha256(content).hexdigest()[:12]}{'.bin' if isinstance(value, bytes) else '.json'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def load(path: Path) -> Any:
    """Read an input again; a file of atheris' own naming is bytes."""
    content = path.read_bytes()
    return json.loads(content) if path.suffix == ".json" else content


def paths() -> list[Path]:
    return sorted(path for path in KEPT.glob("*/*") if path.is_file())
