// The keyboard of every page.
//
// Escape is the emergency stop wherever the focus is. Only an element with `data-own-escape` (the
// editor) uses the first Escape itself: it loses the focus, and the next Escape stops; the frame
// shows that while the focus is there. Any other key clicks the visible button with that
// `data-key`, unless a text is typed or a dialog is open.

import { openDialog } from "./dialog.js";
import { add, html } from "./elements.js";

const NO_TEXT = ["range", "checkbox", "radio", "button", "submit", "reset", "file", "color", "image"];
const ACTIVATES = [" ", "Enter"];
const SHOW_MS = 200;

// Whether keys are text there. The read-only field of a drop-down list takes none.
export function isTextField(target) {
  const field = target instanceof Element && target.closest("input, textarea, [contenteditable=true]");
  if (!field) return false;
  return !field.readOnly && !(field.matches("input") && NO_TEXT.includes(field.type));
}

export const isDialogOpen = () => Boolean(document.querySelector(".q-dialog__inner:not(.q-dialog__inner--seamless), dialog[open]"));

export const isUsable = (button) => button.checkVisibility() && !button.disabled && !button.closest("[inert]");

// A locked editor takes no text and no Escape.
export const ownsEscape = (target) => isTextField(target) && target.closest("[data-own-escape]");

// A button that was reached with Tab is pressed by space and Enter, as everywhere; one that was
// clicked is not. (`:focus-visible` cannot tell: it also becomes true when a key is pressed later.)
let reachedByTab = false;

const pressesFocused = ({ key }) => reachedByTab && ACTIVATES.includes(key);

// The letter also with Caps Lock.
const nameOf = (event) => (event.key.length === 1 && !event.shiftKey ? event.key.toLowerCase() : event.key);

// Listens before all other scripts, so that none of them swallows a key.
export function listen(stop) {
  window.addEventListener("keydown", (event) => {
    if (event.key === "Tab") reachedByTab = true;
    if (event.key === "Escape") escape(event, stop);
    else press(event);
  }, true);
  window.addEventListener("pointerdown", () => (reachedByTab = false), true);
  const showOwner = () => document.body.classList.toggle("u-own-escape", Boolean(ownsEscape(document.activeElement)));
  window.addEventListener("focusin", showOwner);
  setInterval(showOwner, SHOW_MS); // an element that is removed reports no loss of the focus
}

// The event goes on: an open menu or dialog closes as well.
function escape(event, stop) {
  if (event.repeat) return;
  if (ownsEscape(event.target)) setTimeout(() => document.activeElement.blur()); // after its own keys
  else if (!document.querySelector("[data-key=Escape]")?.closest("[inert]")) stop();
}

function press(event) {
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  if (isTextField(event.target) || isDialogOpen() || pressesFocused(event)) return;
  const buttons = document.querySelectorAll(`[data-key="${CSS.escape(nameOf(event))}"]`);
  const button = [...buttons].find(isUsable);
  if (!button) return;
  event.preventDefault();
  event.stopPropagation();
  button.click();
}

// ── list of keys ──

// The keys of the open page; `texts`: element whose data-… attributes have its texts.
export function showKeys(texts) {
  const dialog = html("dialog", "u-keys");
  const { title, close, ...notes } = texts.dataset;
  add(dialog, "h2", "", title);
  const list = add(dialog, "div", "u-key-list");
  const buttons = [...document.querySelectorAll("[data-key]")].filter((button) => button.dataset.does);
  for (const { dataset } of buttons) addLine(list, nameShown(dataset.key, texts), dataset.does);
  const held = [...document.querySelectorAll("[data-hold-key]")].filter(isUsable);
  for (const { dataset } of held) addLine(list, `⇧ ${dataset.holdKey.replace("Key", "")}`, dataset.does);
  for (const note of [held.length && notes.held, notes.escape, close]) if (note) add(dialog, "p", "u-keys-note", note);
  dialog.addEventListener("click", () => dialog.close());
  openDialog(dialog);
}

const nameShown = (key, texts) => (key === " " ? texts.dataset.space : key === "Escape" ? "Esc" : key);

function addLine(list, key, does) {
  const line = add(list, "div");
  add(line, "kbd", "", key);
  line.append(does);
}
