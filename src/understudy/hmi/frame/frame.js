// The frame in the browser: says when what is shown is old, lends the keyboard to the buttons.

import { feed } from "./feed.js";
import "./slider.js";

const LOOK_MS = 200;
const STOP_MS = 1500;
const YEAR_S = 31536000;
const FIELDS = "input, textarea, [contenteditable=true], .cm-editor";

function remember(name, value) {
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=${YEAR_S}; SameSite=Strict`;
}

// ── what is old is grey ──

function look() {
  document.body.classList.toggle("u-old", feed.stale);
}

setInterval(look, LOOK_MS);
feed.onFrame(look);

// ── the stop: straight to the cell, and a word where it does not confirm ──

const doubt = (is) => document.body.classList.toggle("u-in-doubt", is);

// An answer that comes late still is one.
async function stop() {
  const order = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" };
  const late = setTimeout(() => doubt(true), STOP_MS);
  try {
    doubt(!(await fetch("/api/emergency_stop", order)).ok);
  } catch {
    doubt(true);
  } finally {
    clearTimeout(late);
  }
}

// ── keys: a button with data-key is pressed by that key ──

const typing = (target) => target instanceof Element && target.closest(FIELDS);
const open = () => document.querySelector(".q-menu, .q-dialog__inner, dialog[open]");

function press(event) {
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" ? open() : typing(event.target)) return;
  const button = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!button || button.disabled || button.closest("[inert]")) return;
  event.preventDefault();
  button.click();
}

window.addEventListener("keydown", press);

function keys() {
  const dialog = document.createElement("dialog");
  dialog.className = "u-keys";
  for (const button of document.querySelectorAll("[data-key]")) {
    const line = dialog.appendChild(document.createElement("div"));
    line.appendChild(document.createElement("kbd")).textContent = button.dataset.key;
    line.append(button.dataset.does);
  }
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

window.understudyFrame = {
  keys,
  stop,
  remember,
  language(name) {
    remember("language", name);
    location.reload();
  },
};
