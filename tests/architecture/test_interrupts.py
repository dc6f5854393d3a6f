"""An interrupt waits for the end of what must not be interrupted, and is raised once."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal
from reconcile.signals import Uninterrupted

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

TAKEN_OVER = """
import os, signal, sys, time
from reconcile.signals import Interrupt, Interrupts

def press():
    os.kill(os.getpid(), signal.SIGINT)

class Finalized:
    def __del__(self):
        press()

def say():
    os.write(1, b"at once\\n")
    return 130

interrupts = Interrupts(say)
try:
    try:
        {how}
        time.sleep(0.1)
        print("not raised")
    finally:
        press()
        print("cleaned up", flush=True)
except Interrupt:
    press()
    print("raised", flush=True)
    {then}
    press()
"""


def pressed(how: str, then: str) -> tuple[int, list[str], str]:
    script = TAKEN_OVER.format(how=how, then=then)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.splitlines(), ran.stderr


@pytest.mark.parametrize("how", ["press()", "Finalized()"])
def test_an_interrupt_is_raised_once(how: str) -> None:
    assert pressed(how, "pass") == (0, ["cleaned up", "raised"], "")
    assert pressed(how, "interrupts.end()") == (0, ["cleaned up", "raised"], "")


def test_one_that_comes_much_later_ends_the_process_at_once() -> None:
    assert pressed("press()", "time.sleep(1.1)") == (130, ["cleaned up", "raised", "at once"], "")


def test_an_interrupt_that_is_to_be_ignored_stays_so() -> None:
    script = 'trap \'\' INT; exec "$0" -c "$1"'
    code = TAKEN_OVER.format(how="press()", then="pass")
    ran = subprocess.run(["sh", "-c", script, sys.executable, code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.splitlines(), ran.stderr) == (0, ["not raised", "cleaned up"], "")


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n") == [*("to the end", "interrupted") * 2, "at once", ""]
