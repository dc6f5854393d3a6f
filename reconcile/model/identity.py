"""Identities of directories: device, inode, and the inode's generation if the file system has one, joined by colons.

A file system such as ext4 gives the inode of a removed directory to the next one at once, with another generation.
"""

from __future__ import annotations


def is_same_directory(identity: str, recorded: str) -> bool:
    """Tell whether a directory is the recorded one; old records have no generation."""
    return recorded in (identity, without_generation(identity))


def without_generation(identity: str) -> str:
    """Return only device and inode of an identity."""
    return ":".join(identity.split(":")[:2])
