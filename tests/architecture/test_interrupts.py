"""An interrupt waits for the end of what must not be interrupted."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal
from reconcile.interrupts import Uninterrupted

for _ in range(2):
    try:
        with Uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            print("to the end")
        print("and on")
    except KeyboardInterrupt:
        print("interrupted")
try:
    os.kill(os.getpid(), signal.SIGINT)
    print("too late")
except KeyboardInterrupt:
    print("at once")
"""


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n") == [*("to the end", "interrupted") * 2, "at once", ""]
