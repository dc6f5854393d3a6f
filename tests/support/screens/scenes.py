"""The scenes: which commands are shown on the files of the demo, and what each screen shows in the end."""

from __future__ import annotations

import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.projects.world import SCRIPT
from tests.support.screens.terminal import COLORS
from tests.support.screens.world import BACKUPS, LETTER, MACOS, NOTES, Change, Live, Shot, Step, Typed, World

Story = dict[str, tuple[Step, ...]]

STORIES: tuple[Story, ...] = (
    {
        "daily/first-run": (Shot("status"), Shot("--dry-run"), Shot("", "y\n"), Shot("")),
        "look/ls": (Shot("ls"), Shot("ls --tree"), Shot("ls --root"), Shot("ls --tree --html ~/tree.html")),
        "daily/status": (Change("edit both"), Change("break"), Shot("status"), Shot(f"status {NOTES}")),
        "daily/diff": (Shot("diff 'release letter'"),),
        "daily/dry-run": (Shot("--dry-run"),),
        "daily/review": (Shot("review --plain", "n\nn\nn\nn\n"),),
        "daily/conflict": (Shot("", "d\nw\nskip\n"), Shot(f"diff {NOTES}")),
        "daily/resolve": (Shot(f"resolve {MACOS} --take store"),),
        "look/log": (Shot("log"), Shot("log RUN")),
        "maintain/vault": (Shot("vault"), Shot("vault --prune --older-than 6m --dry-run")),
        "maintain/checkouts": (Shot("checkouts"),),
        "for-git/hooks": (Shot("hooks --help"),),
        "maintain/service": (Shot("service --help"),),
        "maintain/remote": (Shot("remote --help"),),
        "maintain/completion": (Shot("completion --help"),),
        "daily/sync": (Shot("sync --help"),),
        "daily/pull": (Shot("pull --help"),),
        "daily/push": (Shot("push --help"),),
        "for-git/merge-driver": (Shot("merge-driver --help"),),
        "for-git/textconv": (Shot("textconv --help"),),
        "recover/undo": (Shot("undo", "y\n"),),
        "recover/redo": (Shot("redo", "y\n"), Shot("log")),
        "organise/local": (Shot(f"local {BACKUPS} --dry-run"), Shot(f"local {BACKUPS}")),
        "organise/project": (Shot(f"project {BACKUPS}"), Shot(f"project {LETTER} --dry-run")),
        "organise/fork": (Shot(f"fork {NOTES} --last 1 --title 'A second thought'"),),
        "organise/set-parent": (Shot(f"set-parent {MACOS} {BACKUPS}"), Shot("ls --tree")),
        "organise/rm": (Shot(f"rm {BACKUPS}"), Shot(f"rm {BACKUPS} --cascade", "n\n")),
        "maintain/gc": (Change("expire"), Shot("gc --dry-run"), Shot("gc", "y\n")),
        "recover/recover": (Change("delete the workspace"), Shot(""), Shot("recover", "y\n" * 4), Shot("status")),
        "look/show": (Shot("show VERSION"),),
        "look/find": (Shot("find letter"), Shot("find nowhere")),
        "look/show-text": (Shot("show 'release notes'"),),
        "recover/restore": (Shot("restore VERSION --dry-run"), Shot("restore VERSION")),
        "daily/apply": (Change("edit both"), Shot("--out plan.json"), Shot("apply plan.json")),
        "maintain/doctor": (Change("break"), Shot("doctor"), Shot("status")),
    },
    {
        "help/overview": (Shot("--help"),),
        "help/command": (Shot("undo --help"),),
        "help/errors": (Shot("staus"), Shot("status 12"), Shot("diff notes"), Shot("--prefer me"), Shot("undo 7")),
        "daily/diff-side-by-side": (
            Change("sync"),
            Change("edit an event"),
            Shot("diff 'release notes'"),
            Shot("diff 'release notes' --side-by-side"),
        ),
        "daily/watch": (
            Change("sync"),
            Live(
                "watch",
                ((r"watching \d+ conv", "edit here"), (r"(?s)(to \d{11}-.*){2}", "break")),
                "(?s)(blocked|held).*watching",
            ),
        ),
        "help/completion": (
            Typed("reconcile re\t", r"remote\s+\$ reconcile re$"),
            Typed("reconcile redo --\t", r"--help\s[^$]*\$ reconcile redo --$"),
            Typed("reconcile status jp\t", r"\d{10}\s+\$ reconcile status jp-c177?$"),
        ),
        "maintain/config": (Change("configure"), Shot("config")),
        "look/brief": (Change("open a vault"), Shot("brief Thesis")),
    },
)
"""Each has files of its own; its scenes are in order: each goes on where the one before has ended."""

SCENES = [name for story in STORIES for name in story]

HOME = "/home/martina"
"""The home directory on the pictures, as long as the name of a temporary directory."""
_MACHINE = {"reconcile": "0.2.0", "python": "3.13.1, SQLite 3.46.1", "system": "Linux 6.12 x86_64"}
"""What `doctor` prints of the machine, as on the pictures."""
_OWN = 0xE000
"""The first character for own use: each colour becomes one, so that it is no part of a word."""


def screens(script: Path = SCRIPT, *, only_known: bool = False) -> dict[str, str]:
    """Return each screen with the codes of its colours, by name.

    ``only_known``: leave out a command that the program doesn't have, and the rest of its scene.
    """

    def play(story: Story) -> dict[str, str]:
        # As long as the name in its place, as lines are wrapped before.
        with tempfile.TemporaryDirectory(dir="/tmp", prefix="") as name:
            home = Path(name).resolve()
            world = World(home, script=script)
            found = {}
            for scene, steps in story.items():
                shots = []
                for step in steps:
                    if isinstance(step, Change):
                        world.change(step.name)
                    elif only_known and not world.knows(step):
                        break
                    else:
                        shots.append(world.shown(step))
                if shots:
                    found[scene] = _timeless("\n".join(shots)).replace(str(home), HOME)
            return found

    with ThreadPoolExecutor(len(STORIES)) as pool:
        return {name: text for found in pool.map(play, STORIES) for name, text in found.items()}


def plain(screen: str) -> str:
    """Return the text of a screen."""
    return "".join(f"{line.rstrip()}\n" for line in COLORS.sub("", screen).splitlines())


def _timeless(screen: str) -> str:
    """Put the same moment, as wide, in the place of every one that depends on when this was run."""
    codes = list(dict.fromkeys(COLORS.findall(screen)))
    text = COLORS.sub(lambda found: chr(_OWN + codes.index(found[0])), screen)
    for number, run in enumerate(_ordered(r"\b20\d{6}-\d{6}-\d\d\b", text)):
        text = text.replace(run, f"20260515-{110000 + number:06}-00")
    for number, fork in enumerate(each for each in _ordered(r"(?<!\d)1[789]\d{9}(?!\d)", text) if each > LETTER):
        text = text.replace(fork, str(int(LETTER) + 100_000_000 + number))
    text = re.sub(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\b(?!Z)", _moment, text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d(?=[\ue000-\uf8ff]? [\ue000-\uf8ff]? +\d)", _moment, text)
    text = re.sub(r"^([\ue000-\uf8ff]?)\d\d:\d\d:\d\d\b(?!\))", r"\g<1>11:00:00", text, flags=re.MULTILINE)
    code = "[\ue000-\uf8ff]?"
    for name, shown in _MACHINE.items():
        text = re.sub(rf"^({code}{name}{code} +{code}).*$", rf"\g<1>{shown}", text, flags=re.MULTILINE)
    return re.sub("[\ue000-\uf8ff]", lambda found: codes[ord(found[0]) - _OWN], text)


def _moment(found: re.Match[str]) -> str:
    """Return a time of the demo's files as it is, and another as the same one."""
    return found[0] if found[0].startswith("2026-05") else "2026-05-15 11:00:00"[: len(found[0])]


def _ordered(pattern: str, text: str) -> list[str]:
    return sorted(set(re.findall(pattern, text)))
