// The keyboard of every page.
//
// Escape closes what is open: a list, a menu, a dialog. If nothing is open it is the emergency stop,
// wherever the focus is, and two presses in a row always stop. An element with `data-own-escape` (the
// editor) counts as open while it has the focus, and loses it. The frame shows when it takes two.
//
// Any other key clicks the visible button with that `data-key`, but not while something is open, and
// in a field only F1 … F12 do. Keys that start a motion are held together with Alt ("Alt+g").

import { openDialog } from "./dialog.js";
import { add, html } from "./elements.js";

const NO_TEXT = ["range", "checkbox", "radio", "button", "submit", "reset", "file", "color", "image"];
const ACTIVATES = [" ", "Enter"];
const OPEN = ".q-menu, .q-dialog__inner:not(.q-dialog__inner--seamless), dialog[open], [role=listbox], [role=menu], .cm-tooltip-autocomplete";
const SHOW_MS = 200;
const TWICE_MS = 1000;

// Whether keys are text there. The read-only field of a drop-down list takes none.
export function isTextField(target) {
  const field = target instanceof Element && target.closest("input, textarea, [contenteditable=true]");
  if (!field) return false;
  return !field.readOnly && !(field.matches("input") && NO_TEXT.includes(field.type));
}

// Whether a list, a menu or a dialog is open: the keys are for it.
export const isOpen = () => [...document.querySelectorAll(OPEN)].some((each) => each.checkVisibility());

export const isUsable = (button) => button.checkVisibility() && !button.disabled && !button.closest("[inert]");

// A locked editor takes no text and no Escape.
const ownsEscape = (target) => isTextField(target) && target.closest("[data-own-escape]");

// A button that was reached with Tab is pressed by space and Enter, as everywhere; one that was
// clicked is not. (`:focus-visible` cannot tell: it also becomes true when a key is pressed later.)
let reachedByTab = false;
let escapedAt = -Infinity;

const pressesFocused = ({ key }) => reachedByTab && ACTIVATES.includes(key);

// The letter also with Caps Lock. With Alt some keyboards give another character (⌥ of a Mac).
function nameOf({ key, code, altKey, shiftKey }) {
  if (!altKey) return key.length === 1 && !shiftKey ? key.toLowerCase() : key;
  const letter = /^[a-z]$/i.test(key) ? key : code.replace("Key", "");
  return `Alt+${letter.toLowerCase()}`;
}

// Listens before all other scripts, so that none of them swallows a key.
export function listen(stop) {
  window.addEventListener("keydown", (event) => {
    if (event.key === "Tab") reachedByTab = true;
    if (event.key === "Escape") return escape(event, stop);
    escapedAt = -Infinity;
    press(event);
  }, true);
  window.addEventListener("pointerdown", () => ([reachedByTab, escapedAt] = [false, -Infinity]), true);
  const showTwice = () => document.body.classList.toggle("u-escape-twice", takesEscape(document.activeElement));
  window.addEventListener("focusin", showTwice);
  setInterval(showTwice, SHOW_MS); // an element that is removed reports no loss of the focus
}

const takesEscape = (target) => Boolean(isOpen() || ownsEscape(target));

// The event goes on: what is open closes itself.
function escape(event, stop) {
  if (event.repeat) return;
  const twice = event.timeStamp - escapedAt < TWICE_MS;
  escapedAt = event.timeStamp;
  const closes = takesEscape(event.target);
  if (closes && !isOpen()) setTimeout(() => document.activeElement.blur()); // after its own keys
  if (closes && !twice) return;
  if (!document.querySelector("[data-key=Escape]")?.closest("[inert]")) stop();
}

function press(event) {
  if (event.repeat || event.ctrlKey || event.metaKey || isOpen()) return;
  if (isTextField(event.target) && !/^F\d+$/.test(event.key)) return;
  if (pressesFocused(event)) return;
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
  for (const note of [notes.alt, held.length && notes.held, notes.escape, close]) if (note) add(dialog, "p", "u-keys-note", note);
  dialog.addEventListener("click", () => dialog.close());
  openDialog(dialog);
}

function nameShown(key, texts) {
  if (key === " ") return texts.dataset.space;
  return key.replace("Escape", "Esc").replace(/Alt\+(.)/, (all, letter) => `Alt ${letter.toUpperCase()}`);
}

function addLine(list, key, does) {
  const line = add(list, "div");
  add(line, "kbd", "", key);
  line.append(does);
}
