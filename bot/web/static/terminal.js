"use strict";
// Types into the terminal of a session. Loaded after page.js, whose showScreen() it uses.

// The names of keys, by the value of KeyboardEvent.key.
const NAMES = {
  Enter: "Enter", Tab: "Tab", Escape: "Escape", Backspace: "BSpace", Delete: "DC", Insert: "IC",
  ArrowUp: "Up", ArrowDown: "Down", ArrowLeft: "Left", ArrowRight: "Right",
  Home: "Home", End: "End", PageUp: "PageUp", PageDown: "PageDown",
};
for (let number = 1; number <= 12; number++) NAMES[`F${number}`] = `F${number}`;
const MOST_KEYS = 100; // In a request, as the most characters to paste.
const MOST_PASTED = 10000;
const PAUSE = 100; // Between two requests, so that fast typing becomes few of them.
const FOLLOW = 5000; // So long after a key the screen is read often. All are in milliseconds.

let typing = false; // Whether keys go to the terminal while it is focused.
let sending = false;
let drawing = false;
let sentAt = 0;
const waiting = []; // Requests that are not sent yet, each with a text to paste and keys after it.

const keyboard = () => document.getElementById("keyboard");
const wait = (time) => new Promise((done) => setTimeout(done, time));

function say(text) {
  const status = document.getElementById("typing");
  if (status) status.textContent = text;
}

function setTyping(on, why = "") {
  const screen = document.getElementById("screen");
  const button = document.getElementById("type");
  typing = on && Boolean(screen && button);
  if (screen) {
    screen.classList.toggle("typing", typing);
    screen.setAttribute("role", typing ? "application" : "region"); // Screen readers pass keys on.
    if (typing) screen.focus();
  }
  if (button) {
    button.setAttribute("aria-pressed", typing);
    button.textContent = typing ? "Stop typing" : "Type into the terminal";
  }
  say(typing ? "Keys go to the terminal. Ctrl+Shift+L stops that." : why);
}

// Returns the name of a pressed key, or null for one that is the browser's.
function named(event) {
  const { ctrlKey: ctrl, altKey: alt, shiftKey: shift, key } = event;
  if (event.isComposing || event.metaKey) return null;
  const name = NAMES[key];
  if (name === "Tab" && shift) return "BTab";
  if (name) return (ctrl ? "C-" : "") + (alt ? "M-" : "") + (shift ? "S-" : "") + name;
  if ([...key].length !== 1) return null;
  if (event.getModifierState("AltGraph") || (!ctrl && !alt)) return key;
  if (ctrl && (alt || shift)) return null;
  if (ctrl && key === " ") return "C-Space";
  if (ctrl) return /^[a-z@[\\\]^_]$/.test(key) ? `C-${key}` : null;
  return /^[!-~]$/.test(key) ? `M-${key}` : key;
}

function press(...keys) {
  const last = waiting.at(-1);
  if (last && last.keys.length + keys.length <= MOST_KEYS) last.keys.push(...keys);
  else waiting.push({ paste: "", keys });
  send();
}

function paste(text, ...keys) {
  text = text.replaceAll("\r\n", "\n");
  if ([...text].length > MOST_PASTED) {
    return say(`Paste at most ${MOST_PASTED.toLocaleString()} characters at once.`);
  }
  if (text || keys.length) waiting.push({ paste: text, keys });
  send();
}

// Sends what waits, one request after the other, so that it stays in order.
async function send() {
  if (sending) return;
  sending = true;
  try {
    while (waiting.length) {
      await wait(sentAt + PAUSE - Date.now());
      const problem = await post(waiting.shift());
      sentAt = Date.now();
      if (problem) {
        waiting.length = 0;
        setTyping(false, problem);
      }
    }
  } finally {
    sending = false;
  }
}

// Sends a request, and once more if it may have been lost. Its key keeps it from being typed twice.
async function post({ paste, keys }) {
  const form = keyboard();
  if (!form) return "Nothing can be typed here any more.";
  const random = crypto.getRandomValues(new Uint8Array(12));
  const key = Array.from(random, (one) => one.toString(16).padStart(2, "0")).join("");
  const csrf = form.elements.csrf.value;
  const body = new URLSearchParams({ csrf, key, paste, keys: keys.length ? JSON.stringify(keys) : "" });
  for (let attempt = 0; attempt < 3; attempt++) {
    if (attempt) await wait(1000);
    const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
    if (answer?.ok && !answer.redirected) return "";
    if (answer?.redirected) return "You are signed out: reload the page.";
    if (!answer || answer.status === 429) continue;
    const problem = await answer.json().catch(() => null);
    return problem ? `${problem.detail} ${problem.remedy}` : "The server could not take the keys.";
  }
  return "The server cannot be reached: what you typed last may be lost.";
}

document.addEventListener("keydown", (event) => {
  if (!typing || event.target.id !== "screen") return;
  event.stopPropagation(); // No key is a shortcut of the page now.
  if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "l") {
    event.preventDefault();
    setTyping(false, "The keyboard controls the page again.");
    return document.getElementById("type")?.focus();
  }
  const plain = event.ctrlKey && !event.shiftKey && !event.altKey;
  if (plain && event.key === "v") return; // The event "paste" follows.
  if (plain && event.key === "c" && String(getSelection())) return; // Copies what is selected.
  const key = named(event);
  if (key === null) return;
  event.preventDefault();
  press(key);
}, true);

document.addEventListener("paste", (event) => {
  if (!typing || event.target.closest?.("#screen") === null) return;
  event.preventDefault();
  paste(event.clipboardData.getData("text/plain"));
});

document.addEventListener("focusout", (event) => {
  if (event.target.id !== "screen") return;
  // Not if the window loses the focus, or if the page is read again and gives it back.
  setTimeout(() => typing && document.activeElement?.id !== "screen" && setTyping(false));
});

// The buttons of single keys leave the focus where it is.
document.addEventListener("mousedown", (event) => {
  if (event.target.closest?.("#keyboard button[value]")) event.preventDefault();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#keyboard button[type=button]");
  if (button?.id === "type") setTyping(!typing);
  else if (button) press(button.value);
});

document.addEventListener("submit", (event) => {
  if (event.target.id !== "keyboard") return;
  event.preventDefault();
  paste(event.target.elements.line.value, "Enter");
  event.target.elements.line.value = "";
});

setInterval(async () => {
  if (drawing || Date.now() - sentAt > FOLLOW) return;
  drawing = true;
  await showScreen();
  drawing = false;
}, 150);
