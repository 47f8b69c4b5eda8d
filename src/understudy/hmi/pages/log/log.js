// The record: events of the cell and bytes on its wires in one list, the newest on top; the filters
// are this browser's own.

import { call, onceThere, save, whileSeen, words } from "./api.js";
import { offer } from "./offer.js";

const LOOK_MS = 300;
const MOST_KEPT = 4000;
const MOST_SHOWN = 300;
const ARROWS = { ">": "→", "<": "←", "!": "•" };

class Log {
  constructor(place) {
    this.place = place;
    this.rows = place.querySelector("#rows");
    this.where = place.querySelector("[data-log=where]");
    this.search = place.querySelector("[data-log=search]");
    this.kept = [];
    this.heard = { events: 0, traffic: 0 };
    this.hidden = new Set(["traffic"]);
    this.where.addEventListener("change", () => this.show());
    this.search.addEventListener("input", () => this.show());
    this.offer();
    this.show();
    whileSeen(LOOK_MS, () => this.hear());
  }

  // ── what comes ──

  async hear() {
    const events = await this.fresh("events");
    const traffic = await this.fresh("traffic");
    const rows = [...events.map(ofEvent), ...traffic.map(ofTraffic)];
    if (!rows.length) return;
    this.kept = [...this.kept, ...rows].sort((a, b) => a.at - b.at).slice(-MOST_KEPT);
    this.offer();
    if (!this.frozen) this.show();
  }

  async fresh(query) {
    const told = await call(query, { since: this.heard[query] });
    if (told.last < this.heard[query]) { // the numbers begin anew: another cell
      this.heard[query] = 0;
      this.kept = [];
      return [];
    }
    this.heard[query] = told.last;
    return told[query];
  }

  // ── what is let through ──

  toggle(kind) {
    if (!this.hidden.delete(kind)) this.hidden.add(kind);
    this.show();
  }

  freeze() {
    this.frozen = !this.frozen;
    this.show();
  }

  through() {
    const [place, sought] = [this.where.value, this.search.value.toLowerCase()];
    return this.kept.filter((row) =>
      !this.hidden.has(row.kind) && (!place || row.place === place) && (!sought || row.sought.includes(sought)));
  }

  offer() {
    const places = ["", ...new Set(this.kept.map(({ place }) => place))].sort();
    if (places.join() === [...this.where.options].map(({ value }) => value).join() && this.where.options.length) return;
    const chosen = this.where.value;
    this.where.replaceChildren(...places.map((place) => new Option(place || words("everywhere"), place)));
    this.where.value = places.includes(chosen) ? chosen : "";
  }

  // ── what is seen ──

  show() {
    const rows = this.through();
    for (const button of this.place.querySelectorAll("[data-kind]")) {
      button.classList.toggle("u-chosen", !this.hidden.has(button.dataset.kind));
    }
    this.place.querySelector("[data-log=freeze]").classList.toggle("u-chosen", Boolean(this.frozen));
    this.place.querySelector("[data-log=count]").textContent = words("count").replace("{shown}", rows.length).replace("{all}", this.kept.length);
    this.rows.replaceChildren(...rows.slice(-MOST_SHOWN).reverse().map(lineOf));
  }

  download() {
    const lines = this.through().map(({ at, place, kind, text }) => `${at.toFixed(6)}\t${place}\t${kind}\t${text}`);
    save(lines.join("\n"), "log.txt");
  }

  report() {
    const shown = [...this.rows.children].map((row) => ({ kind: row.dataset.row, text: row.textContent }));
    return { kept: this.kept.length, shown, hidden: [...this.hidden], places: [...this.where.options].map(({ value }) => value) };
  }
}

function ofEvent({ time_s: at, kind, robot, text, what_to_do: advice }) {
  const todo = advice ? words(`advice ${advice}`).replace(/^advice /, "") : "";
  return { at, kind, place: robot, text, todo, sought: `${robot} ${text} ${todo}`.toLowerCase() };
}

function ofTraffic({ time_s: at, endpoint, peer, kind, text }) {
  const said = `${ARROWS[kind]} ${text}`;
  return { at, kind: "traffic", place: endpoint, text: said, peer, todo: "", sought: `${endpoint} ${text}`.toLowerCase() };
}

function lineOf({ at, kind, place, text, todo, peer }) {
  const row = document.createElement("div");
  row.className = `u-row u-row-${kind}`;
  row.dataset.row = kind;
  const cells = [["u-at", `${at.toFixed(3)} s`], ["u-kind", words(kind)], ["u-place", peer ? `${place} ${peer}` : place], ["u-text", text]];
  if (todo) cells.push(["u-todo", todo]);
  for (const [className, textContent] of cells) {
    row.appendChild(Object.assign(document.createElement("span"), { className, textContent }));
  }
  return row;
}

const take = offer("log", ["toggle", "freeze", "download"], { report: () => null });
onceThere("#log-page", (place) => take(new Log(place)));
