// The table of robots: filtered and sorted; only the rows in view are elements.

import { fixed, text } from "../../frame/api.js";
import { add, button } from "../../frame/elements.js";
import { STATE_FLAGS } from "./frames.js";
import { severity } from "./painter.js";

const ROW_PX = 40;
const MORE_ROWS = 3; // above and below the view
const MOVES = 0.005; // m/s
const COLUMNS = ["robot", "state", "speed", "battery"];
const PICKED = ["☐", "☑"];
const SEVERITIES = ["alarm", "off", "warn", "held", "busy", "calm"];

const FILTERS = {
  all: () => true,
  moving: ({ speed }) => Math.abs(speed) > MOVES,
  held: ({ severity: how, flags }) => how === "held" || Boolean(flags & STATE_FLAGS.held),
  faulty: ({ severity: how, flags }) => how === "alarm" || how === "off" || Boolean(flags & STATE_FLAGS.fault),
};
const VALUES = {
  robot: ({ name }) => name,
  state: ({ severity: how, word }) => `${SEVERITIES.indexOf(how)} ${word}`,
  speed: ({ speed }) => speed,
  battery: ({ battery }) => battery,
};
const natural = new Intl.Collator(undefined, { numeric: true });

// → the key of the state's text; a fault of a drive is more than what else stops the robot
const stateOf = (status, why, how) => (status === "ERROR" ? status : why || (how === "busy" ? "BUSY" : status));

// → what the state does not tell, but needs another button
function hidden(status, why, flags) {
  const stopped = status === "ERROR" && flags & STATE_FLAGS.estop ? [text("ESTOP")] : [];
  const held = flags & STATE_FLAGS.held && (status === "ERROR" || why !== "TRAFFIC_HOLD") ? [text("held")] : [];
  return [...stopped, ...held];
}

export class Table {
  // calls chosen(index) when the user chooses a row, picked(indices, whether) when rows are added to
  // the chosen ones, or taken away
  constructor(element, { chosen, picked }) {
    Object.assign(this, { element, chosen, picked, rows: [], shown: [], current: -1, sought: "", filtered: "all" });
    this.selected = new Set();
    this.sorted = { column: "robot", direction: 1 };
    this.head = add(element, "div", "u-grid-head");
    this.head.setAttribute("role", "row");
    this.body = add(element, "div", "u-grid-body");
    this.space = add(this.body, "div", "u-grid-space");
    this.elements = [];
    this.all = this.head.appendChild(button("u-grid-pick", PICKED[0], { does: "pick-all" }, () => this.pickAll()));
    this.all.setAttribute("aria-label", text("pick_all"));
    this.heads = COLUMNS.map((column) => this.header(column));
    this.body.addEventListener("scroll", () => this.show());
    element.addEventListener("keydown", (event) => this.key(event));
  }

  header(column) {
    return this.head.appendChild(button(`u-grid-${column}`, text(column), { sort: column }, () => this.sort(column)));
  }

  sort(column) {
    const again = this.sorted.column === column;
    this.sorted = { column, direction: again ? -this.sorted.direction : 1 };
    this.arrange();
  }

  filter(name) {
    this.filtered = name;
    this.arrange();
  }

  search(sought) {
    this.sought = sought.toLowerCase();
    this.arrange();
  }

  // The robots of a frame.
  update(floor, { status, stop, flags, speed, battery }) {
    this.rows = floor.robots.map(({ name, code }, index) => {
      const why = floor.stops[stop[index]];
      const how = severity(floor.statuses[status[index]], why, flags[index]);
      const word = text(stateOf(floor.statuses[status[index]], why, how));
      const shown = [word, ...hidden(floor.statuses[status[index]], why, flags[index])].join(" · ");
      return { index, name, code, word, shown, severity: how, speed: speed[index], battery: battery[index], flags: flags[index] };
    });
    this.arrange();
  }

  arrange() {
    const { column, direction } = this.sorted;
    const [value, passes] = [VALUES[column], FILTERS[this.filtered]];
    const found = this.rows.filter((row) => passes(row) && (!this.sought || `${row.name} ${row.code} ${row.shown}`.toLowerCase().includes(this.sought)));
    const compared = (a, b) => (typeof a === "number" ? a - b : natural.compare(a, b));
    this.shown = found.sort((a, b) => direction * compared(value(a), value(b)) || a.index - b.index);
    for (const head of this.heads) head.dataset.direction = head.dataset.sort === column ? (direction > 0 ? "▲" : "▼") : "";
    this.show();
  }

  get allPicked() {
    return this.shown.length > 0 && this.shown.every(({ index }) => this.selected.has(index));
  }

  pickAll() {
    this.picked(this.shown.map(({ index }) => index), !this.allPicked);
  }

  // A row was clicked: with Ctrl or in its box it is added or taken away, with Shift all rows from
  // the current one on are added.
  click(index, event) {
    const place = (wanted) => this.shown.findIndex((row) => row.index === wanted);
    if (event.shiftKey && place(this.current) >= 0) {
      const [first, last] = [place(this.current), place(index)].sort((a, b) => a - b);
      this.picked(this.shown.slice(first, last + 1).map((row) => row.index), true);
    } else if (event.ctrlKey || event.metaKey || event.target.matches(".u-grid-pick")) this.picked([index], !this.selected.has(index));
    else this.chosen(index);
  }

  choose(index, { scroll = false, selected = new Set([index]) } = {}) {
    this.current = index;
    this.selected = selected;
    if (scroll) this.scrollTo(this.shown.findIndex((row) => row.index === index));
    this.show();
  }

  scrollTo(place) {
    if (place < 0) return;
    const [top, height] = [place * ROW_PX, this.body.clientHeight];
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + ROW_PX > this.body.scrollTop + height) this.body.scrollTop = top + ROW_PX - height;
  }

  // The rows in view; elements are used again.
  show() {
    this.space.style.height = `${this.shown.length * ROW_PX}px`;
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW_PX) - MORE_ROWS);
    const count = Math.ceil(this.body.clientHeight / ROW_PX) + 2 * MORE_ROWS;
    const visible = this.shown.slice(first, first + count);
    while (this.elements.length < visible.length) this.elements.push(this.rowElement());
    this.elements.forEach((element, n) => this.fill(element, visible[n], first + n));
    this.all.textContent = PICKED[Number(this.allPicked)];
  }

  rowElement() {
    const element = add(this.space, "div", "u-grid-row");
    element.setAttribute("role", "row");
    add(element, "span", "u-grid-pick");
    for (const column of COLUMNS) add(element, "span", `u-grid-${column}`);
    element.addEventListener("click", (event) => this.click(Number(element.dataset.index), event));
    return element;
  }

  fill(element, row, place) {
    element.hidden = !row;
    if (!row) return;
    element.style.transform = `translateY(${place * ROW_PX}px)`;
    element.dataset.index = row.index;
    element.dataset.robot = row.name;
    const selected = this.selected.has(row.index);
    element.classList.toggle("u-grid-chosen", row.index === this.current);
    element.classList.toggle("u-grid-selected", selected);
    element.setAttribute("aria-selected", String(selected));
    const cells = [PICKED[Number(selected)], row.name, row.shown, fixed(row.speed, 2), String(row.battery)];
    cells.forEach((value, n) => {
      const cell = element.children[n];
      if (cell.textContent !== value) cell.textContent = cell.title = value; // a narrow column cuts it
    });
    element.children[2].className = `u-grid-state u-is-${row.severity}`;
  }

  key(event) {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || !this.shown.length) return;
    const now = this.shown.findIndex((row) => row.index === this.current);
    const next = Math.min(this.shown.length - 1, Math.max(0, now + by));
    event.preventDefault();
    this.scrollTo(next);
    this.chosen(this.shown[next].index);
  }

  report() {
    const shown = this.elements.filter((element) => !element.hidden);
    return { rows: this.shown.length, elements: shown.length, first: this.shown[0]?.name, names: shown.map(({ dataset }) => dataset.robot) };
  }
}
