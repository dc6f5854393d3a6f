"""The library for programs: a mutable scope writes its changes before it releases its lock (docs/library.md).

No call to save can be forgotten. A `Workspace` returns handles, and a handle's lock returns a mutable scope. Closing
the scope writes changes to the store, and to the workspace if the conversation is projected, while JP's own
cross-process lock is still held.
"""

from reconcile.library.conversation import ConversationHandle, ConversationLock, ConversationMut, Draft
from reconcile.library.errors import (
    BusyError,
    ChangedError,
    HasChildrenError,
    InvalidValueError,
    LibraryError,
    LockError,
    MisuseError,
    PersistError,
    ReleasedError,
    UnknownConversationError,
    UnreadableError,
)
from reconcile.library.locks import JpLocks, LockBackend, NoLocks
from reconcile.library.storage import Change, NullBackend, PersistBackend, RecordingBackend, Removal, Strategy
from reconcile.library.values import Event, Events, Json, Metadata, View, new_event, plain, thawed, timestamp
from reconcile.library.workspace import Workspace

CASCADE = Strategy.CASCADE
PROMOTE = Strategy.PROMOTE

__all__ = [
    "CASCADE",
    "PROMOTE",
    "BusyError",
    "Change",
    "ChangedError",
    "ConversationHandle",
    "ConversationLock",
    "ConversationMut",
    "Draft",
    "Event",
    "Events",
    "HasChildrenError",
    "InvalidValueError",
    "JpLocks",
    "Json",
    "LibraryError",
    "LockBackend",
    "LockError",
    "Metadata",
    "MisuseError",
    "NoLocks",
    "NullBackend",
    "PersistBackend",
    "PersistError",
    "RecordingBackend",
    "ReleasedError",
    "Removal",
    "Strategy",
    "UnknownConversationError",
    "UnreadableError",
    "View",
    "Workspace",
    "new_event",
    "plain",
    "thawed",
    "timestamp",
]
