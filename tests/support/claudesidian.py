"""Vaults of Claudesidian for tests: the corpus, and small ones made of values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("RECONCILE_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus") / "claudesidian"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")
