"use strict";
// Keeps an open page current: ages, changed sessions and the connection state.

const link = document.getElementById("link");
const watched = document.body.querySelector("[data-session]")?.dataset.session;

function ago(then) {
  const seconds = Math.max(0, (Date.now() - then) / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function showAges() {
  for (const time of document.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    time.textContent = "at" in time.dataset ? at.toLocaleTimeString([], { timeStyle: "short" }) : ago(at);
    time.title = new Date(time.dateTime).toLocaleString();
  }
}

function place(change) {
  const before = document.getElementById(`session-${change.id}`);
  const focused = before?.contains(document.activeElement);
  before?.remove();
  const rows = document.querySelector(`#group-${change.group} .rows`);
  const holder = document.createElement("template");
  holder.innerHTML = change.html;
  const row = holder.content.firstElementChild;
  row.classList.add("changed");
  const next = [...rows.children].find((other) => other.dataset.sort < row.dataset.sort);
  rows.insertBefore(row, next ?? null);
  if (focused) row.querySelector(".title").focus({ preventScroll: true });
}

function count() {
  for (const section of document.querySelectorAll("section[id^=group-]")) {
    const rows = section.querySelector(".rows").childElementCount;
    section.querySelector(".count").textContent = rows;
    section.hidden = rows === 0;
  }
  document.getElementById("nothing").hidden = document.querySelector(".row") !== null;
}

// Returns a selector that finds the focused element on the reloaded page.
function selector(element) {
  if (element.id) return `#${element.id}`;
  if (element.value) return `#main button[value="${CSS.escape(element.value)}"]`;
  return element.pathname ? `#main a[href="${element.getAttribute("href")}"]` : null;
}

async function reload() {
  const answer = await fetch(location.href);
  if (answer.redirected) return location.assign(answer.url); // The session has expired.
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const written = document.getElementById("text");
  const focused = selector(document.activeElement);
  const read = document.getElementById("log")?.scrollTop; // Counted from the end.
  document.getElementById("main").replaceWith(page.getElementById("main"));
  const empty = document.getElementById("text");
  if (written && empty) empty.replaceWith(written); // Keep the text being written, with its cursor.
  if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
  if (read) document.getElementById("log")?.scrollTo(0, read);
  showAges();
}

function showState(state, text) {
  link.className = `link ${state}`;
  link.textContent = text;
}

let lost = false;
const events = new EventSource("/events");

events.onopen = () => {
  if (lost) reload(); // Changes were missed meanwhile.
  lost = false;
  showState("live", "live");
};

events.onerror = () => {
  lost = true;
  if (events.readyState === EventSource.CLOSED) showState("lost", "disconnected; reload the page");
  else showState("lost", "connection lost, reconnecting");
};

events.addEventListener("sessions", (event) => {
  const changes = JSON.parse(event.data);
  if (watched === undefined) {
    changes.forEach(place);
    count();
    showAges();
  } else if (changes.some((change) => change.id === watched)) {
    reload();
  }
});

showAges();
setInterval(showAges, 10000);
