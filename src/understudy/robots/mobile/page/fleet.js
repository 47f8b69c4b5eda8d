// The fleet page: one message of arrays ten times a second for all robots; the chosen robot and the
// events are asked for by themselves.

import { ask, call, expose, fixed, notice, onSearch, text, whenReady, whileVisible } from "../../frame/api.js";
import { add, html } from "../../frame/elements.js";
import { Details } from "./details.js";
import { Frames, STATE_FLAGS } from "./frames.js";
import { FleetMap } from "./map.js";
import { Table } from "./table.js";

const TABLE_MS = 500;
const DETAILS_MS = 400;
const EVENTS_MS = 1000;
const FLOOR_MS = 300; // not more often, while obstacles move
const EVENTS_KEPT = 400;
const EVENTS_SHOWN = 80;
const DEG = 180 / Math.PI;
const ENDED_BY_USER = /^(CANCELED|STOPPED)\b/; // reasons of failed tasks
const ORDERS = { drive: sendDrive, task: sendTask };

class Fleet {
  constructor(element) {
    this.element = element;
    this.operator = element.dataset.role === "operator";
    this.chosen = element.dataset.robot;
    this.mode = null;
    this.tasked = new Set(); // robots that have a task from this page
    this.events = [];
    this.lastEvent = 0;
    this.version = null;
    this.frames = new Frames((frame) => this.update(frame));
    this.map = new FleetMap(element.querySelector("#map"), this.frames, {
      chosen: (index) => this.choose(this.nameOf(index)),
      placed: (target) => this.place(target),
      followed: () => this.showButtons(),
    });
    this.table = new Table(this.part("table"), (index) => this.choose(this.nameOf(index)));
    this.details = new Details(this.part("details"), { operator: this.operator });
    this.details.clear();
    onSearch(this.part("search"), ({ target }) => this.table.search(target.value));
    const ends = [
      whileVisible(TABLE_MS, async () => this.updateTable()),
      whileVisible(DETAILS_MS, () => this.requestDetails()),
      whileVisible(EVENTS_MS, () => this.requestEvents()),
      whileVisible(FLOOR_MS, () => this.requestFloor()),
    ];
    this.close = () => {
      for (const end of ends) end();
      this.frames.close();
      this.map.close();
    };
    this.showButtons();
  }

  part = (name) => this.element.querySelector(`[data-fleet=${name}]`);
  nameOf = (index) => this.floor?.robots[index]?.name ?? "";
  indexOf = (name) => this.floor?.robots.findIndex((robot) => robot.name === name) ?? -1;

  // ── data ──

  update(frame) {
    this.map.update(frame);
    if (this.connected === frame.connected && this.waiting === frame.waiting) return;
    Object.assign(this, { connected: frame.connected, waiting: frame.waiting });
    const link = this.part("link");
    link.textContent = text(frame.connected ? "nats_up" : "nats_down") + (frame.waiting ? ` · ${text("waiting", { count: frame.waiting })}` : "");
    link.classList.toggle("u-off-line", !frame.connected);
  }

  async requestFloor() {
    const wanted = this.frames.latest?.floor;
    if (wanted === undefined || (wanted === this.version && this.floor.robots.length === this.frames.latest.count)) return;
    this.floor = await call("fleet");
    this.version = this.floor.version;
    this.map.setFloor(this.floor);
    this.map.update(this.frames.latest);
    this.map.chosen = this.indexOf(this.chosen);
    this.updateTable();
    this.table.choose(this.map.chosen, { scroll: true });
  }

  updateTable() {
    if (!this.floor || this.floor.robots.length !== this.frames.latest?.count) return;
    this.table.update(this.floor, this.frames.latest);
    this.showCount();
    this.showHold();
  }

  showCount() {
    this.part("count").textContent = text("count", { shown: this.table.shown.length, all: this.table.rows.length });
  }

  async requestDetails() {
    const name = this.chosen;
    if (!this.table.rows[this.indexOf(name)]) return;
    const robot = await call("fleet_robot", { robot: name });
    if (name !== this.chosen) return; // another one was chosen meanwhile
    this.map.details = robot;
    this.details.show(robot, this.table.rows[this.indexOf(name)]);
    this.showHold();
  }

  async requestEvents() {
    const { events, last } = await call("fleet_events", { since: this.lastEvent });
    if (last < this.lastEvent) this.events = []; // another cell
    this.lastEvent = last < this.lastEvent ? 0 : last;
    if (!events.length) return;
    this.events = [...this.events, ...events].slice(-EVENTS_KEPT);
    for (const event of events) this.noticeFailure(event);
    this.showEvents();
  }

  // Of tasks from here only: in a large fleet the backend's tasks would fill the screen.
  noticeFailure({ robot, type, reason }) {
    if (type !== "task.failed" || !this.tasked.has(robot) || ENDED_BY_USER.test(reason)) return;
    notice(text("task_failed", { robot, reason }));
  }

  showEvents() {
    const shown = this.events.filter(({ robot }) => !this.own || robot === this.chosen).slice(-EVENTS_SHOWN).reverse();
    this.part("events").replaceChildren(...shown.map(eventRow));
  }

  // ── the chosen robot ──

  // `tell`: whether the frame shall show this robot, too
  choose(name, tell = true) {
    if (!name || name === this.chosen) return;
    this.chosen = name;
    this.setMode(null);
    this.map.chosen = this.indexOf(name);
    this.map.details = null;
    this.details.clear();
    this.table.choose(this.map.chosen, { scroll: true });
    if (tell) emitEvent("fleet_choose", name);
    if (this.own) this.showEvents();
    this.showHold();
    this.requestDetails().catch((problem) => console.debug(problem));
  }

  // The chosen robot if orders can be sent to it: an arm may be chosen in the frame.
  get mobile() {
    return this.indexOf(this.chosen) >= 0 ? this.chosen : "";
  }

  get row() {
    return this.table.rows[this.map.chosen];
  }

  get held() {
    const { latest } = this.frames;
    const { chosen } = this.map;
    return Boolean(latest && this.floor && chosen >= 0 && latest.flags[chosen] & STATE_FLAGS.held);
  }

  showHold() {
    const shown = this.part("chosen");
    if (shown.textContent !== this.mobile) shown.textContent = this.mobile;
    const button = this.element.querySelector("[data-order=hold]");
    const word = text(this.held ? "release" : "hold");
    const label = button.querySelector(".block");
    if (label && label.textContent !== word) label.textContent = word;
    button.classList.toggle("u-chosen", this.held);
    button.dataset.key = this.held ? "Alt+h" : "h"; // the release starts a motion
  }

  // ── orders ──

  setMode(mode) {
    const allowed = mode === null || this.mayOrder();
    this.mode = allowed && mode !== this.mode ? mode : null;
    this.map.setPlacing(Boolean(this.mode));
    this.part("hint").textContent = this.mode ? text("place_target", { robot: this.chosen }) : "";
    if (this.mode) this.map.canvas.focus();
    this.showButtons();
  }

  // → whether there is a robot to order; a notice if none is chosen
  mayOrder() {
    if (this.operator && !this.mobile) notice(text("no_robot"), "warning");
    return this.operator && Boolean(this.mobile);
  }

  drive() {
    this.setMode("drive");
  }

  task() {
    this.setMode("task");
  }

  async place(target) {
    const send = ORDERS[this.mode];
    if (!send) return;
    if (send === sendTask) this.tasked.add(this.chosen);
    this.setMode(null);
    await send(this.chosen, target);
  }

  stop = () => this.order("fleet_command", { command: "STOP" });
  hold = () => this.order("fleet_traffic", { hold: !this.held });

  estop() {
    this.setMode(null);
    if (this.mayOrder()) window.understudyFrame.stopRobot(this.chosen);
  }

  // The server asks first if tasks of the robot begin with the reset.
  reset() {
    this.setMode(null);
    if (this.mayOrder()) emitEvent("fleet_reset", this.chosen);
  }

  order(command, parameters = {}) {
    this.setMode(null);
    return this.mayOrder() ? ask(command, { robot: this.chosen, ...parameters }) : null;
  }

  // ── buttons ──

  fit() {
    this.map.fit();
  }

  zoom(way) {
    this.map.view.step(way === "in");
  }

  follow() {
    this.map.follow(!this.map.following);
  }

  layer(name) {
    this.map.toggle(name);
    this.showButtons();
  }

  filter(name) {
    this.table.filter(name);
    this.showCount();
    this.showButtons();
  }

  onlyChosen() {
    this.own = !this.own;
    this.showEvents();
    this.showButtons();
  }

  showButtons() {
    const chosen = (selector, is) => this.element.querySelector(selector).classList.toggle("u-chosen", Boolean(is));
    for (const [name, shown] of Object.entries(this.map.layers)) chosen(`[data-layer=${name}]`, shown);
    for (const name of Object.keys(ORDERS)) chosen(`[data-order=${name}]`, this.mode === name);
    for (const { dataset } of this.element.querySelectorAll("[data-filter]")) chosen(`[data-filter=${dataset.filter}]`, this.table.filtered === dataset.filter);
    chosen("[data-mark=follow]", this.map.following);
    chosen("[data-mark=only-chosen]", this.own);
  }

  // For scripts and tests: `at` are pixels of the page for a place on the floor.
  report() {
    const { map, frames } = this;
    const { painter, view } = map;
    return {
      ready: Boolean(this.floor && frames.latest && painter.images > 0),
      chosen: this.chosen, mode: this.mode, images: painter.images, spent: painter.spent, visible: painter.visible, names: painter.names,
      received: frames.received, count: frames.latest?.count, scale: view.scale,
      center: [view.x, view.y], layers: { ...map.layers }, table: this.table.report(),
      connected: this.connected, stop: this.row?.word, held: this.held,
    };
  }

  wordOf(name) {
    return this.table.rows[this.indexOf(name)]?.word;
  }

  poseOf(name) {
    const n = this.indexOf(name);
    return n < 0 ? null : [this.map.between.x[n], this.map.between.y[n], this.map.between.yaw[n]];
  }

  pixelsOf(x, y) {
    const { left, top } = this.map.canvas.getBoundingClientRect();
    const [px, py] = this.map.view.at(x, y);
    return [left + px, top + py];
  }
}

function sendDrive(robot, { x, y, yaw }) {
  const parameters = yaw === null ? { x, y } : { x, y, yaw };
  return ask("fleet_command", { robot, command: "MOVE_TO_POSE", parameters });
}

function sendTask(robot, { x, y, yaw }) {
  const heading = yaw === null ? {} : { yaw_deg: yaw * DEG };
  return ask("fleet_task", { robot, x_m: x, y_m: y, ...heading });
}

function eventRow({ time_s: at, robot, type, text: details }) {
  const row = html("div", "u-fleet-event", "", { type });
  add(row, "span", "u-at", `${fixed(at, 2)} s`);
  add(row, "b", "", robot);
  add(row, "span", `u-event-type${/fault|pressed|failed|rejected|detected/.test(type) ? " u-is-alarm" : ""}`, type);
  add(row, "span", "u-event-text", details);
  return row;
}

const CALLS = ["choose", "drive", "task", "stop", "hold", "estop", "reset", "fit", "zoom", "follow", "layer", "filter", "onlyChosen"];
const ready = expose("fleet", CALLS, { report: () => null });
whenReady("#fleet-page", (element) => ready(new Fleet(element)));
