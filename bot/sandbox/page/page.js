// The page: one panel for each person; a long poll tells when to look again.

import { read } from "./api.js";
import { Panel } from "./panel.js";
import { element } from "./render.js";

const panels = new Map();
const tabs = document.getElementById("people");
const link = document.getElementById("link");
const CHOSEN = "sandbox-person";

function choose(key, focus = false) {
  for (const [name, panel] of panels) {
    const on = name === key;
    panel.root.classList.toggle("chosen", on);
    panel.tab.setAttribute("aria-selected", String(on));
    panel.tab.tabIndex = on ? 0 : -1;
    if (on && focus) panel.tab.focus();
    // A hidden panel has no height to scroll in: what came meanwhile is shown now.
    if (on) panel.toEnd();
  }
  sessionStorage.setItem(CHOSEN, key);
}

function tabKeys(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const keys = [...panels.keys()];
  const at = keys.indexOf(sessionStorage.getItem(CHOSEN));
  choose(keys[(at + step + keys.length) % keys.length], true);
}

function addPanel(person) {
  const panel = new Panel(person);
  panel.root.id = `panel-${person.key}`;
  panel.tab = element("button", {
    role: "tab", type: "button", "aria-controls": panel.root.id, id: `tab-${person.key}`,
    onclick: () => choose(person.key),
  }, element("span", { class: "tab-name" }, person.first_name),
  element("span", { class: "tab-note" }, person.note || "person"));
  panels.set(person.key, panel);
  tabs.append(panel.tab);
  document.getElementById("panels").append(panel.root);
}

async function refresh() {
  const state = await read("state");
  for (const person of state.people) {
    if (!panels.has(person.key)) addPanel(person);
    const panel = panels.get(person.key);
    panel.know(person, state);
    panel.tab.classList.toggle("news", panel.unread);
  }
  await Promise.all([...panels.values()].map((panel) => panel.refresh()));
  return state.version;
}

function connected(yes) {
  link.textContent = yes ? "" : "The sandbox does not answer. Trying again…";
}

async function live() {
  let version = null;
  for (;;) {
    try {
      if (version !== null) await read("events", { after: version, timeout: 25 });
      version = await refresh();
      connected(true);
    } catch (error) {
      // Another run has another token: only a fresh page knows it.
      if (error.status === 403) { location.reload(); return; }
      connected(false);
      version = null;
      await new Promise((done) => { setTimeout(done, 1500); });
    }
    if (panels.size && !document.querySelector(".panel.chosen")) {
      const kept = sessionStorage.getItem(CHOSEN);
      choose(panels.has(kept) ? kept : [...panels.keys()][0]);
    }
  }
}

tabs.addEventListener("keydown", tabKeys);
live();
