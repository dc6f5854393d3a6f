"use strict";
// The tree is a virtual list: only the rows on the screen are in the document. Every text from a file is set as
// textContent, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const pane = $("pane"), list = $("rows"), page = $("page"), reader = $("reader"), tools = $("tools"), search = $("search");
  const data = JSON.parse($("data").textContent);
  const nodes = data.nodes.map(([depth, id, title, state, detail, events, last, where, secret]) =>
    ({ depth, id, title, state, detail, events, last, where, secret }));
  const count = nodes.length;
  const noun = (number, one = data.noun) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
  const wordOf = (node) => data.words[node.state] || node.state;
  const toneOf = (node) => data.tones[node.state] || "quiet";
  const titleOf = (node) => node.title || "(no title)";
  const dayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
  const timeFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const monthFormat = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });
  const dayOf = (ms) => (ms === null ? "" : dayFormat.format(ms));
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // The shape of the tree. Nodes come parents first, so that the descendants of i are i + 1 ... end[i] - 1.
  const parent = new Int32Array(count).fill(-1), end = new Int32Array(count), kids = new Int32Array(count);
  const path = [];
  for (let i = 0; i < count; i++) {
    const depth = nodes[i].depth;
    for (const done of path.splice(depth)) end[done] = i;
    if (depth) kids[(parent[i] = path[depth - 1])]++;
    path.push(i);
  }
  for (const done of path) end[done] = count;

  // What is shown: all, or the nodes that fit the filters with their ancestors.
  const LARGE = 500;
  const opened = new Uint8Array(count).fill(count <= LARGE ? 1 : 0), found = new Uint8Array(count).fill(1);
  const fits = new Uint8Array(count), shown = new Uint8Array(count), place = new Int32Array(count), sizes = new Int32Array(count + 1);
  const filter = { words: [], state: null, period: null };
  let rows = [], rowOf = new Int32Array(count), active = 0, reading = -1, texts = null;
  const isFiltered = () => filter.words.length > 0 || filter.state !== null || filter.period !== null;
  const isOpen = (i) => (isFiltered() ? found[i] : opened[i]) === 1;
  const hasKids = (i) => kids[i] > 0 && (!isFiltered() || shown.subarray(i + 1, end[i]).includes(1));

  function select() {
    const { words, state, period } = filter;
    found.fill(1);
    shown.fill(0);
    if (words.length && texts === null) texts = nodes.map((node) => `${titleOf(node)} ${node.id}`.toLowerCase());
    for (let i = count - 1; i >= 0; i--) {
      const node = nodes[i];
      fits[i] = words.every((word) => texts[i].includes(word))
        && (state === null || wordOf(node) === state)
        && (period === null || (node.last !== null && node.last >= period.from && node.last < period.to)) ? 1 : 0;
      if (fits[i]) shown[i] = 1;
      if (shown[i] && parent[i] >= 0) shown[parent[i]] = 1;
    }
  }

  function arrange() {
    const filtered = isFiltered();
    rows = [];
    rowOf.fill(-1);
    sizes.fill(0);
    for (let i = 0; i < count;) {
      if (filtered && !shown[i]) { i = end[i]; continue; }
      rowOf[i] = rows.length;
      rows.push(i);
      place[i] = ++sizes[parent[i] + 1];
      i = isOpen(i) ? i + 1 : end[i];
    }
    while (active >= 0 && rowOf[active] < 0) active = parent[active];
    if (active < 0) active = rows.length ? rows[0] : 0;
    list.style.height = `${rows.length * height}px`;
    list.hidden = rows.length === 0;
    $("none").hidden = rows.length > 0 || count === 0;
    const fitting = filtered ? fits.reduce((sum, each) => sum + each, 0) : count;
    $("count").textContent = filtered ? `${fitting.toLocaleString("en")} of ${noun(count)}` : "";
    const isFolded = rows.length < (filtered ? shown.reduce((sum, each) => sum + each, 0) : count);
    $("fold").textContent = isFolded ? "Expand all" : "Collapse all";
    $("fold").hidden = !kids.some((each) => each > 0);
    drawn.forEach(release);
    drawn.clear();
    draw();
  }

  // Rows on the screen, by their number. Elements that scroll away serve again.
  const drawn = new Map(), spare = [];
  const MARGIN = 8, DEEPEST = 12;
  let height = 40;

  function release(row) {
    row.element.remove();
    spare.push(row);
  }

  function newRow() {
    const element = make("div"), name = make("span", "name"), line = make("span", "line");
    const row = {
      element, name, line, twist: make("span", "twist"), deep: make("span", "deep"), title: make("span", "title"), kids: make("span", "kids"),
      lock: make("span", "lock", "private"), state: make("span", "state dot"), when: make("span", "when"), mark: make("i"),
    };
    element.setAttribute("role", "treeitem");
    row.title.dir = "auto";
    name.append(row.twist, row.deep, row.title, row.lock, row.kids);
    line.append(row.mark);
    element.append(name, row.state, line, row.when);
    for (const each of element.children) each.setAttribute("aria-hidden", "true");
    return row;
  }

  function fill(row, number) {
    const i = rows[number], node = nodes[i], element = row.element, expandable = hasKids(i);
    element.id = `row-${i}`;
    element.style.transform = `translateY(${number * height}px)`;
    element.style.setProperty("--depth", Math.min(node.depth, DEEPEST));
    element.setAttribute("aria-level", node.depth + 1);
    element.setAttribute("aria-posinset", place[i]);
    element.setAttribute("aria-setsize", sizes[parent[i] + 1]);
    if (expandable) element.setAttribute("aria-expanded", isOpen(i));
    else element.removeAttribute("aria-expanded");
    element.setAttribute("aria-selected", i === reading);
    element.className = `row${i === active ? " active" : ""}${isFiltered() && !fits[i] ? " outside" : ""}`;
    row.deep.textContent = node.depth > DEEPEST ? `${node.depth}:` : "";
    row.deep.hidden = node.depth <= DEEPEST;
    row.title.textContent = titleOf(node);
    row.title.classList.toggle("untitled", !node.title);
    row.lock.hidden = !node.secret;
    row.kids.textContent = expandable ? `+${(end[i] - i - 1).toLocaleString("en")}` : "";
    row.state.textContent = wordOf(node);
    row.state.dataset.tone = toneOf(node);
    row.when.textContent = dayOf(node.last);
    row.mark.hidden = node.last === null;
    if (node.last !== null) row.mark.style.left = `${placeOf(node.last)}%`;
    const parts = [titleOf(node), node.secret ? "private" : "", wordOf(node), node.last === null ? "" : `last activity ${dayOf(node.last)}`];
    if (expandable) parts.push(`${(end[i] - i - 1).toLocaleString("en")} below`);
    element.setAttribute("aria-label", parts.filter(Boolean).join(", "));
  }

  function draw() {
    const above = pane.scrollTop - list.offsetTop, room = pane.clientHeight;
    const first = Math.max(0, Math.min(rows.length, Math.floor(above / height) - MARGIN));
    const last = Math.min(rows.length, Math.max(first, Math.ceil((above + room) / height) + MARGIN));
    const kept = rows.length ? rowOf[active] : -1;
    for (const [number, row] of drawn) {
      if ((number < first || number >= last) && number !== kept) { release(row); drawn.delete(number); }
    }
    const wanted = [];
    if (kept >= 0 && kept < first) wanted.push(kept);
    for (let number = first; number < last; number++) wanted.push(number);
    if (kept >= last) wanted.push(kept);
    let next = null;
    for (const number of wanted.reverse()) {
      let row = drawn.get(number);
      if (row === undefined) {
        row = spare.pop() || newRow();
        fill(row, number);
        drawn.set(number, row);
        list.insertBefore(row.element, next);
      }
      next = row.element;
    }
    if (kept >= 0) list.setAttribute("aria-activedescendant", `row-${active}`);
    else list.removeAttribute("aria-activedescendant");
  }

  const refill = (i) => { const row = drawn.get(rowOf[i]); if (row) fill(row, rowOf[i]); };

  function measure() {
    const anchor = Math.max(0, (pane.scrollTop - list.offsetTop) / height), wasBelow = pane.scrollTop > list.offsetTop;
    height = parseFloat(getComputedStyle(list).getPropertyValue("--row")) * parseFloat(getComputedStyle(document.documentElement).fontSize);
    list.style.height = `${rows.length * height}px`;
    if (wasBelow) pane.scrollTop = list.offsetTop + anchor * height;
    for (const [number, row] of drawn) fill(row, number);
    draw();
  }

  function activate(i, isShown = true) {
    const before = active;
    active = i;
    refill(before);
    if (isShown) {
      const top = list.offsetTop + rowOf[i] * height, cover = tools.offsetHeight + 8;
      if (top < pane.scrollTop + cover) pane.scrollTop = top - cover;
      else if (top + height > pane.scrollTop + pane.clientHeight - 8) pane.scrollTop = top + height - pane.clientHeight + 8;
    }
    refill(i);
    draw();
  }

  function toggle(i, isWanted = !isOpen(i)) {
    (isFiltered() ? found : opened)[i] = isWanted ? 1 : 0;
    arrange();
  }

  let typed = "", typedAt = 0;
  function typeAhead(letter, now) {
    typed = now - typedAt > 700 ? letter : typed + letter;
    typedAt = now;
    const sought = [...typed].every((each) => each === typed[0]) ? typed[0] : typed, start = rowOf[active] + (sought.length === 1 ? 1 : 0);
    for (let step = 0; step < rows.length; step++) {
      const i = rows[(start + step) % rows.length];
      if (titleOf(nodes[i]).toLowerCase().replace(/^[^\p{L}\p{N}]+/u, "").startsWith(sought)) { activate(i); return; }
    }
  }

  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !rows.length) return;
    const number = rowOf[active], rest = rows.length - 1, step = Math.max(1, Math.floor((pane.clientHeight - tools.offsetHeight) / height) - 1);
    const moves = {
      ArrowDown: () => activate(rows[Math.min(rest, number + 1)]), ArrowUp: () => activate(rows[Math.max(0, number - 1)]),
      Home: () => activate(rows[0]), End: () => activate(rows[rest]),
      PageDown: () => activate(rows[Math.min(rest, number + step)]), PageUp: () => activate(rows[Math.max(0, number - step)]),
      ArrowRight: () => { if (hasKids(active)) { if (isOpen(active)) activate(rows[number + 1]); else toggle(active, true); } },
      ArrowLeft: () => { if (hasKids(active) && isOpen(active)) toggle(active, false); else if (parent[active] >= 0) activate(parent[active]); },
      Enter: () => show(active, true), " ": () => show(active, true),
      "*": () => { for (let i = 0; i < count; i++) if (parent[i] === parent[active]) (isFiltered() ? found : opened)[i] = 1; arrange(); },
    };
    if (Object.hasOwn(moves, event.key)) { typed = ""; moves[event.key](); }
    else if ([...event.key].length === 1 && event.key !== "/") typeAhead(event.key.toLowerCase(), event.timeStamp);
    else return;
    event.preventDefault();
  });

  list.addEventListener("click", (event) => {
    const element = event.target.closest(".row");
    if (!element) return;
    const i = Number(element.id.slice(4));
    activate(i, false);
    if (event.target.classList.contains("twist") && hasKids(i)) toggle(i);
    else show(i, false);
  });

  // Filters.
  function choose() {
    select();
    arrange();
    $("state").value = filter.state === null ? "" : filter.state;
    for (const button of $("states").children) button.setAttribute("aria-pressed", button.dataset.state === filter.state);
    for (const button of $("bars").children) button.setAttribute("aria-pressed", filter.period !== null && button.period === filter.period);
  }

  search.addEventListener("input", () => {
    filter.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    choose();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && rows.length) { event.preventDefault(); list.focus(); }
  });
  $("clear").addEventListener("click", () => {
    search.value = "";
    Object.assign(filter, { words: [], state: null, period: null });
    choose();
    search.focus();
  });
  $("fold").addEventListener("click", () => {
    const isFolded = $("fold").textContent === "Expand all";
    (isFiltered() ? found : opened).fill(isFolded ? 1 : 0);
    arrange();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && document.activeElement !== search && !isCovered()) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "Escape" && reading >= 0 && document.activeElement !== search) hide();
  });

  function option(value, text) {
    const element = make("option", "", text);
    element.value = value;
    return element;
  }

  function drawStates() {
    const counts = new Map(), tones = new Map();
    for (const node of nodes) {
      counts.set(wordOf(node), (counts.get(wordOf(node)) || 0) + 1);
      tones.set(wordOf(node), toneOf(node));
    }
    const order = [...new Set(Object.values(data.words))];
    for (const word of [...counts.keys()].sort((one, other) => order.indexOf(one) - order.indexOf(other))) {
      const button = make("button"), name = make("span", "dot", word);
      button.type = "button";
      button.dataset.state = word;
      button.setAttribute("aria-pressed", "false");
      name.dataset.tone = tones.get(word);
      button.append(name, make("b", "", counts.get(word).toLocaleString("en")));
      button.addEventListener("click", () => { filter.state = filter.state === word ? null : word; choose(); });
      $("states").append(button);
      $("state").append(option(word, `${word} (${counts.get(word).toLocaleString("en")})`));
    }
    $("state").prepend(option("", "All states"));
    $("state").value = "";
    $("state").addEventListener("change", () => { filter.state = $("state").value || null; choose(); });
    $("states").hidden = $("state").hidden = counts.size < 2;
  }

  // The time line: how many conversations had their last activity in which day, week, month or year.
  const times = nodes.map((node) => node.last).filter((last) => last !== null);
  const DAY = 86400000;
  let begin = 0, finish = 1;
  const placeOf = (ms) => ((ms - begin) / (finish - begin)) * 100;

  const steps = {
    day: (date) => date.setDate(date.getDate() + 1), week: (date) => date.setDate(date.getDate() + 7),
    month: (date) => date.setMonth(date.getMonth() + 1), quarter: (date) => date.setMonth(date.getMonth() + 3),
    year: (date) => date.setFullYear(date.getFullYear() + 1), decade: (date) => date.setFullYear(date.getFullYear() + 10),
  };
  function drawHistory() {
    let [least, most] = [Infinity, -Infinity];
    for (const time of times) { least = Math.min(least, time); most = Math.max(most, time); }
    const days = (most - least) / DAY;
    const unit = days < 75 ? "day" : days < 525 ? "week" : days < 2200 ? "month" : days < 6500 ? "quarter" : days < 30000 ? "year" : "decade";
    const date = new Date(least);
    date.setHours(0, 0, 0, 0);
    if (unit === "week") date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
    else if (unit !== "day") date.setMonth(unit === "month" ? date.getMonth() : unit === "quarter" ? date.getMonth() - (date.getMonth() % 3) : 0, 1);
    const periods = [];
    while (date.getTime() <= most && periods.length < 1200) {
      const from = date.getTime();
      steps[unit](date);
      periods.push({ from, to: date.getTime(), count: 0 });
    }
    begin = periods[0].from;
    finish = periods.at(-1).to;
    for (const time of times) {
      let low = 0, high = periods.length - 1;
      while (low < high) { const middle = (low + high + 1) >> 1; if (periods[middle].from <= time) low = middle; else high = middle - 1; }
      periods[low].count++;
    }
    const highest = Math.max(4, ...periods.map((period) => period.count));
    for (const period of periods) {
      const button = make("button"), bar = make("i");
      const name = unit === "day" ? dayFormat.format(period.from) : unit === "week" ? `week of ${dayFormat.format(period.from)}`
        : unit === "month" ? monthFormat.format(period.from) : `${monthFormat.format(period.from)} – ${monthFormat.format(period.to - DAY)}`;
      button.type = "button";
      button.period = period;
      button.tabIndex = -1;
      button.title = `${name}: ${noun(period.count)}`;
      button.setAttribute("aria-label", button.title);
      button.setAttribute("aria-pressed", "false");
      if (!period.count) button.setAttribute("aria-disabled", "true");
      bar.style.height = period.count ? `max(3px, ${(100 * period.count) / highest}%)` : "0";
      button.append(bar);
      button.addEventListener("click", () => {
        if (!period.count) return;
        filter.period = filter.period === period ? null : period;
        choose();
      });
      $("bars").append(button);
    }
    $("bars").lastElementChild.tabIndex = 0;
    $("bars").addEventListener("keydown", (event) => {
      const here = document.activeElement, all = [...$("bars").children];
      const to = { ArrowLeft: here.previousElementSibling, ArrowRight: here.nextElementSibling, Home: all[0], End: all.at(-1) }[event.key];
      if (!to) return;
      event.preventDefault();
      for (const each of all) each.tabIndex = each === to ? 0 : -1;
      to.focus();
    });
    const dated = days < 75 ? new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" }) : days < 2200 ? monthFormat : new Intl.DateTimeFormat("en-GB", { year: "numeric" });
    const marks = make("div");
    for (const [home, ticks] of [[$("axis"), 4], [marks, 3]]) {
      let before = "";
      for (let k = 0; k < ticks; k++) {
        const period = periods[Math.floor((k * periods.length) / ticks)], text = dated.format(period.from), tick = make("span", "", text);
        tick.style.left = `${placeOf(period.from)}%`;
        if (text !== before) home.append(tick);
        before = text;
      }
    }
    $("ticks").append(marks);
    $("history").hidden = false;
  }

  // The reader. Contents lie compressed at the end of the page, a block for some conversations that follow each other.
  const SPEAKERS = { u: ["user", "User"], a: ["assistant", "Assistant"], t: ["tool", "Tool"], s: ["system", "System"] };
  const CUT = 20000, SLICE = 40;
  const wide = matchMedia("(min-width: 62rem)");
  const isCovered = () => reading >= 0 && !wide.matches;
  const blocks = new Map();
  const isLoaded = new Promise((done) => {
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", done, { once: true });
    else done();
  });
  let turn = 0, pending = null;

  async function contentsOf(i) {
    const all = () => [...document.querySelectorAll("script.block")];
    let here = all(), at = here.findLastIndex((block) => Number(block.dataset.first) <= i);
    if (at === here.length - 1) {
      await isLoaded;
      here = all();
      at = here.findLastIndex((block) => Number(block.dataset.first) <= i);
    }
    if (at < 0) throw new Error("the page is incomplete");
    const first = Number(here[at].dataset.first);
    if (!blocks.has(first)) {
      if (blocks.size > 7) blocks.delete(blocks.keys().next().value);
      const packed = Uint8Array.from(atob(here[at].textContent), (letter) => letter.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
      blocks.set(first, await new Response(stream).json());
    }
    const contents = blocks.get(first)[i - first];
    if (contents === undefined) throw new Error("the page is incomplete");
    return contents;
  }

  function show(i, isFocused) {
    const hash = `#${encodeURIComponent(nodes[i].id)}`;
    if (location.hash !== hash) history.pushState(null, "", hash);
    read(i, isFocused);
  }

  function hide() {
    if (location.hash) history.pushState(null, "", "#");
    read(-1, true);
  }

  async function read(i, isFocused) {
    const before = reading, mine = ++turn;
    if (pending !== null) { clearTimeout(pending.handle); pending = null; }
    reading = i;
    if (before >= 0) refill(before);
    document.body.classList.toggle("open", i >= 0);
    reader.hidden = i < 0;
    pane.inert = isCovered();
    if (i < 0) {
      measure();
      if (rows.length) { activate(active); if (isFocused) list.focus(); }
      return;
    }
    refill(i);
    const node = nodes[i], turns = $("turns");
    $("reader-title").textContent = titleOf(node);
    const facts = [["State", node.detail ? `${wordOf(node)}: ${node.detail}` : wordOf(node)], ["Last activity", node.last === null ? "" : timeFormat.format(node.last)],
      ["Events", node.events === null ? "can't be read" : node.events.toLocaleString("en")], ["Where", node.where !== "both" ? node.where : `store and workspace${node.state === "in-sync" ? "" : "; this is the store's version"}`],
      ["Private", !node.secret ? "" : node.where === "store" ? "yes, only the store has it" : "yes, kept out of the workspace"], ["Id", node.id]];
    describe(facts);
    turns.replaceChildren();
    page.scrollTop = 0;
    if (before < 0) { measure(); activate(active); }
    if (isFocused || isCovered()) page.focus({ preventScroll: true });
    let contents;
    try {
      contents = await contentsOf(i);
    } catch (error) {
      if (mine === turn) turns.replaceChildren(make("p", "note", `The contents can't be shown: ${error.message}.`));
      return;
    }
    if (mine !== turn) return;
    const [about, notes, events] = contents;
    describe([...facts, ...about]);
    for (const note of notes) turns.append(make("p", "note", note));
    if (!events.length && !notes.length) turns.append(make("p", "empty", "This conversation has no events."));
    let next = 0;
    const some = (number) => {
      const part = document.createDocumentFragment();
      for (const stop = Math.min(events.length, next + number); next < stop; next++) part.append(turnOf(events[next]));
      turns.append(part);
    };
    const later = () => {
      pending = null;
      if (next >= events.length) return;
      pending = { all: () => some(events.length) };
      pending.handle = setTimeout(() => { some(SLICE); later(); });
    };
    some(SLICE);
    later();
  }

  function describe(facts) {
    $("facts").replaceChildren(...facts.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", "", name), make("dd", name === "Id" ? "id" : "", text)]));
  }

  function turnOf([speaker, kind, time, text]) {
    const [name, words] = SPEAKERS[speaker], section = make("section", text ? "turn" : "turn bare"), head = make("header"), body = make("div", "text");
    section.dataset.speaker = name;
    head.append(make("h3", "", words), make("span", "kind", kind), make("time", "", time.slice(0, 16).replace("T", " ")));
    section.append(head);
    const isCut = text.length > CUT;
    write(body, isCut ? text.slice(0, CUT) : text);
    if (isCut) {
      const button = make("button", "more", `Show the other ${(text.length - CUT).toLocaleString("en")} characters`);
      button.type = "button";
      button.addEventListener("click", () => { body.replaceChildren(); write(body, text); });
      body.append(button);
    }
    if (name === "tool" && text.length > 200) {
      const details = make("details");
      details.append(make("summary", "", text.slice(0, 120).split("\n")[0]), body);
      section.append(details);
    } else section.append(body);
    return section;
  }

  // A part of Markdown: fences, tables as they are, headings, `code` and **bold**. No links and no images.
  function write(home, text) {
    const lines = text.split("\n");
    let paragraph = [], k = 0;
    const flush = () => {
      const joined = paragraph.join("\n").replace(/^\n+|\s+$/g, "");
      if (joined) home.append(inline(make("p"), joined));
      paragraph = [];
    };
    const preformatted = (content) => { const pre = make("pre"); pre.append(make("code", "", content)); home.append(pre); };
    while (k < lines.length) {
      const line = lines[k], fence = /^ {0,3}(`{3,}|~{3,})/.exec(line), heading = /^#{1,6} (.+)$/.exec(line);
      if (fence) {
        flush();
        const start = ++k;
        while (k < lines.length && !lines[k].trimStart().startsWith(fence[1])) k++;
        preformatted(lines.slice(start, k++).join("\n"));
      } else if (/^\s*\|.*\|\s*$/.test(line)) {
        flush();
        const start = k;
        while (k < lines.length && lines[k].trimStart().startsWith("|")) k++;
        preformatted(lines.slice(start, k).join("\n"));
      } else {
        if (heading) { flush(); home.append(inline(make("div", "head"), heading[1])); } else if (line.trim()) paragraph.push(line); else flush();
        k++;
      }
    }
    flush();
  }

  function inline(home, text) {
    let from = 0;
    for (const match of text.matchAll(/`([^`\n]+)`|\*\*([^*\n]+)\*\*/g)) {
      home.append(text.slice(from, match.index), match[1] === undefined ? make("strong", "", match[2]) : make("code", "", match[1]));
      from = match.index + match[0].length;
    }
    home.append(text.slice(from));
    return home;
  }

  function follow() {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { /* no id of ours */ }
    const i = id ? nodes.findIndex((node) => node.id === id) : -1;
    if (i === reading) return;
    if (i >= 0) {
      for (let above = parent[i]; above >= 0; above = parent[above]) opened[above] = found[above] = 1;
      if (isFiltered() && !shown[i]) { search.value = ""; Object.assign(filter, { words: [], state: null, period: null }); choose(); }
      active = i;
      arrange();
      activate(i);
    }
    read(i, true);
  }

  $("close").addEventListener("click", hide);
  addEventListener("popstate", follow);
  wide.addEventListener("change", () => { pane.inert = isCovered(); });
  let isDue = false;
  pane.addEventListener("scroll", () => {
    if (!isDue) { isDue = true; requestAnimationFrame(() => { isDue = false; draw(); }); }
  }, { passive: true });
  addEventListener("beforeprint", () => {
    if (pending !== null) { clearTimeout(pending.handle); pending.all(); pending = null; }
    if (reading >= 0) return;
    $("paper").replaceChildren(...rows.map((i) => {
      const node = nodes[i], item = make("li"), title = make("span", "title", titleOf(node)), state = make("span", "state dot", wordOf(node));
      item.style.setProperty("--depth", Math.min(node.depth, DEEPEST));
      title.dir = "auto";
      state.dataset.tone = toneOf(node);
      item.append(title, ...(node.secret ? [make("span", "lock", "private")] : []), state, make("span", "when", dayOf(node.last)));
      return item;
    }));
  });
  addEventListener("afterprint", () => $("paper").replaceChildren());

  tools.hidden = false;
  list.hidden = false;
  if (times.length) drawHistory();
  drawStates();
  arrange();
  measure();
  new ResizeObserver(measure).observe(pane);
  follow();
})();
