// The fleet page: one message of arrays ten times a second for all robots; the chosen robot and the
// events are asked for by themselves.

import { ask, call, expose, fixed, notice, onSearch, text, whenReady, whileVisible } from "../../frame/api.js";
import { question } from "../../frame/dialog.js";
import { add, button, html } from "../../frame/elements.js";
import { Details } from "./details.js";
import { Frames, STATE_FLAGS } from "./frames.js";
import { FleetMap } from "./map.js";
import { Table } from "./table.js";

const TABLE_MS = 500;
const DETAILS_MS = 400;
const EVENTS_MS = 1000;
const TASKS_MS = 1000;
const FLOOR_MS = 300; // not more often, while obstacles move
const EVENTS_KEPT = 400;
const EVENTS_SHOWN = 80;
const DEG = 180 / Math.PI;
const ENDED_BY_USER = /^(CANCELED|STOPPED)\b/; // reasons of failed tasks
const ORDERS = { drive: sendDrive, task: sendTask };
const SPREAD = 1.6; // lengths of a robot between the places of several
const NAMED = 3; // robots in a notice about several

class Fleet {
  constructor(element) {
    this.element = element;
    this.operator = element.dataset.role === "operator";
    this.chosen = element.dataset.robot;
    this.mode = null;
    this.selected = new Set([this.chosen]); // names; the orders go to all of them
    this.listed = "events"; // what is below the map
    this.tasked = new Set(); // robots that have a task from this page
    this.events = [];
    this.lastEvent = 0;
    this.version = null;
    this.frames = new Frames((frame) => this.update(frame));
    this.map = new FleetMap(element.querySelector("#map"), this.frames, {
      chosen: (index) => this.choose(this.nameOf(index)),
      picked: (indices, add) => this.pick(indices, add),
      placed: (target) => this.place(target),
      followed: () => this.showButtons(),
    });
    this.table = new Table(this.part("table"), {
      chosen: (index) => this.choose(this.nameOf(index)),
      picked: (indices, add) => this.pick(indices, add),
    });
    this.details = new Details(this.part("details"), { operator: this.operator });
    this.details.clear();
    onSearch(this.part("search"), ({ target }) => this.table.search(target.value));
    const ends = [
      whileVisible(TABLE_MS, async () => this.updateTable()),
      whileVisible(DETAILS_MS, () => this.requestDetails()),
      whileVisible(EVENTS_MS, () => this.requestEvents()),
      whileVisible(FLOOR_MS, () => this.requestFloor()),
      whileVisible(TASKS_MS, () => this.requestTasks()),
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
    this.showChosen();
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

  async requestTasks() {
    if (this.listed !== "tasks") return;
    const { tasks, count } = await call("fleet_tasks");
    this.showTasks(tasks, count);
  }

  // A row stays as long as its task, so that no click is lost.
  showTasks(tasks, count) {
    const place = this.part("tasks");
    const shown = tasks.filter(({ robot }) => !this.own || this.selected.has(robot));
    const rows = new Map([...place.querySelectorAll("[data-task]")].map((row) => [`${row.dataset.robot} ${row.dataset.task}`, row]));
    place.replaceChildren(...shown.map((task) => taskRow(rows.get(`${task.robot} ${task.task}`) ?? newTaskRow(task, this.operator), task)));
    if (!shown.length) add(place, "p", "u-quiet", text("no_tasks"));
    if (count > tasks.length) add(place, "p", "u-quiet", text("more_tasks", { count: count - tasks.length }));
  }

  list(name) {
    this.listed = name;
    this.part("events").hidden = name !== "events";
    this.part("tasks").hidden = name !== "tasks";
    this.showButtons();
    this.requestTasks().catch((problem) => console.debug(problem));
  }

  showEvents() {
    const shown = this.events.filter(({ robot }) => !this.own || this.selected.has(robot)).slice(-EVENTS_SHOWN).reverse();
    this.part("events").replaceChildren(...shown.map(eventRow));
  }

  // ── the chosen robot ──

  // `tell`: whether the frame shall show this robot, too
  choose(name, tell = true, selected = new Set([name])) {
    if (!name || (!tell && name === this.chosen)) return;
    this.selected = selected;
    if (name === this.chosen) return this.showChosen();
    this.chosen = name;
    this.setMode(null);
    this.map.chosen = this.indexOf(name);
    this.map.details = null;
    this.details.clear();
    this.showChosen();
    if (tell) emitEvent("fleet_choose", name);
    this.requestDetails().catch((problem) => console.debug(problem));
  }

  // Adds robots to the chosen ones, or takes them away; one of them is the robot of the frame.
  pick(indices, add) {
    const selected = new Set(this.targets);
    for (const name of indices.map(this.nameOf)) add ? selected.add(name) : selected.delete(name);
    if (!selected.size) return;
    this.setMode(null);
    this.choose(selected.has(this.chosen) ? this.chosen : [...selected][0], true, selected);
  }

  showChosen() {
    const selected = new Set([...this.selected].map(this.indexOf).filter((index) => index >= 0));
    this.map.selected = selected;
    this.table.choose(this.map.chosen, { scroll: true, selected });
    if (this.own) this.showEvents();
    this.showHold();
    this.showButtons();
  }

  // → the robots to which orders go
  get targets() {
    return [...this.selected].filter((name) => this.indexOf(name) >= 0);
  }

  // The chosen robot if orders can be sent to it: an arm may be chosen in the frame.
  get mobile() {
    return this.indexOf(this.chosen) >= 0 ? this.chosen : "";
  }

  get row() {
    return this.table.rows[this.map.chosen];
  }

  // Whether all chosen robots are held.
  get held() {
    const { latest } = this.frames;
    const held = (name) => latest.flags[this.indexOf(name)] & STATE_FLAGS.held;
    return Boolean(latest && this.targets.length && this.targets.every(held));
  }

  // → whether an order is for one of the chosen robots, as far as is known
  applies(order) {
    const { targets } = this;
    return !targets.length || targets.some((name) => this.floor.robots[this.indexOf(name)].orders.includes(order));
  }

  showHold() {
    const shown = this.part("chosen");
    const { length } = this.targets;
    const words = length > 1 ? text("robots_chosen", { count: length }) : this.mobile;
    if (shown.textContent !== words) shown.textContent = words;
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
    this.part("hint").textContent = this.mode ? text("place_target", { robot: this.part("chosen").textContent }) : "";
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
    const { mode, targets } = this;
    const send = ORDERS[mode];
    if (!send) return;
    if (send === sendTask) for (const name of targets) this.tasked.add(name);
    this.setMode(null);
    if (targets.length > 1) await this.orderAll(mode, this.placesAround(target));
    else await send(this.chosen, target);
  }

  // → a place for each chosen robot: rows and columns around the target
  placesAround({ x, y, yaw }) {
    const { targets } = this;
    const columns = Math.ceil(Math.sqrt(targets.length));
    const rows = Math.ceil(targets.length / columns);
    const apart = SPREAD * Math.max(...targets.map((name) => this.floor.robots[this.indexOf(name)].length));
    const heading = yaw === null ? null : yaw * DEG;
    return targets.map((_, n) => [x + ((n % columns) - (columns - 1) / 2) * apart, y + (Math.floor(n / columns) - (rows - 1) / 2) * apart, heading]);
  }

  stop = () => this.order("stop", "fleet_command", { command: "STOP" });
  hold = () => this.order(this.held ? "release" : "hold", "fleet_traffic", { hold: !this.held });

  estop() {
    this.setMode(null);
    if (!this.mayOrder()) return;
    if (this.targets.length > 1) this.orderAll("estop");
    else window.understudyFrame.stopRobot(this.chosen);
  }

  // Tasks of a robot begin with its reset: the server asks first, here it is asked for several.
  async reset() {
    this.setMode(null);
    if (!this.mayOrder()) return;
    const { length } = this.targets;
    if (length === 1) return emitEvent("fleet_reset", this.chosen);
    const choices = [["no", text("reset_no")], ["reset", text("reset"), "u-warn"]];
    const title = text("reset_all", { count: length });
    if ((await question({ title, details: text("reset_all_hint"), choices, mark: "reset-all" })) === "reset") await this.orderAll("reset");
  }

  order(name, command, parameters = {}) {
    this.setMode(null);
    if (!this.mayOrder()) return null;
    return this.targets.length > 1 ? this.orderAll(name) : ask(command, { robot: this.chosen, ...parameters });
  }

  // One request for all chosen robots; a notice says how many took the order, and who did not.
  async orderAll(order, places = []) {
    const robots = this.targets;
    const answer = await ask("fleet_order", { robots, order, places });
    if (!answer) return;
    const words = [text("ordered", { order: text(order), done: answer.done, count: robots.length })];
    for (const [reason, names] of grouped(answer.refused)) {
      const more = names.length > NAMED ? ` +${names.length - NAMED}` : "";
      words.push(`${names.slice(0, NAMED).join(", ")}${more}: ${reason}`);
    }
    notice(words.join("  ·  "), answer.refused.length ? "warning" : "info");
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
    this.requestTasks().catch((problem) => console.debug(problem));
    this.showButtons();
  }

  showButtons() {
    const chosen = (selector, is) => this.element.querySelector(selector).classList.toggle("u-chosen", Boolean(is));
    for (const [name, shown] of Object.entries(this.map.layers)) chosen(`[data-layer=${name}]`, shown);
    for (const name of Object.keys(ORDERS)) chosen(`[data-order=${name}]`, this.mode === name);
    for (const { dataset } of this.element.querySelectorAll("[data-filter]")) chosen(`[data-filter=${dataset.filter}]`, this.table.filtered === dataset.filter);
    for (const { dataset } of this.element.querySelectorAll("[data-list]")) chosen(`[data-list=${dataset.list}]`, this.listed === dataset.list);
    for (const each of this.element.querySelectorAll("[data-order]")) each.hidden = Boolean(this.floor) && !this.applies(each.dataset.order);
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
      connected: this.connected, stop: this.row?.word, held: this.held, selected: this.targets,
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

// → the robots by the reason why they refused
function grouped(refused) {
  const found = new Map();
  for (const { robot, reason } of refused) found.set(reason, [...(found.get(reason) ?? []), robot]);
  return found;
}

function newTaskRow({ robot, task }, operator) {
  const row = html("div", "u-fleet-task", "", { task, robot });
  for (const name of ["robot", "goal", "state"]) add(row, "span", `u-task-${name}`);
  if (operator) row.append(button("u-part-button", text("cancel"), { does: "cancel-task" }, () => ask("fleet_cancel_task", { robot, task })));
  return row;
}

function taskRow(row, { robot, task, x, y, running, done, steps, priority }) {
  const goal = x === null ? task : `→ ${fixed(x, 2)}  ${fixed(y, 2)} m`;
  const state = running ? text("steps", { done, steps }) : text("waits");
  const words = [robot, priority ? `${goal}  · ${text("priority", { priority })}` : goal, state];
  words.forEach((each, n) => {
    if (row.children[n].textContent !== each) row.children[n].textContent = each;
  });
  row.children[2].className = `u-task-state u-is-${running ? "busy" : "none"}`;
  return row;
}

const CALLS = ["choose", "list", "drive", "task", "stop", "hold", "estop", "reset", "fit", "zoom", "follow", "layer", "filter", "onlyChosen"];
const ready = expose("fleet", CALLS, { report: () => null });
whenReady("#fleet-page", (element) => ready(new Fleet(element)));
