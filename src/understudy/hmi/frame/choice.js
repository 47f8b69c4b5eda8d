// A drop-down list inside the page. The list of a native <select> is a window of its own: keys that
// are pressed while it is open, Escape among them, never reach the page.

import { add, button } from "./elements.js";

const TYPING_MS = 1500; // between two letters of a name

export class Choice {
  // `element`: an empty element; calls changed(value) when the user chooses
  constructor(element, changed) {
    this.button = add(element, "button", "u-name u-choice-button");
    this.button.setAttribute("aria-haspopup", "listbox");
    this.list = add(element, "div", "u-choice-list u-menu");
    this.list.setAttribute("role", "listbox");
    element.classList.add("u-choice");
    Object.assign(this, { element, changed, values: [], value: "", opened: null, typed: "", typedAt: 0 });
    this.open(false);
    this.button.addEventListener("click", () => this.open(this.list.hidden));
  }

  open(is) {
    this.opened?.abort();
    this.opened = is ? new AbortController() : null;
    this.list.hidden = !is;
    this.button.setAttribute("aria-expanded", is);
    if (is) this.closeFromElsewhere(this.opened);
  }

  closeFromElsewhere({ signal }) {
    const leave = (target) => this.element.contains(target) || this.open(false);
    document.addEventListener("pointerdown", ({ target }) => leave(target), { signal });
    this.element.addEventListener("focusout", ({ relatedTarget }) => leave(relatedTarget), { signal });
    window.addEventListener("keydown", ({ key }) => key === "Escape" && this.open(false), { signal });
    this.element.addEventListener("keydown", (event) => this.move(event), { signal });
    (this.list.querySelector("[aria-selected=true]") ?? this.list.firstElementChild)?.focus();
  }

  // The arrows, and the beginning of a name that is typed: the focus goes to that row.
  move(event) {
    const rows = [...this.list.children];
    const here = rows.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    let row = rows[here + step];
    if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.altKey && !event.metaKey) {
      this.typed = (event.timeStamp - this.typedAt < TYPING_MS ? this.typed : "") + event.key.toLowerCase();
      this.typedAt = event.timeStamp;
      row = rows.find(({ textContent }) => textContent.toLowerCase().startsWith(this.typed));
    }
    if (!row) return;
    event.preventDefault();
    row.focus();
  }

  // `options`: [[value, text], …]; a value that is no longer among them becomes the first
  show(options) {
    const written = JSON.stringify(options);
    if (written === this.written) return; // an open list keeps its focus
    this.written = written;
    this.values = options.map(([value]) => value);
    if (!this.values.includes(this.value)) this.value = this.values[0];
    this.list.replaceChildren(...options.map(([value, text]) => this.item(value, text)));
    this.button.textContent = options.find(([value]) => value === this.value)?.[1] ?? "";
  }

  item(value, text) {
    const item = button("u-choice-item", text, { value }, () => this.choose(value, text));
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", value === this.value);
    return item;
  }

  choose(value, text) {
    this.value = value;
    this.button.textContent = text;
    this.open(false);
    this.changed(value);
  }
}
