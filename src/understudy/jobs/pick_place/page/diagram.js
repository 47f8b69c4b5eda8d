// Diagram of the cycle, laid out from the table of the job: the running states are a loop of two
// rows, the other states are between them. Transitions that every running state has are drawn once,
// from a dashed line that stands for all of them.

import { text } from "../../frame/api.js";
import { drawing, svg } from "../../frame/elements.js";

const BOX = { wide: 92, high: 40 };
const PITCH = { x: 130, y: 78 };
const MARGIN = { left: 22, top: 32 };
const LANES = [0.3, 0.72]; // of the upper gap: of ways between rows, of ways within the middle row
const BUS = 0.5; // of the lower gap
const ARROW = 7;

export class Diagram {
  // `tables`: the answer to `job_tables`
  constructor(place, { running, cycle, transitions }) {
    this.running = running;
    this.places = this.placed(running, transitions);
    this.boxes = new Map();
    this.edges = this.merged(cycle, transitions);
    const wide = MARGIN.left + (Math.ceil(running.length / 2) - 1) * PITCH.x + BOX.wide + 8;
    const high = MARGIN.top + 2 * PITCH.y + BOX.high + 8;
    this.root = drawing(wide, high, { class: "u-cycle-drawing", role: "img" });
    this.drawBus(transitions);
    for (const edge of this.edges) this.drawEdge(edge);
    for (const state of this.places.keys()) this.drawBox(state);
    place.replaceChildren(this.root);
  }

  // → state → column and row: the first half of the loop above, the second half back below
  placed(running, transitions) {
    const half = Math.ceil(running.length / 2);
    const places = new Map(running.map((state, n) => [state, n < half ? [n, 0] : [running.length - 1 - n, 2]]));
    const others = [...new Set(transitions.map(([state]) => state))].filter((state) => !places.has(state));
    others.forEach((state, n) => places.set(state, [n === 0 ? 0 : n + 1, 1]));
    return places;
  }

  // → edges with all their events; those that every running state has are left out
  merged(cycle, transitions) {
    const own = transitions.filter(([state, , next]) => !this.running.includes(state) && this.places.has(next) && state !== next);
    const found = new Map();
    // a start with a part in the hand begins within the loop: its way would cross the last row
    for (const [state, event, next] of [...cycle, ...own].filter(([, event]) => event !== "go_on")) {
      const key = `${state} ${next}`;
      const edge = found.get(key) ?? { from: state, to: next, events: [] };
      if (!edge.events.includes(event)) edge.events.push(event);
      found.set(key, edge);
    }
    return [...found.values()];
  }

  at(state) {
    const [column, row] = this.places.get(state);
    const [x, y] = [MARGIN.left + column * PITCH.x, MARGIN.top + row * PITCH.y];
    return { column, row, left: x, right: x + BOX.wide, top: y, bottom: y + BOX.high, x: x + BOX.wide / 2, y: y + BOX.high / 2 };
  }

  isFree(column, row) {
    return ![...this.places.values()].some(([c, r]) => c === column && r === row);
  }

  drawBox(state) {
    const { left, top, x, y } = this.at(state);
    const words = state.split("_");
    const lines = words.length > 2 ? [words.slice(0, -1).join(" "), words.at(-1)] : words;
    const texts = lines.map((line, n) => svg("text", { x, y: y + 5 + (n - (lines.length - 1) / 2) * 15, text: line }));
    const box = svg("rect", { x: left, y: top, width: BOX.wide, height: BOX.high, rx: 8 });
    const group = svg("g", { class: `u-cycle-state u-cycle-${state}`, "data-state": state }, [box, ...texts]);
    group.append(svg("title", { text: state }));
    this.boxes.set(state, group);
    this.root.append(group);
  }

  drawEdge({ from, to, events }) {
    const { points, label } = this.way(from, to);
    const shown = events.filter((event) => event !== "done");
    this.line(points, "u-cycle-edge");
    if (shown.length) this.label(label, shown);
  }

  // → corners of the way between two states, and the place of its label
  way(from, to) {
    const [a, b] = [this.at(from), this.at(to)];
    if (from === to) return selfLoop(a);
    const between = a.column !== b.column && a.row === b.row ? range(a.column, b.column) : [];
    if (a.row === b.row && between.every((column) => this.isFree(column, a.row))) return straight(a, b);
    if (a.row === b.row) return this.overLane(a, b, 1);
    if (a.column === b.column && (Math.abs(a.row - b.row) === 1 || this.isFree(a.column, 1))) return upright(a, b);
    if (a.column === b.column) return bypass(a, b);
    if (Math.abs(a.row - b.row) === 1) return corner(a, b);
    return this.overLane(a, b, 0);
  }

  lane(number) {
    return MARGIN.top + BOX.high + (PITCH.y - BOX.high) * LANES[number];
  }

  // Through the gap below the first row.
  overLane(a, b, number) {
    const y = this.lane(number);
    const [start, end] = a.row === b.row ? [a.x, b.x + 22] : [a.x - 26, b.x + 26];
    const arrive = b.row === 0 ? b.bottom : b.top;
    return { points: [[start, a.top], [start, y], [end, y], [end, arrive]], label: [(start + end) / 2 + 40, y + 4] };
  }

  // The dashed line of all running states, and what leads from it.
  drawBus(transitions) {
    const first = this.running[0];
    const others = [...this.places.keys()].filter((state) => !this.running.includes(state));
    const y = MARGIN.top + PITCH.y + BOX.high + (PITCH.y - BOX.high) * BUS;
    const used = others.map((state) => ({ state, events: transitions.filter(([a, , b]) => a === first && b === state).map(([, event]) => event) }));
    const ends = used.map(({ state }) => this.at(state).x + 30);
    this.line([[Math.min(...ends), y], [Math.max(...ends) + 60, y]], "u-cycle-bus", false);
    for (const { state, events } of used) {
      const { x, bottom } = this.at(state);
      this.line([[x + 30, y], [x + 30, bottom]], "u-cycle-bus");
      const common = events.filter((event) => !this.edges.some(({ from, to, events: own }) => from === first && to === state && own.includes(event)));
      const back = transitions.filter(([a, , b]) => a === state && !this.places.has(b)).map(([, event]) => event);
      this.label([x + 36, bottom + 15], [...common, ...back], "start");
    }
  }

  line(points, kind, arrow = true) {
    this.root.append(svg("polyline", { points: points.map((point) => point.join()).join(" "), class: kind }));
    if (!arrow) return;
    const [[fx, fy], [x, y]] = points.slice(-2);
    const length = Math.hypot(x - fx, y - fy) || 1;
    const [ux, uy] = [(x - fx) / length, (y - fy) / length];
    const [bx, by] = [x - ARROW * ux, y - ARROW * uy];
    const side = ARROW * 0.55;
    const tip = [[x, y], [bx - uy * side, by + ux * side], [bx + uy * side, by - ux * side]];
    this.root.append(svg("polygon", { points: tip.map((point) => point.join()).join(" "), class: `${kind}-tip` }));
  }

  label([x, y], events, anchor = "middle") {
    const words = events.map((event) => text(`events.${event}`)).join(" · ");
    this.root.append(svg("text", { x, y, class: "u-cycle-event", "text-anchor": anchor, text: words }));
  }

  // Lights the active state; in a pause also, weaker, the state that it goes on from.
  light(state, pausedIn) {
    for (const [name, group] of this.boxes) {
      group.classList.toggle("u-lit", name === state);
      group.classList.toggle("u-half-lit", name === pausedIn);
    }
  }

  lit() {
    return [...this.boxes].filter(([, group]) => group.classList.contains("u-lit")).map(([name]) => name);
  }

  names() {
    return [...this.boxes.keys()];
  }
}

const range = (a, b) => Array.from({ length: Math.abs(a - b) - 1 }, (_, n) => Math.min(a, b) + 1 + n);

function straight(a, b) {
  const [start, end] = a.x < b.x ? [a.right, b.left] : [a.left, b.right];
  const y = a.row === 1 ? a.y + 10 : a.y;
  return { points: [[start, y], [end, y]], label: [(start + end) / 2, y - 6] };
}

function upright(a, b) {
  const [start, end] = a.y < b.y ? [a.bottom, b.top] : [a.top, b.bottom];
  return { points: [[a.x, start], [a.x, end]], label: [a.x + 24, (start + end) / 2 + 4] };
}

// Around what is between two states of a column, on the left.
function bypass(a, b) {
  const x = a.left - 14;
  return { points: [[a.left, a.y], [x, a.y], [x, b.y], [b.left, b.y]], label: [x + 36, a.top - 8] };
}

// Down or up, then to the side.
function corner(a, b) {
  const y = b.y - 8;
  const end = a.x < b.x ? b.left : b.right;
  return { points: [[a.x, a.row < b.row ? a.bottom : a.top], [a.x, y], [end, y]], label: [(a.x + end) / 2 + 14, y - 5] };
}

function selfLoop(a) {
  const y = a.top - 14;
  return { points: [[a.x - 24, a.top], [a.x - 24, y], [a.x + 24, y], [a.x + 24, a.top]], label: [a.x, y - 5] };
}
