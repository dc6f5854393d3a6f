"""Removal of a whole directory: first every file is in the vault, and every file is known to the plan."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct, field

from reconcile.apply.staging import DriftError
from reconcile.fs.dirfd import kind_of
from reconcile.fs.files import Fingerprint, fingerprint_of, mtime_of
from reconcile.model.snapshot import Foreign, Place, nested_git
from reconcile.model.units import is_nested_git, is_of_another
from reconcile.state.vault import Version, VersionKind

if TYPE_CHECKING:
    from reconcile.apply.staging import Stage
    from reconcile.fs.mutations import Root
    from reconcile.model.plan import Action


class DirectoryRemoval(Struct):
    """The removal of one directory."""

    root: Root
    action: Action
    stage: Stage
    kept: dict[str, Fingerprint] = field(default_factory=dict)
    """The saved files, by name below the directory, with their fingerprints."""

    def save(self) -> None:
        """Save every file and link to the vault.

        Raises:
            DriftError: an entry is unknown to the plan, or the directory is missing.
            OSError: an entry can't be saved.
        """
        base = self.action.target.path
        expected = {expect.place.path: expect.digest for expect in self.action.inside}
        managed = set(expected)
        for path, status in self._entries_there(base):
            name = path[len(base) + 1 :]
            if is_nested_git(name, self.stage.unit_of, directory=stat.S_ISDIR(status.st_mode)):
                obstacle = nested_git(path, directory=not stat.S_ISREG(status.st_mode)).obstacle
                raise OSError(errno.ENOTSUP, obstacle, self.root.absolute(path))
            if stat.S_ISDIR(status.st_mode):
                continue
            if is_of_another(name, self.stage.id_of):
                raise DriftError(f"{self.action.target}: another conversation lies in it by now")
            if stat.S_ISREG(status.st_mode):
                if self.stage.unit_of(name) is not None and path not in managed:
                    raise DriftError(f"{self.action.target.side}:{path}: came after the plan was made")
                place = Place(self.action.target.side, path)
                self.kept[name] = fingerprint_of(self.stage.save(self.action, place, name, expected.get(path)).status)
            elif stat.S_ISLNK(status.st_mode):
                self._save_link(path, name, status)
            elif path in managed:
                raise DriftError(f"{self.action.target.side}:{path}: found {kind_of(status.st_mode)}, expected a file")
            else:
                obstacle = Foreign(path, kind_of(status.st_mode), special=True).obstacle
                raise OSError(errno.ENOTSUP, obstacle, self.root.absolute(path))

    def _entries_there(self, path: str) -> list[tuple[str, os.stat_result]]:
        """Return the entries to remove; none if a directory without files was removed with its last entry."""
        try:
            return self._entries(path)
        except (FileNotFoundError, NotADirectoryError):
            if self.action.inside:
                raise DriftError(f"{self.action.target}: found nothing, expected the directory of the plan") from None
            return []

    def _entries(self, path: str) -> list[tuple[str, os.stat_result]]:
        """Return the directory and all entries below it, or the single file, each with its status."""
        status = self.root.status(path)
        return [(path, status), *(self.root.walk(path) if stat.S_ISDIR(status.st_mode) else ())]

    def _save_link(self, path: str, name: str, status: os.stat_result) -> None:
        kept = self.stage.vault.put_bytes(self.root.read_link(path))
        self.kept[name] = fingerprint_of(status)
        self.stage.versions.append(
            Version(
                digest=kept.digest,
                xxh3=kept.xxh3,
                size=kept.size,
                conversation=self.action.conversation,
                unit=self.action.unit,
                file=name,
                side=self.action.target.side,
                path=path,
                mtime_ns=mtime_of(status),
                run=self.stage.run,
                why=self.action.reason.value,
                kind=VersionKind.LINK,
            )
        )

    def carry_out(self) -> None:
        """Move the directory into the staging directory, check it again, and remove it.

        It is put back if a file changed, or if the copy that has to stay is missing. A process that has a file open may
        write to it even after the check. Such a file stays in the staging directory, and the run's end saves it.
        """
        target = self.action.target
        aside = self.stage.new_name(target.side)
        if not self.kept and not self.root.exists(target.path):
            return
        try:
            self.root.rename(target.path, aside)
        except FileNotFoundError:
            raise DriftError(f"{target}: found nothing, expected the directory of the plan") from None
        self.stage.renamed.add(os.path.dirname(self.root.absolute(target.path)))
        entries = self._entries(aside)
        present = {
            path[len(aside) + 1 :]: fingerprint_of(status)
            for path, status in entries
            if not stat.S_ISDIR(status.st_mode)
        }
        if present.keys() == self.kept.keys() == {""}:  # a single file: the rename has changed its ctime
            present[""] = (*present[""][:-1], self.kept[""][-1])
        if present != self.kept:
            self._put_back(aside, "changed while it was being removed")
        try:
            for expect in self.action.beside:
                self.stage.check(expect)
        except DriftError as drift:
            self._put_back(aside, str(drift))
        self.stage.remove_empty_parents(target)
        with contextlib.suppress(OSError):  # it has left its place; the end of the run cleans up the rest
            self.root.remove_entries(entries)

    def _put_back(self, aside: str, why: str) -> NoReturn:
        target = self.action.target
        try:
            self.root.rename_new(aside, target.path)
        except FileExistsError:
            words = "was made anew while it was being removed; the old one is in the vault"
            raise DriftError(f"{target}: {words}") from None
        raise DriftError(f"{target}: {why}; it is back in its place")
