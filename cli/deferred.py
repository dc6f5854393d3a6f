"""Defers modules that msgspec and filelock import, and that a run with a change doesn't use.

They are a twentieth of such a run. From Python 3.15 on, filelock itself defers its own (`__lazy_modules__`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

_UNUSED = ("ipaddress", "secrets", "textwrap", "traceback")


class _Deferred(ModuleType):
    """Stands for a module, and loads it when an attribute is read."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        module = import_module(self.__name__)
        vars(self).update(vars(module))
        return getattr(module, name)


def load_msgspec() -> None:
    """Load msgspec without the modules that it doesn't need here, and defer those of `filelock`.

    Only for a process that is the command's own.
    """
    for name in _UNUSED:
        if name not in sys.modules:
            sys.modules[name] = _Deferred(name)
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # the import fails: msgspec takes typing's names
        try:
            import msgspec  # noqa: F401 - the others find it loaded
        finally:
            del sys.modules["typing_extensions"]
