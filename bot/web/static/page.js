"use strict";
// Keeps an open page current: ages, changed sessions, the terminal; and the keyboard shortcuts.

document.documentElement.classList.add("js");
const link = document.getElementById("link");
const watched = document.body.querySelector("[data-session]")?.dataset.session;
// How long changes of sessions may gather until this page is read again, in milliseconds.
const gathers = document.body.querySelector("[data-live]")?.dataset.live;

function ago(then) {
  const seconds = Math.max(0, (Date.now() - then) / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

// A time of today without the date.
function clock(at) {
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString([], today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

function showAges() {
  for (const time of document.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    time.textContent = "at" in time.dataset ? clock(at) : ago(at);
    time.title = at.toLocaleString();
  }
}

// On a narrow screen, the current one of many tabs may be out of sight.
function showCurrent() {
  for (const one of document.querySelectorAll("nav [aria-current]")) {
    const nav = one.closest("nav"); // Not scrollIntoView(), which scrolls the page too.
    nav.scrollLeft = one.offsetLeft - nav.offsetLeft - (nav.clientWidth - one.offsetWidth) / 2;
  }
}

// Shows the new state of a card on this page; reload() puts it where it belongs.
function replaceCard(change) {
  const before = document.getElementById(`session-${change.id}`);
  if (!before || before.querySelector("details[open]")) return;
  const focused = before.contains(document.activeElement);
  const holder = document.createElement("template");
  holder.innerHTML = change.html;
  const card = holder.content.firstElementChild;
  const token = document.querySelector("input[name=csrf]")?.value ?? "";
  for (const field of card.querySelectorAll("input[name=csrf]")) field.value = token;
  card.classList.add("changed");
  before.replaceWith(card);
  if (focused) card.querySelector(".title").focus({ preventScroll: true });
}

// Returns a selector that finds the focused element on the reloaded page.
function selector(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  if (element.value) return `#main button[value="${CSS.escape(element.value)}"]`;
  return element.pathname ? `#main a[href="${CSS.escape(element.getAttribute("href"))}"]` : null;
}

// What a person is writing or choosing, which stays when the page is read again.
const KEPT = ["text", "filters", "new-session", "screen", "keyboard"];

async function reload() {
  const answer = await fetch(location.href).catch(() => null);
  if (!answer) return; // The server restarts: the stream of events says when it is back.
  if (answer.redirected) return location.reload(); // Leads to the sign-in, and back to this page.
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const kept = KEPT.map((id) => document.getElementById(id)).filter((one) => one);
  const active = document.activeElement;
  const focused = selector(active);
  const read = document.getElementById("log")?.scrollTop; // Counted from the end.
  const folds = [...document.querySelectorAll("details[id]")].map((fold) => [fold.id, fold.open]);
  document.getElementById("main").replaceWith(page.getElementById("main"));
  for (const [id, open] of folds) {
    const fold = document.getElementById(id);
    if (fold) fold.open = open;
  }
  for (const one of kept) document.getElementById(one.id)?.replaceWith(one);
  if (kept.some((one) => one.contains(active))) active.focus({ preventScroll: true });
  else if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
  if (read) document.getElementById("log")?.scrollTo(0, read);
  showCurrent();
  showAges();
}

// Reloads soon, and spends at most a tenth of the time on it where the server is slow.
let pending = 0;
let took = 0;
let missed = false; // Whether something changed while a person was asked to confirm.
function reloadSoon(delay) {
  missed = Boolean(document.querySelector("details.confirm[open]"));
  if (pending || missed) return;
  pending = setTimeout(async () => {
    const begun = Date.now();
    try {
      await reload();
    } finally {
      took = Date.now() - begun;
      pending = 0;
    }
  }, Math.max(delay, 10 * took));
}

document.addEventListener("toggle", () => missed && reloadSoon(0), true);

async function showScreen() {
  const screen = document.getElementById("screen");
  if (!screen || document.hidden) return;
  const answer = await fetch(screen.dataset.screen).catch(() => null);
  if (answer?.ok && !answer.redirected) {
    const html = await answer.text();
    if (html !== screen.innerHTML) screen.innerHTML = html; // Escaped by the server, as all pages.
  }
}

function showState(state, text) {
  link.className = `link ${state}`;
  link.textContent = text;
}

let lost = false;
const sent = performance.getEntriesByType("navigation")[0]?.redirectCount > 0;
const events = new EventSource("/events");

events.onopen = () => {
  // Changes were missed meanwhile; and what a form caused may have happened before this connection.
  if (lost || sent) reloadSoon(0);
  lost = false;
  showState("live", "live");
};

events.onerror = () => {
  lost = true;
  if (events.readyState !== EventSource.CLOSED) {
    return showState("lost", "connection lost, reconnecting");
  }
  showState("lost", "disconnected; reload the page");
  reloadSoon(0); // Leads a person who has signed out, perhaps on another page, to the sign-in.
};

events.addEventListener("sessions", (event) => {
  const changes = JSON.parse(event.data);
  if (watched === undefined) {
    changes.forEach(replaceCard);
    showAges();
    if (gathers) reloadSoon(Number(gathers));
  } else if (changes.some((change) => change.id === watched)) {
    reloadSoon(200);
  }
});

// What j and k step through.
const ITEMS = ".row, .pull, tr";

function step(forward) {
  const titles = [...document.querySelectorAll(`:is(${ITEMS}) .title`)];
  const now = titles.findIndex((title) => title.closest(ITEMS).contains(document.activeElement));
  const next = titles[now < 0 ? 0 : now + (forward ? 1 : -1)];
  next?.focus();
  next?.closest(ITEMS).scrollIntoView({ block: "nearest" });
}

const keys = {
  j: () => step(true),
  k: () => step(false),
  "/": () => document.getElementById("search")?.focus(),
  "?": () => document.getElementById("keys")?.showModal(),
};

const places = document.querySelector("nav.places");
[...places.dataset.keys].forEach((key, place) => (keys[key] = () => places.children[place].click()));

document.addEventListener("keydown", (event) => {
  // The focus stays in a closed dialog for a moment.
  const typing = event.target.closest?.("input, textarea, select, dialog[open]");
  const fold = event.key === "Escape" && event.target.closest?.("details.confirm[open]");
  if (fold) {
    fold.open = false;
    return fold.querySelector("summary").focus();
  }
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const tab = document.querySelectorAll(".tabs a")[Number(event.key) - 1];
  const action = tab ? () => tab.click() : keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

document.addEventListener("change", (event) => {
  if (event.target.matches("#filters select")) event.target.form.requestSubmit();
});

// Without empty fields, an address of the board is short enough to be sent to others.
document.addEventListener("submit", (event) => {
  if (event.target.id !== "filters") return;
  for (const field of event.target.elements) field.disabled = field.value === "";
});

addEventListener("pageshow", () => {
  for (const field of document.getElementById("filters")?.elements ?? []) field.disabled = false;
});

showCurrent();
showAges();
setInterval(showAges, 10000);
setInterval(showScreen, 1000);
// A page about what no session tells, such as the age of a backlog.
const every = document.body.querySelector("[data-every]")?.dataset.every;
if (every) setInterval(() => document.hidden || reloadSoon(0), Number(every));
