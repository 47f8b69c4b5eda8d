// A drop-down list inside the page. The list of a native <select> is a window of its own: keys that
// are pressed while it is open, Escape among them, never reach the page.

export class Choice {
  // `element`: an empty element; calls changed(value) when the user chooses
  constructor(element, changed) {
    this.button = element.appendChild(document.createElement("button"));
    this.button.className = "u-name u-choice-button";
    this.button.setAttribute("aria-haspopup", "listbox");
    this.list = element.appendChild(document.createElement("div"));
    this.list.className = "u-choice-list u-menu";
    this.list.setAttribute("role", "listbox");
    element.classList.add("u-choice");
    Object.assign(this, { element, changed, values: [], value: "", opened: null });
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
  }

  // `options`: [[value, text], …]; a value that is no longer among them becomes the first
  show(options) {
    this.values = options.map(([value]) => value);
    if (!this.values.includes(this.value)) this.value = this.values[0];
    this.list.replaceChildren(...options.map(([value, text]) => this.item(value, text)));
    this.button.textContent = options.find(([value]) => value === this.value)?.[1] ?? "";
  }

  item(value, text) {
    const item = Object.assign(document.createElement("button"), { className: "u-choice-item", textContent: text });
    item.dataset.value = value;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", value === this.value);
    item.addEventListener("click", () => this.choose(value, text));
    return item;
  }

  choose(value, text) {
    this.value = value;
    this.button.textContent = text;
    this.open(false);
    this.changed(value);
  }
}
