"""Secrets on their way into the workspace: held in every way of publishing, until the user allows them."""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from reconcile import Workspace
from reconcile.engine import secret_check
from reconcile.fs import helper_process
from reconcile.fs.helper_process import HelperProcess
from tests.support.formats.claudesidian import conversation
from tests.support.formats.claudesidian_project import small
from tests.support.library.conversations import mutable
from tests.support.planted import KINDS
from tests.support.projects.git_world import CHILD, OTHER, PARENT, PRIVATE, commit, git, place
from tests.support.projects.terminal import Session, at_terminal, watched_at_terminal
from tests.support.projects.watcher import Watching, until
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    command,
    event,
    events,
    set_key,
    write_conversation,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World


def secret(seed: int = 1, kind: str = "GitHub classic token") -> str:
    return KINDS[kind](random.Random(seed))


def with_secret(seed: int = 1, at: int = 2_000) -> dict[str, Any]:
    """Return an event whose tool has read a file with a secret; JP keeps the result in base64."""
    content = base64.b64encode(f"# settings\nexport TOKEN={secret(seed)}\n".encode()).decode()
    return {**event(at, ""), "type": "tool_call_response", "id": "1", "content": content, "is_error": False}


def put(directory: Path, *more: dict[str, Any], later: int = 100) -> None:
    """Have a conversation go on."""
    path = directory / "events.json"
    write_json(path, [*json.loads(path.read_bytes()), *more], LONG_AGO + later * SECOND)


def stored(world: World, number: int) -> Path:
    (found,) = world.store.glob(f"{number}*")
    return found


def everywhere(world: World) -> str:
    """Return all that can be read in the workspace, decoded where it is base64."""
    texts = [path.read_text() for path in world.workspace.rglob("*.json")]
    return "".join(texts) + "".join(
        base64.b64decode(each["content"]).decode(errors="replace")
        for text in texts
        if text.startswith("[")
        for each in json.loads(text)
        if each.get("type") == "tool_call_response"
    )


def check_held(world: World, *args: str, number: int = OTHER, code: int = 4) -> dict[str, Any]:
    """Run a command that would publish a secret: it is held, with its event, and nowhere in full."""
    result = world.reconcile(*args, code=code)
    shown = world.run("--workspace", world.project, "-v", "--json", "--dry-run")
    for text in (result.output, shown.stdout, journal(world), world.run("--workspace", world.project, "status").output):
        assert secret()[:5] not in text
    assert secret() not in everywhere(world)
    (item,) = (each for each in json.loads(shown.stdout)["held"] if each["conversation"] == f"jp-c{number}")
    assert item["reason"] == "secret"
    assert "GitHub token, ghp_… (40 characters)" in item["message"].replace("gho_", "ghp_")
    assert f"reconcile resolve jp-c{number} --allow-secrets" in item["resolve"]
    assert isinstance(item, dict)
    return item


def journal(world: World) -> str:
    return world.run("--workspace", world.project, "log", "--json").output


def allow(world: World, number: int = OTHER, *, settled: bool = True) -> None:
    world.reconcile("resolve", f"jp-c{number}", "--allow-secrets", settled=settled)
    assert secret() in everywhere(world)
    (listed,) = world.state.rglob("allowed-secrets.jsonl")
    assert secret() not in listed.read_text()
    assert json.loads(listed.read_text())["conversation"] == f"jp-c{number}"


def allowed(world: World) -> list[str]:
    """Return the fingerprints of the list of allowed secrets."""
    lines = [line for path in world.state.rglob("allowed-secrets.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line)["fingerprint"] for line in lines]


def test_a_first_publication_is_held(story: World) -> None:
    put(stored(story, PRIVATE), with_secret())
    item = check_held(story, "project", f"jp-c{PRIVATE}", number=PRIVATE)
    assert item["message"].startswith("not published: event 4: ")
    allow(story, PRIVATE)
    story.reconcile()


def test_new_events_of_a_public_conversation_are_held_and_the_old_ones_stay(story: World) -> None:
    before = (place(story, OTHER) / "events.json").read_bytes()
    put(stored(story, OTHER), with_secret())
    check_held(story)
    assert (place(story, OTHER) / "events.json").read_bytes() == before
    check_held(story)
    allow(story)
    story.reconcile()


def test_the_other_conversations_of_a_run_are_published(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    put(stored(story, PARENT), event(3_000, "harmless"))
    check_held(story)
    assert "harmless" in everywhere(story)


@pytest.mark.parametrize("fails", [False, True])
def test_a_helper_process_checks_one_half(story: World, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own process has more threads, none of which holds anything."""
    taken: list[bytes | None] = []

    class Watched(HelperProcess):
        def result(self) -> bytes | None:
            taken.append(None if fails else super().result())
            return taken[-1]

    monkeypatch.setattr(secret_check, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(secret_check, "HelperProcess", Watched)
    monkeypatch.setattr(helper_process, "is_possible", lambda: True)
    for number in (OTHER, PARENT):
        put(stored(story, number), with_secret(seed=number))
    put(stored(story, CHILD), event(3_000, "harmless"))
    story.reconcile(code=4)
    held = json.loads(story.run("--workspace", story.project, "--json", "--dry-run").stdout)["held"]
    assert sorted(item["conversation"] for item in held) == sorted(f"jp-c{number}" for number in (OTHER, PARENT))
    assert "harmless" in everywhere(story)
    assert not any(secret(number) in everywhere(story) for number in (OTHER, PARENT))
    assert all("GitHub token, gh" in item["message"] for item in held)
    assert taken
    assert fails == (taken[0] is None)


def test_a_secret_that_is_allowed_is_allowed_in_later_events_too(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    check_held(story)
    allow(story)
    put(stored(story, OTHER), with_secret(at=2_001), later=200)
    story.reconcile()
    put(stored(story, OTHER), with_secret(seed=2, at=2_002), later=300)
    story.reconcile(code=4)


def test_a_parent_is_held_with_its_children(story: World) -> None:
    top, below = PRIVATE + 1, PRIVATE + 2
    write_conversation(story.store / f"{top}-top", "Top", [*events(2), with_secret()])
    write_conversation(story.store / f"{below}-below", "Below", events(2, "q"), parent=top)
    story.reconcile()
    item = check_held(story, "project", f"jp-c{below}", "--with-ancestors", number=top)
    assert item["message"].endswith("; 1 other conversation waits for it")
    assert not list(story.workspace.rglob(f"{below}*"))
    allow(story, top, settled=False)
    story.reconcile()
    assert list(story.workspace.rglob(f"{below}*"))


def test_a_child_is_held_while_its_parent_is_published(story: World) -> None:
    top, below = PRIVATE + 1, PRIVATE + 2
    write_conversation(story.store / f"{top}-top", "Top", events(2))
    write_conversation(story.store / f"{below}-below", "Below", [*events(2, "q"), with_secret()], parent=top)
    story.reconcile()
    check_held(story, "project", f"jp-c{below}", "--with-ancestors", number=below)
    assert list(story.workspace.rglob(f"{top}*"))
    allow(story, below)


def test_a_new_child_of_a_public_parent_is_held(story: World) -> None:
    below = PRIVATE + 2
    write_conversation(story.store / f"{below}-below", "Below", [*events(2, "q"), with_secret()], parent=OTHER)
    check_held(story, "project", f"jp-c{below}", number=below)
    allow(story, below)


def test_a_setting_that_publishes_everything_holds_secrets(story: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put(stored(story, PRIVATE), with_secret())
    monkeypatch.setenv("RECONCILE_MISSING", "reproject")
    check_held(story, number=PRIVATE)
    allow(story, PRIVATE)


def test_a_title_is_held_with_the_name_of_its_directory(story: World) -> None:
    before = place(story, OTHER)
    set_key(stored(story, OTHER), "title", f"Use {secret()}", LONG_AGO + 100 * SECOND)
    as_json = story.run("--workspace", story.project, "--dry-run", "--json").output
    assert f"jp-c{OTHER}" in as_json
    assert secret() not in as_json
    result = story.reconcile(code=4)
    assert secret()[:5] not in result.output
    assert f"Use {secret()[:4]}… (40 characters)  jp-c{OTHER}" in result.output
    assert "metadata: not published: GitHub token, gho_… (40 characters)" in " ".join(result.output.split())
    assert place(story, OTHER) == before
    assert secret() not in everywhere(story)


def test_a_saved_plan_holds_what_was_not_checked_when_it_was_made(story: World, tmp_path: Path) -> None:
    put(stored(story, OTHER), with_secret())
    plan = tmp_path / "plan.json"
    story.run("--workspace", story.project, "--out", plan)
    story.reconcile("apply", plan, code=4)
    assert secret() not in everywhere(story)
    story.run("--workspace", story.project, "resolve", f"jp-c{OTHER}", "--allow-secrets", "--out", plan)
    assert secret() not in plan.read_text()
    story.reconcile("apply", plan)
    assert secret() in everywhere(story)


def test_a_saved_plan_allows_only_the_secrets_that_it_named(story: World, tmp_path: Path) -> None:
    put(stored(story, OTHER), with_secret())
    plan = tmp_path / "plan.json"
    story.run("--workspace", story.project, "resolve", f"jp-c{OTHER}", "--allow-secrets", "--out", plan)
    put(stored(story, OTHER), with_secret(seed=2, at=2_001), later=200)
    story.reconcile("apply", plan, code=4, settled=False)
    assert len(allowed(story)) == 1
    held = story.reconcile(code=4)
    assert f"GitHub token, {secret(2)[:4]}" in " ".join(held.output.split())
    assert not [number for number in (1, 2) if secret(number) in everywhere(story)]
    story.reconcile("resolve", f"jp-c{OTHER}", "--allow-secrets")
    assert len(allowed(story)) == 2
    assert secret(2) in everywhere(story)


def test_a_saved_plan_without_fingerprints_allows_nothing(story: World, tmp_path: Path) -> None:
    put(stored(story, OTHER), with_secret())
    plan = tmp_path / "plan.json"
    story.run("--workspace", story.project, "resolve", f"jp-c{OTHER}", "--allow-secrets", "--out", plan)
    saved = json.loads(plan.read_text())
    assert saved["policy"]["allow_secrets"][f"jp-c{OTHER}"]
    saved["policy"]["allow_secrets"][f"jp-c{OTHER}"] = []
    plan.write_text(json.dumps(saved))
    story.reconcile("apply", plan, code=4, settled=False)
    assert allowed(story) == []
    assert secret() not in everywhere(story)


def test_a_dry_run_that_would_allow_a_secret_allows_nothing(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    check_held(story)
    result = story.run("--workspace", story.project, "resolve", f"jp-c{OTHER}", "--allow-secrets", "--dry-run")
    assert "allows event" in result.output
    assert not list(story.state.rglob("allowed-secrets.jsonl"))
    check_held(story)


def test_all_secrets_that_a_command_allows_are_listed_where_details_are(story: World) -> None:
    """A plain run names the first three."""
    put(stored(story, OTHER), *(with_secret(seed=number, at=2_000 + number) for number in range(1, 6)))

    def shown(*words: str) -> str:
        return " ".join(story.run("--workspace", story.project, *words).output.split())

    for at, words in enumerate(((), ("-n",), ("-n", "-v"), ("status", f"jp-c{OTHER}"))):
        text = shown(*words)
        assert text.count("GitHub token, gh") == (3, 3, 5, 5)[at], words
        assert ("; and 2 more (-v names all)" in text) is (at < 2), words
    text = shown("resolve", f"jp-c{OTHER}", "--allow-secrets", "-n")
    assert text.partition("allows event")[2].count("GitHub token, gh") == 5


def test_the_library_writes_the_store_and_holds_the_workspace(story: World) -> None:
    with Workspace.open(story.project) as workspace, mutable(workspace, OTHER) as mut:
        mut.update_events(lambda events: events.append(with_secret()))
        mut.flush()
        (message,) = mut.waiting
        assert "GitHub token" in message
        assert secret()[:5] not in message
    assert secret() not in everywhere(story)
    check_held(story)
    allow(story)


def test_a_conversation_that_a_program_creates_is_held_with_its_first_events(story: World) -> None:
    with Workspace.open(story.project) as workspace, workspace.create_conversation(title="New") as mut:
        mut.update_events(lambda events: events.append(with_secret()))
        mut.flush()
        (message,) = mut.waiting
        number = int(mut.handle.id.removeprefix("jp-c"))
    assert "not published: event" in message
    check_held(story, number=number)
    allow(story, number)


def test_an_undo_brings_back_what_was_in_the_workspace(story: World) -> None:
    put(place(story, OTHER), with_secret())  # JP itself has written it there
    story.reconcile()
    story.reconcile("local", f"jp-c{OTHER}")
    assert secret() not in everywhere(story)
    story.reconcile("undo")
    assert secret() in everywhere(story)


def test_what_the_workspace_has_already_is_not_held(story: World) -> None:
    put(place(story, OTHER), with_secret())
    story.reconcile()
    put(stored(story, OTHER), event(3_000, "harmless"), later=200)
    story.reconcile()
    assert "harmless" in everywhere(story)


@pytest.mark.parametrize("name", ["NOTE.md", "deep/er/NOTE.md"])
def test_a_file_with_a_secret_that_is_public_goes_on(story: World, name: str) -> None:
    public = place(story, OTHER) / name
    public.parent.mkdir(parents=True, exist_ok=True)
    public.write_text(f"TOKEN={secret()}\n")
    story.reconcile()
    (stored(story, OTHER) / name).write_text(f"TOKEN={secret()}\nharmless\n")
    story.reconcile()
    assert "harmless" in public.read_text()


def test_a_fork_of_a_public_conversation_repeats_what_is_public(story: World) -> None:
    put(place(story, OTHER), with_secret())
    story.reconcile()
    story.reconcile("fork", f"jp-c{OTHER}")


def test_a_secret_in_escapes_of_json_is_held(story: World) -> None:
    path = stored(story, OTHER) / "events.json"
    escaped = "".join(f"\\u{ord(char):04x}" for char in secret())
    text = json.dumps([*json.loads(path.read_bytes()), event(2_000, "HERE")], indent=2).replace("HERE", escaped)
    path.write_text(text)
    check_held(story)


def test_a_secret_beside_the_text_that_a_program_reads_is_held(story: World) -> None:
    path = stored(story, OTHER) / "events.json"
    before = path.read_text().rstrip().removesuffix("]").rstrip()
    coded = base64.b64encode(f"Output:\n{json.dumps({'env': f'A=1{chr(10)}{secret()}'})}".encode()).decode()
    for field in (
        f'"message": "{secret()}", "message": "x"',
        f'"{secret()}": true',
        f'"arguments": {{"{secret()}": {{"a": 1}}}}',
        f'"message": "\\u001b[01;31m{secret()}\\u001b[m"',
        f'"n": {"9" * 5_000}, "content": "{base64.b64encode(secret().encode()).decode()}"',
        f'"content": "{coded}"',
    ):
        new = '{"timestamp": "2026-06-09 09:00:00.0", "type": "tool_call_response", "id": "1", FIELD}'
        path.write_text(f"{before},\n  {new.replace('FIELD', field)}\n]\n")
        check_held(story)
        assert '"id": "1"' not in (place(story, OTHER) / "events.json").read_text(), field


def test_a_private_key_of_openssh_is_held(story: World) -> None:
    body = base64.b64encode(b"openssh-key-v1" + bytes(8) + random.Random(1).randbytes(250)).decode()
    block = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n"
    put(stored(story, OTHER), event(2_000, block))
    held = story.reconcile(code=4)
    assert "private key (PEM), ----…" in " ".join(held.output.split())
    assert body not in everywhere(story)


def test_a_pulled_project_cannot_allow_a_secret(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    check_held(story)
    allow(story)
    (listed,) = story.state.rglob("allowed-secrets.jsonl")
    content = listed.read_bytes()
    listed.unlink()
    for path in (story.project, story.workspace.parent, story.workspace):
        (path / "allowed-secrets.jsonl").write_bytes(content)
        (path / "reconcile.toml").write_text('allow_secrets = ["*"]\n')
    put(stored(story, OTHER), with_secret(at=2_001), later=200)
    story.reconcile(code=4)


def test_a_list_that_cannot_be_read_is_one_clear_line(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    check_held(story)
    allow(story)
    (listed,) = story.state.rglob("allowed-secrets.jsonl")
    listed.write_text("nonsense\n")
    put(stored(story, OTHER), with_secret(seed=2, at=2_001), later=200)
    result = story.run("--workspace", story.project)
    assert "line 1 is no allowed secret" in result.output
    assert "Traceback" not in result.output


def test_git_never_sees_a_held_secret(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    put(stored(story, CHILD), with_secret())
    put(stored(story, PARENT), event(3_000, "harmless"))
    story.reconcile(code=4)
    commit(story, "after the run")
    history = git(story.project, "log", "-p", "--all")
    coded = base64.b64encode(f"# settings\nexport TOKEN={secret()}\n".encode()).decode()
    assert coded not in history
    assert subprocess.run(["git", "fsck"], cwd=story.project, check=False).returncode == 0


def test_doctor_finds_what_is_there_already_and_tells_what_git_has(story: World) -> None:
    put(place(story, OTHER), with_secret())
    put(place(story, CHILD), with_secret(seed=2))
    story.reconcile()
    assert "No problems found" in story.run("--workspace", story.project, "doctor").output
    git(story.project, "add", str(place(story, CHILD)))
    git(story.project, "commit", "-qm", "a secret")
    result = story.run("--workspace", story.project, "doctor", "--secrets", "--json")
    assert result.exit_code == 4
    found = json.loads(result.stdout)["findings"]
    assert [each["kind"] for each in found] == ["secret", "secret"]
    (child, other) = (each["found"] for each in sorted(found, key=lambda each: str(each["conversation"])))
    assert child.startswith("event 7: GitHub token, gh")
    assert "; in git since" in child
    assert other.endswith("; not committed yet")  # the conversation is in git, without this event
    ways = {str(each["conversation"]): each["mend"] for each in found}
    assert [any("git filter-repo" in way for way in ways[f"jp-c{number}"]) for number in (CHILD, OTHER)] == [
        True,
        False,
    ]
    for text in (result.output, story.run("--workspace", story.project, "doctor", "--secrets", "-v").output):
        assert secret()[:5] not in text


def test_doctor_names_the_commit_that_has_the_secret_and_what_is_only_staged(story: World) -> None:
    public = place(story, OTHER)
    git(story.project, "add", ".jp")
    git(story.project, "commit", "-qm", "without a secret", "--allow-empty")
    put(public, with_secret())
    git(story.project, "add", str(public))
    assert found_by_doctor(story).endswith("; staged for the next commit")
    git(story.project, "commit", "-qm", "with it")
    with_it = git(story.project, "rev-parse", "HEAD").strip()
    put(public, event(3_000, "harmless"), later=200)
    git(story.project, "commit", "-qam", "more")
    remote = story.project.parent / "bare.git"
    git(story.project, "clone", "-q", "--bare", str(story.project), str(remote))
    git(story.project, "remote", "add", "origin", str(remote))
    git(story.project, "fetch", "-q", "origin")
    assert found_by_doctor(story).endswith(f"; in git since {with_it[:12]}, also on origin/feature")


def found_by_doctor(story: World) -> str:
    result = story.run("--workspace", story.project, "doctor", "--secrets", "--json")
    (found,) = json.loads(result.stdout)["findings"]
    return str(found["found"])


def test_doctor_leaves_out_what_is_allowed(story: World) -> None:
    put(place(story, OTHER), with_secret())
    story.reconcile()
    story.reconcile("resolve", f"jp-c{OTHER}", "--allow-secrets")
    result = story.run("--workspace", story.project, "doctor", "--secrets")
    assert (result.exit_code, "No secrets found" in result.output) == (0, True)


def test_a_run_with_nothing_to_publish_does_not_read_the_list(story: World) -> None:
    put(place(story, OTHER), event(3_000, "new in the workspace"))
    (story.state / "secrets.key").parent.mkdir(exist_ok=True)
    for directory in story.state.glob("*"):
        if directory.is_dir():
            (directory / "secrets.key").write_bytes(b"short")
    story.reconcile()


def test_a_key_that_is_damaged_is_one_clear_line(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    check_held(story)
    allow(story)
    (key,) = story.state.rglob("secrets.key")
    key.write_bytes(b"short")
    put(stored(story, OTHER), event(3_000, "harmless"), later=200)
    result = story.run("--workspace", story.project)
    assert "5 bytes instead of 32" in result.output
    assert "Traceback" not in result.output


def test_a_question_at_a_terminal_decides(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    code, shown = at_terminal("-w", str(story.project), answers="n\n")
    assert (code, "allow these secrets from now on? [y/N]" in shown) == (4, True), shown
    asked = shown.partition("from now on?")[0]
    assert (asked.count("not published:"), asked.count(f"jp-c{OTHER}")) == (1, 1), "the question says each once"
    assert secret()[:5] not in shown
    assert secret() not in everywhere(story)
    code, shown = at_terminal("-w", str(story.project), answers="y\n")
    assert code == 0, shown
    assert secret() in everywhere(story)
    put(stored(story, OTHER), with_secret(at=2_001), later=200)
    story.reconcile()


def test_an_answer_allows_only_the_secrets_that_were_shown(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    at = Session("-w", story.project)
    at.wait("from now on?")
    put(stored(story, OTHER), with_secret(seed=2, at=2_001), later=200)
    at.type("y\n", after="")
    code, shown = at.end()
    assert code == 4, shown
    assert len(allowed(story)) == 1
    assert not [number for number in (1, 2) if secret(number) in everywhere(story)]
    put(stored(story, CHILD), with_secret(at=2_002), later=300)
    story.reconcile(code=4)
    assert secret() in everywhere(story), "the allowed one is, in another conversation"
    assert secret(2) not in everywhere(story)


def test_an_answer_counts_although_the_conversation_has_gone_on(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    at = Session("-w", story.project)
    at.wait("from now on?")
    put(stored(story, OTHER), event(3_000, "harmless"), later=200)
    at.type("y\n", after="")
    at.end()
    assert len(allowed(story)) == 1
    story.reconcile()
    assert secret() in everywhere(story)


def test_yes_does_not_allow_a_secret(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    story.reconcile("--yes", code=4)
    assert secret() not in everywhere(story)


def test_watch_holds_a_secret_once_and_goes_on_when_it_is_allowed(story: World) -> None:
    with Watching(story) as watcher:
        put(stored(story, OTHER), with_secret())
        watcher.hears("held", "GitHub token")
        put(stored(story, PARENT), event(3_000, "harmless"))
        until(lambda: "harmless" in everywhere(story))
        assert secret() not in everywhere(story)
        story.run("--workspace", story.project, "resolve", f"jp-c{OTHER}", "--allow-secrets")
        assert secret() in everywhere(story)
        put(stored(story, OTHER), event(3_001, "more"), later=200)
        until(lambda: "more" in everywhere(story))
        assert watcher.stop() == 0
    assert len(watcher.said("held")) == 1


def test_watch_names_each_command_that_settles_a_secret(story: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    put(stored(story, OTHER), with_secret())
    ways = [f"reconcile resolve jp-c{OTHER} --allow-secrets", f"reconcile local jp-c{OTHER}"]
    _, shown = watched_at_terminal(story.project, ways[1])
    ways = [f"{way} --workspace {story.project}" for way in ways]
    lines = shown.replace(" \\\n", " ").splitlines()
    assert [way for line in lines if (way := " ".join(line.split())) in ways] == ways
    process = subprocess.Popen(
        command("watch", "--workspace", story.project), stdout=subprocess.PIPE, encoding="utf-8", bufsize=1
    )
    assert process.stdout is not None
    line = next(line for line in process.stdout if "blocked" in line)
    process.terminate()
    process.communicate()
    assert line.endswith(f"({', or '.join(ways)})\n")


def test_recover_restores_all_but_the_one_with_a_secret(story: World) -> None:
    put(place(story, OTHER), with_secret())
    story.reconcile()
    shutil.rmtree(story.workspace)
    result = story.run("--workspace", story.project, "recover", "--yes")
    assert result.exit_code == 4, result.output
    assert place(story, PARENT).is_dir()
    assert secret() not in everywhere(story)
    words = "publish it all the same, or keep it private:"
    assert words in " ".join(result.output.split())
    code, shown = at_terminal("recover", "-w", str(story.project), columns=80)
    assert (code, "Restore" in shown, "1 blocked; nothing else to do." in shown) == (4, False, True), shown
    shutil.rmtree(story.workspace)
    code, shown = at_terminal("recover", "-w", str(story.project), answers="y\n", columns=80)
    assert (code, "Restore 2 conversations" in shown) == (4, True), shown
    standing = " ".join(story.run("--workspace", story.project, "status").output.split())
    assert f"--allow-secrets --workspace {story.project} publishes" in standing
    assert "with the secret, or reconcile local" in standing
    assert "keeps it private, in the store" in standing
    allow(story)


def test_a_restored_version_reaches_the_store_alone_until_its_secret_is_allowed(story: World) -> None:
    put(stored(story, OTHER), with_secret())
    check_held(story)
    story.reconcile("resolve", f"jp-c{OTHER}", "--take", "workspace")
    path = stored(story, OTHER) / "events.json"
    coded = base64.b64encode(f"# settings\nexport TOKEN={secret()}\n".encode())
    (saved,) = (path.name for path in story.vault.glob("*/*") if coded in path.read_bytes())
    story.reconcile("restore", saved[:16], code=4)
    assert coded in path.read_bytes()
    assert secret() not in everywhere(story)
    allow(story)


def test_two_continuations_are_forked_once_while_a_secret_is_held(story: World) -> None:
    put(place(story, OTHER), *events(1, "h"), later=90)
    put(stored(story, OTHER), *events(1, "k"), with_secret(), later=100)
    check_held(story)
    check_held(story)
    forks = [path for path in story.store.iterdir() if "diverged" in path.name]
    assert len(forks) == 1
    allow(story)
    assert len([path for path in story.store.iterdir() if "diverged" in path.name]) == 1


def test_a_record_with_a_fixed_place_is_held_too(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    vault.reconcile()
    stored = vault.store / ".conversations" / "conv_b.json"
    before = (vault.path / ".conversations" / "conv_b.json").read_bytes()
    stored.write_text(json.dumps(conversation("conv_b", "hello", f"my key is {secret()}", updated=3000)))
    result = vault.run("-w", vault.path)
    assert result.exit_code == 4
    assert "event 2: GitHub token, gho_…" in " ".join(result.output.split())
    assert secret()[:5] not in result.output
    assert (vault.path / ".conversations" / "conv_b.json").read_bytes() == before
    vault.reconcile("resolve", ".conversations/conv_b.json", "--allow-secrets")
    assert secret() in (vault.path / ".conversations" / "conv_b.json").read_text()
    found = vault.run("-w", vault.path, "doctor", "--secrets")
    assert "No secrets found" in found.output


def test_a_saved_choice_of_a_held_conversation_is_no_more_spoken_of_when_it_is_carried_out(story: World) -> None:
    put(stored(story, PRIVATE), with_secret())
    story.reconcile("project", f"jp-c{PRIVATE}", code=4)
    blocked = story.reconcile("resolve", f"jp-c{PRIVATE}", "--take", "store", code=4, settled=False).stdout
    assert "Your request is saved. After you settle what is blocked, the next run" in " ".join(blocked.split())
    standing = story.reconcile("status", f"jp-c{PRIVATE}").stdout
    assert "blocked: not published: event 4: " in standing, "the run says blocked, too"
    assert standing.count("not published") == 1
    assert f"`resolve jp-c{PRIVATE} --take store` waits since run" in " ".join(standing.split())
    assert "waits since" in story.reconcile(code=4, settled=False).stdout
    done = story.reconcile("resolve", f"jp-c{PRIVATE}", "--allow-secrets").stdout
    assert "1 published" in done
    assert "waits since" not in done


def test_a_secret_in_a_title_is_masked_on_the_screen(story: World) -> None:
    """JSON has it, for programs; `show` has the conversation as it is."""
    set_key(stored(story, PRIVATE), "title", f"Use {secret()} {'and more ' * 9}", LONG_AGO + 100 * SECOND)
    options = ("--workspace", story.project)
    status = ("status", f"jp-c{PRIVATE}")
    for args in (("ls",), ("ls", "--tree"), ("status", "-v"), status, ("recover", "--all", "--dry-run")):
        result = story.run(*args, *options)
        assert f"Use {secret()[:4]}… (40 characters)" in result.output, args
        assert secret()[:5] not in result.output, args
    for columns in (40, 60, 80):
        code, screen = at_terminal("ls", *options, columns=columns)
        assert (code, secret()[:5] in screen, "Use gho_…" in screen) == (0, False, True), screen
    assert secret() in story.run("ls", "--json", *options).output
    assert secret() in story.run("show", f"jp-c{PRIVATE}", *options).output
    assert secret()[:5] not in story.run("local", secret()[:9], *options).output
