"""Ctrl-C while the library is at work: at its N-th moment at which Python looks whether a signal has come."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import reconcile.library

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_LIBRARY = os.path.dirname(reconcile.library.__file__)


def interrupted(moment: int, call: Callable[[], object]) -> bool:
    """Have a call interrupted; tell whether it was over before that.

    Python looks for signals where a function begins, and where one that is written in C has ended; those count that are
    the library's, or are called by it.
    """
    left = moment

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left
        if event in ("call", "c_return") and _is_near(frame):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left > 0


def _is_near(frame: FrameType) -> bool:
    near = (frame, frame.f_back)
    return any(each is not None and each.f_code.co_filename.startswith(_LIBRARY) for each in near)
