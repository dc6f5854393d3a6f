"""Detectors of secrets compared: planted keys that each finds, false alarms, and CPU time.

``python -m tests.bench.secrets`` makes the keys from a seed (`tests.support.planted`). It looks for false alarms in the
repository's fixtures and in the directory of ``RECONCILE_CORPUS``, which have no secret. detect-secrets is compared if
it is installed. Both get the same decoded texts: alone, detect-secrets would read no base64.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from reconcile.secrets.detection import find_secrets
from reconcile.secrets.texts import new_texts
from tests.support.planted import KINDS, PLACES, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROJECT = Path(__file__).resolve().parents[2]
EACH = 6
"""Keys of each kind in each place."""
KEY = b"a key for fingerprints"
OURS, OTHER = "reconcile", "detect-secrets"
_OURS_ALONE = """
import json, time
import reconcile.engine.dispatch  # as in every run that plans
start = time.process_time()
from reconcile.secrets.detection import find_secrets
find_secrets(b'[\\n  {"content": "hello"}\\n]', b"key")
print((time.process_time() - start) * 1000)
"""
_OTHER_ALONE = """
import json, time
import reconcile.engine.dispatch
start = time.process_time()
from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings
with default_settings(): SecretsCollection().scan_file("LICENSE")
print((time.process_time() - start) * 1000)
"""


def ours(content: bytes) -> set[str]:
    """Return the fingerprints of the secrets that the rules of this repository find in a file."""
    return {finding.fingerprint for finding in find_secrets(content, KEY)}


def other(content: bytes) -> set[str]:
    """Return the hashes of the secrets that detect-secrets finds in the decoded texts of a file, with its defaults."""
    # here: it need not be installed
    collection = importlib.import_module("detect_secrets").SecretsCollection()
    default_settings = importlib.import_module("detect_secrets.settings").default_settings
    # Only the scan of a file applies its filters; it finds most of the planted keys in a file of this type.
    with NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8", errors="replace") as file, default_settings():
        file.write("\n".join(piece.text for piece in new_texts(content).pieces))
        file.flush()
        collection.scan_file(file.name)
    return {secret.secret_hash for _, secret in collection}


def planted(seed: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the kind of a secret, a stream with the secret, and the same stream with words in its place."""
    chance = random.Random(seed)
    for kind, make in KINDS.items():
        for place in PLACES.values():
            for number in range(EACH):
                secret, other_words = place(make(chance), random.Random(number)), random.Random(number)
                yield kind, stream_of(secret), stream_of(place("some words", other_words))


def clean() -> list[bytes]:
    """Return files without a secret: the fixtures, and those of the corpus."""
    tops = [PROJECT / "fixtures", *([Path(corpus)] if (corpus := os.environ.get("RECONCILE_CORPUS")) else [])]
    paths = sorted(path for top in tops for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    return [path.read_bytes() for path in paths]


def loading(program: str) -> float:
    """Return the CPU time of a detector from its import to the first answer, in ms; the best of five."""
    runs = [
        subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, check=True) for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def row(name: str, find: Callable[[bytes], set[str]], program: str, seed: int) -> str:
    """Return a row of the table, after the missed kinds on lines of their own."""
    streams = list(planted(seed))
    missed = [kind for kind, content, without in streams if not find(content) - find(without)]
    for kind in dict.fromkeys(missed):
        print(f"  {name} misses {missed.count(kind)} of {EACH * len(PLACES)}: {kind}")
    files = clean()
    size = sum(map(len, files)) / 1e6
    start = time.process_time()
    alarms = sum(len(find(content)) for content in files)
    seconds = time.process_time() - start
    found = f"{len(streams) - len(missed)} of {len(streams)}"
    return f"| {name} | {found} | {alarms} in {size:.1f} MB | {loading(program):.1f} ms | {size / seconds:.1f} MB/s |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=25)
    seed = parser.parse_args().seed
    rows = [row(OURS, ours, _OURS_ALONE, seed)]
    if importlib.util.find_spec("detect_secrets"):
        rows.append(row(OTHER, other, _OTHER_ALONE, seed))
    else:
        print(f"{OTHER} is not installed: pip install {OTHER}")
    print("| Detector | Planted keys found | False alarms | Load and first event | Speed |")
    print("| --- | --- | --- | --- | --- |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
