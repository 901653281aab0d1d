// What the page can do beside being read: show one branch at a time, find entries, open and close,
// change between light and dark, be used by keys. Without it everything is there to read.
(() => {
  "use strict";
  const root = document.documentElement;
  const find = (name) => document.getElementById(name);
  root.classList.add("js");

  const branches = [...document.querySelectorAll("section.branch")];
  const tree = find("tree");
  const lines = [...tree.querySelectorAll("li")];
  const lineOf = new Map(lines.map((line) => [line.firstChild.hash.slice(1), line]));
  const first = branches[0];
  let shown = null;
  let current = null;

  // The entry of an element that has an id of its own: a result stands in its answer.
  const entryOf = (element) => element.closest(".entry");
  const branchOf = (element) => element.closest("section.branch");

  // Shows a branch with all that leads to it, up to where each part of that was left.
  function show(branch) {
    if (!branch || branch === shown) return;
    shown = branch;
    const until = new Map();
    for (let at = branch, end = null; at; ) {
      until.set(at, end);
      const from = at.dataset.from && find(at.dataset.from);
      end = from && (entryOf(from) || from);
      at = from && branchOf(from);
      if (until.has(at)) break;
    }
    for (const part of branches) {
      part.hidden = !until.has(part);
      const end = until.get(part);
      // Where it goes on elsewhere, nothing follows but the ways that lead from there.
      let state = "before";
      for (const child of part.children) {
        if (state === "at" && !child.matches(".ways")) state = "after";
        child.hidden = state === "after";
        if (child === end) state = "at";
      }
    }
    for (const [name, line] of lineOf) {
      const element = find(name);
      const entry = element && (entryOf(element) || element);
      line.classList.toggle("on", Boolean(entry && !entry.hidden && !branchOf(entry).hidden));
    }
    find("elsewhere").hidden = branch === first;
  }

  // Goes to what an address names.
  function go(name) {
    const element = find(name) || find("e-" + name);
    if (!element || !branchOf(element)) return;
    const entry = entryOf(element) || element;
    if (branchOf(entry).hidden || entry.hidden) show(branchOf(entry));
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (element.classList.contains("result")) element.parentElement.open = true;
    choose(entry);
    element.scrollIntoView({ block: "start" });
  }

  function choose(entry) {
    if (current) current.classList.remove("current");
    current = entry;
    current.classList.add("current");
    for (const line of tree.querySelectorAll(".here")) line.classList.remove("here");
    const line = lineOf.get(entry.id);
    if (!line) return;
    line.classList.add("here");
    const { top, bottom } = line.getBoundingClientRect();
    const list = tree.querySelector("ol").getBoundingClientRect();
    if (top < list.top || bottom > list.bottom) line.scrollIntoView({ block: "center" });
  }

  const named = () => decodeURIComponent(location.hash.slice(1));
  addEventListener("hashchange", () => go(named()));
  tree.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    if (tree.matches(":popover-open")) tree.hidePopover();
    if (link.hash.slice(1) === named()) go(named());
  });
  find("back").addEventListener("click", (event) => {
    event.preventDefault();
    history.replaceState(null, "", location.pathname + location.search);
    show(first);
  });

  // What is in an entry, read when somebody searches for the first time.
  let texts = null;
  function textOf(line) {
    if (!texts) {
      texts = new Map();
      for (const each of lines) {
        const element = find(each.firstChild.hash.slice(1));
        const inside = element ? element.textContent.slice(0, 20000) : "";
        texts.set(each, (each.textContent + " " + inside).toLowerCase());
      }
    }
    return texts.get(line);
  }

  let waiting = 0;
  function search() {
    const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const line of lines) {
      line.hidden = words.length > 0 && !words.every((word) => textOf(line).includes(word));
    }
    empty();
  }
  function empty() {
    tree.querySelector(".none").hidden = lines.some((line) => line.offsetParent !== null);
  }
  find("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 120);
  });
  find("filter").addEventListener("change", (event) => {
    root.dataset.filter = event.target.value;
    empty();
  });

  // Light and dark: as the system has it, until somebody chooses.
  const remember = (value) => {
    try {
      if (value) localStorage.setItem("pliant-theme", value);
      return localStorage.getItem("pliant-theme");
    } catch {
      return null;
    }
  };
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const chosen = remember();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  function turn() {
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
  }
  find("theme").addEventListener("click", turn);

  function openAll() {
    const open = !root.classList.contains("opened");
    root.classList.toggle("opened", open);
    for (const each of document.querySelectorAll("main details")) each.open = open;
    find("all").textContent = open ? "close all" : "open all";
  }
  find("all").addEventListener("click", openAll);

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const code = button.parentElement.querySelector("code").textContent;
    const done = () => {
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    };
    if (navigator.clipboard) navigator.clipboard.writeText(code).then(done, () => {});
  });

  // To the next entry of a kind, or the one before.
  function step(by, kind) {
    const all = [...document.querySelectorAll(kind)].filter((each) => each.offsetParent !== null);
    const top = (each) => each.getBoundingClientRect().top;
    const next = by > 0 ? all.find((each) => top(each) > 80) : all.filter((each) => top(each) < 60).pop();
    if (!next) return;
    choose(next);
    next.scrollIntoView({ block: "start" });
  }
  const keys = {
    j: () => step(1, ".entry"),
    k: () => step(-1, ".entry"),
    n: () => step(1, ".entry.user"),
    p: () => step(-1, ".entry.user"),
    e: openAll,
    t: turn,
    o: () => {
      const inside = current ? [...current.querySelectorAll("details")] : [];
      const open = !inside.some((each) => each.open);
      for (const each of inside) each.open = open;
    },
    "/": () => {
      if (getComputedStyle(find("search")).display === "none" || !find("search").offsetParent) tree.showPopover();
      find("search").focus();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  show(first);
  if (location.hash.length > 1) go(named());
})();
