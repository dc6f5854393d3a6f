"""The check before publishing: which of a plan's actions would put a secret into the workspace.

Only actions that write files of the workspace are checked, and only events that the workspace doesn't have yet. Files
are found by their digests, which `reconcile.apply` compares again when it copies them: what was checked is written. A
sync with a remote that is not encrypted uses the check, too, and only reports what it finds.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import msgpack
from msgspec.structs import replace

from reconcile.fs.files import TOO_LARGE, Directory, error_text, fingerprint_of, read_all
from reconcile.fs.hashing import digest as digest_of
from reconcile.fs.helper_process import HelperProcess
from reconcile.fs.paths import regular_descriptor
from reconcile.model.commands import typed
from reconcile.model.plan import Item, Kind, Note
from reconcile.model.policy import ForkRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, WHOLE, Place, Side, joined
from reconcile.planning.filters import without_secrets
from reconcile.secrets.detection import Finding, find_secrets, with_masked_secrets
from reconcile.secrets.prefilter import Prefilter
from reconcile.state.allowed_secrets import AllowedSecret, AllowedSecrets
from reconcile.state.connection import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.apply.run import Site
    from reconcile.fs.files import Fingerprint
    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Action, Plan, Write
    from reconcile.model.snapshot import Copy, Digest, File

_MOST_KEPT = 32 << 20
"""Bytes of contents that were read and are kept for the steps that write them."""
WORTH_A_PROCESS = 4 << 20
"""Bytes of contents from which a second process saves time."""


def publishing(plan: Plan) -> list[Action]:
    """Return the actions that put content into the workspace.

    A rebuilt file follows from others that are there. An undo restores what was in the workspace before.
    """
    if isinstance(plan.policy.request, UndoRequest):
        return []
    return [
        action
        for action in plan.actions
        if action.target.side is Side.WORKSPACE and action.writes and action.kind is not Kind.REBUILD
    ]


class SecretCheck:
    """The check of one session. It remembers what it has found in a file, so that a held one costs nothing again."""

    def __init__(self, site: Site, state_directory: str) -> None:
        """Read nothing yet."""
        self._site = site
        self._list = AllowedSecrets(state_directory)
        self._key = b""
        self._prefilter = Prefilter()
        self._known: dict[tuple[Digest, tuple[Digest | None, ...]], tuple[Finding, ...]] = {}
        """The findings by the digests of a file and of the versions before, with fingerprints of the key."""

    def checked(self, plan: Plan, world: WorldState, pending: Mapping[Digest, bytes]) -> Plan:
        """Return the plan without what would publish a secret that isn't allowed, with items that say so.

        ``pending`` has contents that the plan's first actions write. If the policy allows the secrets of a
        conversation, those of its present files are allowed, too. The plan's policy names each allowed secret, so that
        a later plan by it allows no others. Raises `StateError`: the list of allowed secrets can't be read.
        """
        wanted = plan.policy.allow_secrets
        if (key := self._list.key()) != self._key:  # another process may have made it since
            self._key, self._known = key, {}
        files = _Files(self._site, plan, world, pending)
        found, held = self._findings(files, plan)
        plan = replace(plan, contents=files.read) if files.read else plan
        if wanted:
            plan = replace(plan, policy=replace(plan.policy, allow_secrets=dict.fromkeys(wanted, frozenset())))
        if not (held or any(found.values())):
            return plan
        allowed = self._list.fingerprints()
        titles = {action.conversation: action.title for action in publishing(plan)}
        granted: dict[str, dict[str, Finding]] = {}
        for conversation in sorted(found.keys() - {item.conversation for item in held}):
            units = {finding.fingerprint: unit for unit, finding in found[conversation]}
            new = {each.fingerprint: each for _, each in found[conversation] if each.fingerprint not in allowed}
            shown = wanted.get(conversation, frozenset())
            if named := {key: each for key, each in new.items() if _may_allow(shown, each)}:
                granted[conversation] = named
            if others := {key: each for key, each in new.items() if key not in named}:
                resolve = (
                    f"reconcile resolve {typed(conversation)} --allow-secrets",
                    f"reconcile local {typed(conversation)}",
                )
                unit, words = units[next(iter(others))], _named(others.values())
                item = _item(conversation, titles[conversation], unit, words, resolve)
                findings = tuple(each.words for each in others.values())
                held.append(replace(item, secrets=tuple(others), findings=findings))
        plan = _granting(plan, granted) if granted else plan
        return without_secrets(plan, held) if held else plan

    def unallowed(self, plan: Plan, world: WorldState) -> tuple[Plan, dict[str, tuple[Finding, ...]]]:
        """Return the secrets that a plan writes and that are not allowed, by conversation; nothing is blocked.

        The plan is returned with the contents that were read. If the list can't be read, no secret is allowed.
        """
        allowed = frozenset[str]()
        with suppress(StateError):
            self._key, self._known = self._list.key(), {}
            allowed = self._list.fingerprints()
        files = _Files(self._site, plan, world, {})
        found = {
            conversation: {each.fingerprint: each for _, each in pairs if each.fingerprint not in allowed}
            for conversation, pairs in self._findings(files, plan)[0].items()
        }
        plan = replace(plan, contents=files.read) if files.read else plan
        return plan, {conversation: tuple(each.values()) for conversation, each in found.items() if each}

    def _findings(self, files: _Files, plan: Plan) -> tuple[dict[str, list[tuple[str, Finding]]], list[Item]]:
        """Return the findings with their units by conversation, and an item for each whose files can't be checked."""
        found: dict[str, list[tuple[str, Finding]]] = {}
        unread: dict[str, Item] = {}
        writes = [(action, write) for action in publishing(plan) for write in action.writes]
        for (action, write), prepared in zip(writes, self._prepared(files, writes), strict=True):
            try:
                in_write = self._in_write(files, action, write) if prepared is None else prepared
            except (OSError, MemoryError) as error:
                why = error_text(error) if isinstance(error, OSError) else TOO_LARGE
                words = f"{write.target} can't be checked for secrets ({why})"
                unread[action.conversation] = _item(
                    action.conversation, action.title, self._unit_of(files, action, write), words, ()
                )
                continue
            if in_write:
                unit = self._unit_of(files, action, write)
                found.setdefault(action.conversation, []).extend((unit, each) for each in in_write)
        for conversation, shown in plan.policy.allow_secrets.items():
            in_files = self._in_files(files, conversation)
            found.setdefault(conversation, []).extend((WHOLE, each) for each in in_files if _may_allow(shown, each))
        return found, list(unread.values())

    def grant(self, plan: Plan) -> None:
        """Add the secrets that a plan allows to the list. Raises `StateError`."""
        self._list.add([AllowedSecret(*entry) for entry in plan.granted], self._site.clock())

    def keep_key(self) -> None:
        """Keep the key of the fingerprints, for a plan that is saved. Raises `StateError`."""
        self._list.keep_key()

    def _unit_of(self, files: _Files, action: Action, write: Write) -> str:
        return self._site.format.unit_of(files.name_of(action, write)) or WHOLE

    def _prepared(self, files: _Files, writes: Sequence[tuple[Action, Write]]) -> Sequence[tuple[Finding, ...] | None]:
        """Return the findings of each of many writes, half of them found by a helper process.

        None: the check of that write is still to be made. So is one that has failed: it fails again, with the reason.
        """
        size = sum(write.size for _, write in writes)
        if size < WORTH_A_PROCESS:
            self._prefilter.expect(size)
            return [None] * len(writes)
        from threading import Thread  # here: few runs publish that much

        building = Thread(target=self._prefilter.expect, args=(size,))
        building.start()
        for action, write in writes:  # until no more are kept; the helper process has them, too
            if files.is_full:
                break
            with suppress(OSError, MemoryError):
                files.content(action, write)
        building.join()
        half = len(writes) // 2
        theirs, ours = writes[:half], writes[half:]  # the first ones are read already
        with HelperProcess.start(lambda: msgpack.encode(self._in_writes(files, theirs))) as helper:
            found = self._in_writes(files, ours)
            result = helper.result()
        none: list[tuple[Finding, ...] | None] = [None] * half
        by_helper = none if result is None else msgpack.decode(result, type=list[tuple[Finding, ...] | None])
        return [*by_helper, *found]

    def _in_writes(self, files: _Files, writes: Iterable[tuple[Action, Write]]) -> list[tuple[Finding, ...] | None]:
        """Return the findings of each write, None for one that can't be checked."""
        found: list[tuple[Finding, ...] | None] = []
        for action, write in writes:
            try:
                found.append(self._in_write(files, action, write))
            except (OSError, MemoryError):
                found.append(None)
        return found

    def _in_write(self, files: _Files, action: Action, write: Write) -> tuple[Finding, ...]:
        name = files.name_of(action, write)
        key = write.digest, files.digests_before(action, name)
        if (known := self._known.get(key)) is None:
            content = files.content(action, write)
            if content is None:
                # It has changed since the scan, so that the step's precondition fails.
                # RACE: it is written unchecked if it has the scanned content again at that moment.
                return ()
            known = find_secrets(content, self._key, files.before(action, name), self._prefilter)
            self._known[key] = known
        return known

    def _in_files(self, files: _Files, conversation: str) -> Iterator[Finding]:
        for content in files.of_conversation(conversation):
            yield from find_secrets(content, self._key, (), self._prefilter)


class _Files:
    """The contents that a plan writes, and those that both sides have of its conversations."""

    def __init__(self, site: Site, plan: Plan, world: WorldState, pending: Mapping[Digest, bytes]) -> None:
        self._site = site
        self._contents = dict(pending)
        self._room = _MOST_KEPT
        self.read: dict[Place, tuple[Fingerprint, bytes]] = {}
        """The files that the plan copies and that were read, as far as they fit, with their fingerprints."""
        request = plan.policy.request
        self._source = request.id if isinstance(request, ForkRequest) else None
        """The conversation that a requested fork continues: its events are public already, if it is."""
        concerned = {action.conversation for action in plan.actions} | plan.policy.allow_secrets.keys() | {self._source}
        self._copies: dict[str, list[Copy]] = {}
        for copy in (*world.store.copies, *world.workspace.copies):
            if copy.conversation in concerned:
                self._copies.setdefault(copy.conversation, []).append(copy)
        for action in plan.actions:
            self._contents |= {write.digest: write.content for write in action.writes if write.content is not None}

    @property
    def is_full(self) -> bool:
        """Tell whether no more contents are kept."""
        return self._room < 0

    def _files_of(self, conversation: str) -> Iterator[tuple[Copy, File]]:
        return ((copy, file) for copy in self._copies.get(conversation, ()) for file in copy.files)

    def name_of(self, action: Action, write: Write) -> str:
        """Return the name of a written file below its conversation; empty for a record that is one file."""
        path = write.target.path
        if self._site.format.places is not None:
            return path.removeprefix(action.conversation).removeprefix("/")
        if action.unit == WHOLE:
            return path.removeprefix(f"{action.target.path}/")
        return action.unit.removeprefix(EXTRA) if action.unit.startswith(EXTRA) else path.rpartition("/")[2]

    def content(self, action: Action, write: Write) -> bytes | None:
        """Return what is written; None if it isn't there any more."""
        if write.digest in self._contents:
            return self._contents[write.digest]
        for conversation in chain((action.conversation,), self._copies):  # a fork has the files of another one
            for copy, file in self._files_of(conversation):
                if file.digest == write.digest and (content := self._read(copy, file, write.digest)) is not None:
                    return content
        return self._site.vault.read(write.kept) if write.kept is not None else None

    def digests_before(self, action: Action, name: str) -> tuple[Digest | None, ...]:
        """Return the digests of the workspace's versions of a file."""
        return tuple([file.digest for _, file in self._before(action, name)])

    def before(self, action: Action, name: str) -> list[bytes]:
        """Return the workspace's versions of a file, of which the events are public already."""
        contents = (self._read(copy, file) for copy, file in self._before(action, name))
        return [content for content in contents if content is not None]

    def of_conversation(self, conversation: str) -> Iterator[bytes]:
        """Yield the files of a conversation on both sides that can be read."""
        for copy, file in self._files_of(conversation):
            with suppress(OSError, MemoryError):
                if (content := self._read(copy, file)) is not None:
                    yield content

    def _before(self, action: Action, name: str) -> Iterator[tuple[Copy, File]]:
        for conversation in (action.conversation, self._source):
            for copy in self._copies.get(conversation, ()) if conversation is not None else ():
                if copy.side is Side.WORKSPACE:
                    yield from ((copy, file) for file in copy.files if file.name == name)

    def _read(self, copy: Copy, file: File, digest: Digest | None = None) -> bytes | None:
        """Return the bytes of a file, with this digest if one is given; None if there is no such file any more.

        Raises `OSError`.
        """
        place = Place(copy.side, joined(copy.path, file.name))
        if digest is not None and place in self.read:
            return self.read[place][1]
        root = self._site.conversations(place.side)
        try:
            fd = regular_descriptor(os.path.join(root, place.path), os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError:  # the path may be longer than the system takes
            above, _, name = place.path.rpartition("/")
            with Directory.open_root(root) as top, top.below(above) as directory:
                fd = directory.open_file(name)
        try:
            status = os.fstat(fd)
            content = read_all(fd, status.st_size)[0]
        finally:
            os.close(fd)
        if digest is not None and digest_of(content) != digest:
            return None
        if digest is not None and not self.is_full:
            self._room -= len(content)
            if not self.is_full:
                self.read[place] = fingerprint_of(status), content
        return content


def _named(findings: Iterable[Finding]) -> str:
    return "; ".join(finding.words for finding in findings)


def _may_allow(shown: frozenset[str] | None, finding: Finding) -> bool:
    return shown is None or finding.fingerprint in shown


def _granting(plan: Plan, granted: Mapping[str, Mapping[str, Finding]]) -> Plan:
    """Return the plan with the secrets that it allows, by conversation, in its policy too."""
    named = {conversation: frozenset(secrets) for conversation, secrets in granted.items()}
    notes = [
        Note(conversation=conversation, reason=Reason.SECRET_ALLOWED, message=f"allows {_named(secrets.values())}")
        for conversation, secrets in granted.items()
    ]
    return replace(
        plan,
        policy=replace(plan.policy, allow_secrets={**plan.policy.allow_secrets, **named}),
        notes=(*plan.notes, *notes),
        granted=tuple((key, each.kind, id_) for id_, secrets in granted.items() for key, each in secrets.items()),
    )


def _item(conversation: str, title: str | None, unit: str, words: str, resolve: tuple[str, ...]) -> Item:
    return Item(
        conversation=conversation,
        title=title and with_masked_secrets(title),
        unit=unit,
        reason=Reason.SECRET,
        message=f"not published: {words}",
        resolve=resolve,
    )
