// Log of the cell: events and wire traffic in one list, the newest on top. Each browser has its own
// filters.

import { call, expose, fixed, onSearch, save, text, whenReady, whileVisible } from "../../frame/api.js";
import { Choice } from "../../frame/choice.js";
import { add, html } from "../../frame/elements.js";

const POLL_MS = 300;
const ROWS_KEPT = 4000;
const ROWS_SHOWN = 300;
const FIELDS_SHOWN = 24;
const ARROWS = { ">": "→", "<": "←", "!": "•" };

class Log {
  constructor(element) {
    this.element = element;
    this.rows = element.querySelector("#rows");
    this.where = new Choice(element.querySelector("[data-log=where]"), () => this.show());
    this.search = element.querySelector("[data-log=search]");
    this.kept = [];
    this.last = { events: 0, journal: 0 };
    this.hidden = new Set(["traffic"]);
    onSearch(this.search, () => this.show());
    this.updatePlaces();
    this.show();
    this.close = whileVisible(POLL_MS, () => this.poll());
  }

  async poll() {
    const events = await this.request("events");
    const messages = await this.request("journal", { fields: true });
    const rows = [...events.map(eventRow), ...messages.map(messageRow)];
    if (!rows.length) return;
    this.kept = [...this.kept, ...rows].sort((a, b) => a.at - b.at).slice(-ROWS_KEPT);
    this.updatePlaces();
    if (!this.frozen) this.show();
  }

  // → the new rows of a query
  async request(query, parameters = {}) {
    const answer = await call(query, { since: this.last[query], ...parameters });
    if (answer.last < this.last[query]) { // lower numbers: another cell
      this.last[query] = 0;
      this.kept = [];
      return [];
    }
    this.last[query] = answer.last;
    return answer[query];
  }

  toggle(kind) {
    if (!this.hidden.delete(kind)) this.hidden.add(kind);
    this.show();
  }

  freeze() {
    this.frozen = !this.frozen;
    this.show();
  }

  filtered() {
    return this.kept.filter((row) => !this.hidden.has(row.kind) && this.passes(row));
  }

  // Whether the place and the search let a row through.
  passes({ place, searched }) {
    const [where, sought] = [this.where.value, this.search.value.toLowerCase()];
    return (!where || place === where) && (!sought || searched.includes(sought));
  }

  // → rows of each kind that the other filters let through: what a click on the kind would show
  countKinds() {
    const counts = new Map();
    for (const row of this.kept) if (this.passes(row)) counts.set(row.kind, (counts.get(row.kind) ?? 0) + 1);
    return counts;
  }

  updatePlaces() {
    const places = ["", ...new Set(this.kept.map(({ place }) => place))].sort();
    if (places.join("\n") === this.where.values.join("\n") && this.where.values.length) return;
    this.where.show(places.map((place) => [place, place || text("everywhere")]));
  }

  show() {
    const [rows, kinds] = [this.filtered(), this.countKinds()];
    for (const button of this.element.querySelectorAll("[data-kind]")) {
      button.classList.toggle("u-chosen", !this.hidden.has(button.dataset.kind));
      button.dataset.count = kinds.get(button.dataset.kind) ?? 0;
    }
    this.element.querySelector("[data-log=freeze]").classList.toggle("u-chosen", Boolean(this.frozen));
    this.element.querySelector("[data-log=count]").textContent = text("count", { shown: Math.min(rows.length, ROWS_SHOWN), all: this.kept.length });
    this.rows.replaceChildren(...rows.slice(-ROWS_SHOWN).reverse().map(rowElement));
  }

  download() {
    const lines = this.filtered().map((row) => `${fixed(row.at, 6)}\t${row.place}\t${row.kind}\t${row.text}`);
    save(lines.join("\n"), "log.txt");
  }

  report() {
    const shown = [...this.rows.children].map((row) => ({ kind: row.dataset.row, text: row.textContent }));
    return { kept: this.kept.length, shown, hidden: [...this.hidden], places: this.where.values };
  }
}

function eventRow({ time_s: at, kind, robot, text: message, what_to_do: advice }) {
  const todo = advice ? text(`advice ${advice}`).replace(/^advice /, "") : "";
  return { at, kind, place: robot, text: message, todo, searched: `${robot} ${message} ${todo}`.toLowerCase() };
}

// An unknown or not emulated request is a kind of row of its own, which is shown from the start.
function messageRow({ time_s: at, endpoint, peer, kind, text: bytes, names, fields, refused, unexpected: todo }) {
  const shown = `${ARROWS[kind]} ${bytes}`;
  const decoded = kind === "!" ? "" : [...names, ...leaves(fields)].join("  ");
  const searched = `${endpoint} ${bytes} ${decoded} ${todo}`.toLowerCase();
  return { at, kind: todo ? "unexpected" : "traffic", place: endpoint, text: shown, peer, todo, searched, decoded, refused };
}

// → name=value of every value in a decoded message, the first ones
function leaves(value, path = "", found = []) {
  if (found.length >= FIELDS_SHOWN) return found;
  if (value !== null && typeof value === "object") {
    for (const [key, each] of Object.entries(value)) leaves(each, path ? `${path}.${key}` : key, found);
  } else {
    found.push(`${path}=${value}`);
  }
  return found;
}

function rowElement({ at, kind, place, text: message, todo, peer, decoded, refused }) {
  const row = html("div", `u-row u-row-${kind}${refused ? " u-row-refused" : ""}`, "", { row: kind });
  const cells = { "u-at": `${fixed(at, 3)} s`, "u-kind": text(kind), "u-place": peer ? `${place} ${peer}` : place, "u-text": message };
  for (const [className, content] of Object.entries(cells)) add(row, "span", className, content);
  if (decoded) add(row, "span", "u-decoded", decoded);
  if (todo) add(row, "span", "u-todo", todo);
  return row;
}

const ready = expose("log", ["toggle", "freeze", "download"], { report: () => null });
whenReady("#log-page", (element) => ready(new Log(element)));
