"""Standard output and standard error that never fail: a run finishes its work when nobody reads, or the disk is full.

Every start loads this module, so that it imports little.
"""

from __future__ import annotations

import io
import os
import sys

from .errors import ExitCode, print_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


class _Lenient(io.FileIO):
    """A descriptor whose `write` never raises. After a failure it discards everything."""

    fault: OSError | None = None

    def write(self, data: object) -> int:
        """Write, and wait while a descriptor that doesn't block takes nothing."""
        while self.fault is None:
            try:
                written: int | None = super().write(data)  # type: ignore[arg-type]
            except OSError as error:
                self.fault = error
                self._failed(error)
            else:
                if written is not None:
                    return written
                self._wait()
        return memoryview(data).nbytes  # type: ignore[arg-type]

    def _wait(self) -> None:
        import select

        select.select((), (self,), ())

    def _failed(self, error: OSError) -> None:
        if self.fileno() == 1 and not isinstance(error, ConnectionError):
            print_error(
                f"cannot write to standard output{_name(self.fileno())}: {error.strerror}",
                "only the output is lost; if the command changes something, that is done (exit code 1)",
                as_json="--json" in sys.argv[1:],
            )


def open_output() -> None:
    """Replace standard output and standard error by streams that never fail, and replace what they can't encode."""
    sys.stdout, sys.stderr = _lenient(sys.stdout, "replace"), _lenient(sys.stderr, sys.stderr.errors)


def _lenient(stream: TextIO, errors: str | None) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(_Lenient(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=errors,
        line_buffering=bool(stream.line_buffering),
        write_through=getattr(stream, "write_through", False),
    )


def _name(number: int) -> str:
    """Return the name of an open file in parentheses; nothing where the system has no ``/proc``."""
    try:
        return f" ({os.readlink(f'/proc/self/fd/{number}')})"
    except OSError:
        return ""


def output_error() -> OSError | None:
    """Return the error that stopped standard output, if one did; `ConnectionError`: the reader has closed the pipe."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.fault if isinstance(raw, _Lenient) else None


def flush_output(code: int) -> int:
    """Flush both streams, and return the exit code. A closed pipe is no failure; lost output is one."""
    sys.stdout.flush()
    sys.stderr.flush()
    error = output_error()
    return code if error is None or isinstance(error, ConnectionError) else ExitCode.FAILED
