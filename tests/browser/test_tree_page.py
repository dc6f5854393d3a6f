"""The page of ``ls --tree --html`` in a browser: hostile texts, keys, names for screen readers, widths, many rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import Browser, find_browser
from tests.support.projects.world import LONG_AGO, append, events, make_project, write_conversation
from tests.support.tree_pages import FIRST, PAYLOADS, multiplied, write_hostile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.conftest import Run

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs Chromium (Debian: apt-get install chromium)")
A, B, C, D, E = range(17528832001, 17528832051, 10)
ALL = 5 + len(PAYLOADS)
MANY = 10_000


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(str(PROGRAM), tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def page(tmp_path: Path, run: Run) -> Path:
    """A with B and C below it, D below C; E in the store only; and the hostile ones, each below the one before."""
    world = make_project(tmp_path / "project", run)
    write_conversation(world.workspace / str(A), "Alpha", events(3))
    write_conversation(world.workspace / str(B), "Beta", events(60), parent=A)
    write_conversation(world.workspace / str(C), "Gamma", events(5), parent=A)
    write_conversation(world.workspace / str(D), "Delta", events(5), parent=C)
    write_hostile(world)
    world.reconcile("--yes")
    write_conversation(world.store / str(E), "Epsilon", events(2))
    (gamma,) = world.workspace.rglob(f"{C}*")
    append(gamma, 1, "b", LONG_AGO + 10**12)
    result = run("ls", "--tree", "--html", tmp_path / "tree.html", "--workspace", world.project)
    assert result.exit_code == 0, result.output
    return tmp_path / "tree.html"


@pytest.fixture
def browser(started: Browser, page: Path) -> Iterator[Browser]:
    """The browser with the page; in the end, nothing has run that shouldn't, and nothing has been loaded."""
    started.open(page.as_uri())
    yield started
    assert started.run("window.hacked") is None
    assert started.reported("Page.javascriptDialogOpening") == []
    assert [problem["exceptionDetails"] for problem in started.reported("Runtime.exceptionThrown")] == []
    assert [entry["entry"]["text"] for entry in started.reported("Log.entryAdded")] == []
    loaded = {each["request"]["url"].partition("#")[0] for each in started.reported("Network.requestWillBeSent")}
    assert {address for address in loaded if not address.startswith("blob:")} == {page.as_uri()}


def titles(browser: Browser) -> list[str]:
    found: list[str] = browser.run("[...document.querySelectorAll('.row .title')].map((each) => each.textContent)")
    return found


def active(browser: Browser) -> str:
    """Return the title of the row that the keys are about."""
    title: str = browser.run(
        "document.getElementById(document.getElementById('rows').getAttribute('aria-activedescendant'))"
        ".querySelector('.title').textContent"
    )
    return title


def focus_tree(browser: Browser) -> None:
    browser.run("document.getElementById('rows').focus()")


def read(browser: Browser) -> str:
    """Return the title of the conversation that is open, when its contents are there."""
    browser.until("document.querySelector('#turns').childElementCount")
    title: str = browser.run("document.getElementById('reader-title').textContent")
    return title


def test_hostile_texts_are_shown_and_never_run(browser: Browser) -> None:
    assert set(PAYLOADS[:-2]) <= set(titles(browser))
    for number, payload in enumerate(PAYLOADS):
        browser.run(f"location.hash = 'jp-c{FIRST + 10 * number}'")
        browser.until(f"document.getElementById('facts').textContent.includes('jp-c{FIRST + 10 * number}')")
        read(browser)
        browser.settle()
        text = browser.run("document.getElementById('reader').textContent")
        if "\0" not in payload:  # that one is shown as codes
            assert text.count(payload) >= 5
        assert browser.run("document.querySelectorAll('#reader :is(a, img, svg, script, iframe, style)').length") == 0


def test_policy_refuses_what_would_be_markup(started: Browser, page: Path) -> None:
    """If a text did become markup, the browser itself would refuse to run it, or to load anything."""
    started.open(page.as_uri())
    started.run(
        "(() => { const bad = document.createElement('script');"
        " const policy = trustedTypes.createPolicy('x', { createScript: (text) => text });"
        " bad.text = policy.createScript('window.hacked = 1'); document.body.append(bad); })()"
    )
    assert started.run("window.hacked") is None
    for markup in ("document.body.innerHTML = '<b>x</b>'", "document.write('x')"):
        with pytest.raises(AssertionError, match="TypeError"):
            started.run(f"(() => {{ {markup}; }})()")
    image = (
        "new Promise((done) => { const i = new Image(); i.onload = i.onerror = (e) => done(e.type); i.src = 'x.png' })"
    )
    assert started.run(image) == "error"
    assert any("Content Security Policy" in each["entry"]["text"] for each in started.reported("Log.entryAdded"))


def test_keys(browser: Browser) -> None:
    focus_tree(browser)
    assert active(browser) == "Alpha"
    for keys, title in (
        (["ArrowDown"], "Beta"),
        (["ArrowDown"], "Gamma"),
        (["ArrowRight"], "Delta"),
        (["ArrowLeft"], "Gamma"),
        (["ArrowLeft"], "Gamma"),
        (["ArrowDown"], "Epsilon"),
        (["ArrowUp", "ArrowRight"], "Gamma"),
        (["Home"], "Alpha"),
        (["ArrowUp"], "Alpha"),
        (["End", "ArrowDown"], PAYLOADS[-1]),
        (["ArrowLeft", "Home", "d"], "Delta"),
        (["Home", "e", "p"], "Epsilon"),
        (["Home", "PageDown", "PageUp"], "Alpha"),
    ):
        browser.press(*keys)
        assert active(browser) == title, keys
    browser.press("ArrowLeft")
    assert "Beta" not in titles(browser)
    browser.press("*")
    assert "Beta" in titles(browser)


def test_focus_is_visible(browser: Browser) -> None:
    focus_tree(browser)
    browser.press("ArrowDown")
    assert "2px" in browser.run("getComputedStyle(document.querySelector('.row.active')).outline")
    assert browser.run("document.querySelectorAll('.row.active').length") == 1


def test_tab_reaches_every_control_in_order(browser: Browser) -> None:
    stops = []
    for _ in range(7):
        browser.press("Tab")
        stops.append(browser.run("document.activeElement.id || document.activeElement.parentElement.id"))
    assert stops == ["bars", "states", "states", "states", "search", "fold", "rows"]


def test_reading_and_back(browser: Browser) -> None:
    focus_tree(browser)
    browser.press("ArrowDown", "Enter")
    assert read(browser) == "Beta"
    browser.until("document.querySelectorAll('.turn').length === 60")
    assert browser.run("document.activeElement.id") == "page"
    assert browser.run("document.querySelector('.turn .text').textContent") == "a0"
    assert browser.run("location.hash") == f"#jp-c{B}"
    browser.press("Escape")
    assert browser.run("document.getElementById('reader').hidden")
    assert browser.run("document.activeElement.id") == "rows"
    assert active(browser) == "Beta"
    browser.run("history.back()")
    browser.until("!document.getElementById('reader').hidden")
    assert read(browser) == "Beta"


def test_version_is_named_where_the_sides_differ(browser: Browser) -> None:
    focus_tree(browser)
    where = "document.getElementById('facts').textContent"
    browser.press("Enter")
    assert read(browser) == "Alpha"
    assert "store's version" not in browser.run(where)
    browser.run(f"location.hash = 'jp-c{C}'")
    browser.until(f"{where}.includes('jp-c{C}')")
    assert "store and workspace; this is the store's version" in browser.run(where)
    browser.until("document.querySelectorAll('.turn').length === 5")


def test_link_opens_a_conversation(started: Browser, page: Path) -> None:
    started.open(f"{page.as_uri()}?again#jp-c{D}")
    assert read(started) == "Delta"
    assert active(started) == "Delta"


def test_click_on_the_arrow_folds_and_on_the_title_opens(browser: Browser) -> None:
    browser.click(".row[aria-level='1'] .twist")
    assert "Beta" not in titles(browser)
    browser.click(".row[aria-level='1'] .title")
    assert read(browser) == "Alpha"


def test_narrow_reader_covers_the_tree(started: Browser, page: Path) -> None:
    started.open(page.as_uri(), 400, 800)
    focus_tree(started)
    started.press("Enter")
    assert read(started) == "Alpha"
    assert started.run("document.getElementById('pane').inert")
    started.click("#close")
    assert not started.run("document.getElementById('pane').inert")
    assert started.run("document.activeElement.id") == "rows"


def test_search_and_filters(browser: Browser) -> None:
    search = "document.getElementById('search')"
    browser.press("/")
    assert browser.run("document.activeElement.id") == "search"
    browser.call("Input.insertText", text="delt")
    browser.settle()
    assert titles(browser) == ["Alpha", "Gamma", "Delta"]
    assert browser.run("document.getElementById('count').textContent") == f"1 of {ALL} conversations"
    browser.run(f"{search}.value = 'nothing like it'; {search}.dispatchEvent(new Event('input'))")
    assert titles(browser) == []
    browser.click("#clear")
    assert len(titles(browser)) == ALL
    browser.click("#states button[data-state='store only']")
    assert titles(browser) == ["Epsilon"]
    browser.click("#states button[data-state='store only']")
    assert len(titles(browser)) == ALL
    browser.click("#bars button")
    assert browser.run("document.querySelector('#bars button').getAttribute('aria-pressed')") == "true"


def value_of(node: dict[str, Any], name: str) -> object:
    return next((each["value"].get("value") for each in node.get("properties", []) if each["name"] == name), None)


def test_names_for_screen_readers(browser: Browser) -> None:
    browser.click(".row[aria-level='1'] .title")
    read(browser)
    roles: dict[str, list[dict[str, Any]]] = {}
    for node in browser.accessibility():
        roles.setdefault(node["role"]["value"], []).append(node)
    assert [node["name"]["value"] for node in roles["tree"]] == ["Conversations"]
    items = {node["name"]["value"]: node for node in roles["treeitem"]}
    assert len(items) == ALL
    alpha = items["Alpha, up to date, last activity 1 Jan 2026, 3 below"]
    assert (value_of(alpha, "level"), value_of(alpha, "expanded"), value_of(alpha, "selected")) == (1, True, True)
    assert "Epsilon, private, store only, last activity 1 Jan 2026" in items
    delta = items["Delta, up to date, last activity 1 Jan 2026"]
    assert (value_of(delta, "level"), value_of(delta, "expanded")) == (3, None)
    attributes = "['aria-posinset', 'aria-setsize'].map((name) => document.querySelector('%s').getAttribute(name))"
    assert browser.run(attributes % '.row[aria-level="3"]') == ["1", "1"]
    assert browser.run(attributes % '.row[aria-level="1"]') == ["1", "3"]
    names = {role: [node["name"]["value"].strip() for node in found] for role, found in roles.items()}
    assert names["searchbox"] == ["Search titles"]
    assert set(names["button"]) >= {"Back to the tree", "Collapse all", f"1 Jan 2026: {ALL} conversations"}
    assert names["heading"][:2] == ["project", "Last activity"]
    assert not [name for role in ("button", "heading", "treeitem", "searchbox") for name in names[role] if not name]
    assert names["complementary"] == ["Alpha"]


CONTRAST = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = parse(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] > 0.99) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest('script, noscript')) continue;
    const one = light(parse(getComputedStyle(element).color)), other = light(behind(element));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) poor.push([node.data.trim().slice(0, 40), ratio]);
  }
  return poor;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_fits_and_is_legible(width: int, scheme: str, started: Browser, page: Path) -> None:
    started.open(page.as_uri(), width, 800, prefers_color_scheme=scheme)
    fits = (
        "[document.documentElement, ...document.querySelectorAll('main, #page')]"
        ".every((each) => each.scrollWidth <= each.clientWidth) && innerWidth === document.documentElement.scrollWidth"
    )
    assert started.run(fits)
    assert started.run(CONTRAST) == []
    dark = started.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert dark == (scheme == "dark")
    for number in (0, 8, 9):
        started.run(f"location.hash = 'jp-c{FIRST + 10 * number}'")
        read(started)
        started.settle()
        assert started.run(fits)
        assert started.run(CONTRAST) == []


@pytest.mark.long
def test_many_conversations(started: Browser, page: Path, tmp_path: Path) -> None:
    many = multiplied(page, MANY, tmp_path / "many.html")
    started.open(many.as_uri())
    painted = "performance.getEntriesByName('first-contentful-paint')[0]"
    started.until(painted)
    assert started.run(f"{painted}.startTime") < 2000
    rows, size = "document.querySelectorAll('.row').length", "document.querySelectorAll('*').length"
    started.click("#fold")
    assert started.run("document.getElementById('rows').offsetHeight") == (MANY + ALL) * 40
    assert started.run(rows) < 60
    assert started.run(size) < 1500
    spent = started.run(
        "(async () => { const pane = document.getElementById('pane'), spent = [];"
        " for (let k = 1; k <= 50; k++) { const begin = performance.now();"
        " pane.scrollTop = (pane.scrollHeight * k) / 50;"
        " await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
        " document.body.offsetHeight; spent.push(performance.now() - begin); }"
        " return spent.sort((one, other) => one - other)[25]; })()"
    )
    assert spent < 150
    assert started.run(rows) < 60
    focus_tree(started)
    started.press("End")
    assert active(started) == f"Conversation {MANY - 1}"
    box = "document.querySelector('.row.active').getBoundingClientRect()"
    assert started.run(f"{box}.top >= 0 && {box}.bottom <= innerHeight")
    started.press("Enter")
    read(started)
    assert (
        started.run("document.querySelector('.note').textContent")
        == "The contents can't be shown: the page is incomplete."
    )


def test_print(browser: Browser) -> None:
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelectorAll('#paper li').length") == ALL
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.querySelectorAll('#paper li').length") == 0
    assert browser.printed().startswith(b"%PDF")


def test_without_scripts(started: Browser, page: Path) -> None:
    started.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        started.call("Page.navigate", url=f"{page.as_uri()}?")
        while "JavaScript is off" not in (nodes := json.dumps(started.accessibility())):
            pass
        assert "Delta (up to date)" in nodes
        assert "Epsilon (store only, private)" in nodes
    finally:
        started.call("Emulation.setScriptExecutionDisabled", value=False)
