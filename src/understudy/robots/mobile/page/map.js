// The map: what a user does on it with mouse, fingers and keys.

import { STATE_FLAGS } from "./frames.js";
import { Between, COLORS, Painter, severity } from "./painter.js";
import { View } from "./view.js";

const CLICK_PX = 6; // a pointer that moved less has clicked
const HEADING_PX = 14; // dragged farther: the drag is a heading
const REACH_PX = 16; // a robot this near to a click is meant
const FITS = 3; // each is nearer to the scale at which all names are in view
const WHEEL = 0.0015;
const KEY_STEP = 0.25; // metres
const KEY_TURN = Math.PI / 12;

export class FleetMap {
  // `hooks`: chosen(index or -1), picked(indices, whether to add or take away), placed(target),
  // followed(): it follows, or does not any more
  constructor(canvas, frames, hooks) {
    Object.assign(this, { canvas, frames, hooks, floor: null, chosen: -1, selected: new Set(), details: null, target: null, band: null });
    this.view = new View(canvas);
    this.painter = new Painter(canvas, this.view);
    this.layers = { names: true, lidar: true, routes: true, markers: true };
    this.between = new Between();
    this.colors = [];
    this.held = [];
    this.placing = false;
    this.following = false;
    this.fitted = false;
    this.pointers = new Map();
    this.listen();
    this.frame = requestAnimationFrame(() => this.draw());
  }

  close() {
    cancelAnimationFrame(this.frame);
  }

  setFloor(floor) {
    this.floor = floor;
    this.painter.setFloor(floor);
  }

  // The colours change with the frames, not with the images.
  update({ status, stop, flags, count }) {
    if (!this.floor) return;
    const { statuses, stops } = this.floor;
    for (let n = 0; n < count; n++) {
      const why = stops[stop[n]];
      this.colors[n] = COLORS[severity(statuses[status[n]], why, flags[n])];
      this.held[n] = why.endsWith("HOLD") || Boolean(flags[n] & STATE_FLAGS.held);
    }
  }

  draw() {
    this.frame = requestAnimationFrame(() => this.draw());
    if (document.hidden || !this.floor || !this.frames.latest || this.floor.robots.length !== this.frames.latest.count) return;
    const resized = this.view.resize();
    if (!this.fitted || (resized && this.view.whole)) this.fit();
    const robots = this.between.set(this.frames.between(), this.colors, this.held);
    if (this.following && this.chosen >= 0) this.view.center(robots.x[this.chosen], robots.y[this.chosen]);
    this.painter.paint(robots, this);
  }

  // ── the view ──

  follow(following) {
    if (this.following === following) return;
    this.following = following;
    this.hooks.followed();
  }

  fit() {
    this.follow(false);
    this.fitted = true;
    const map = this.canvas.getBoundingClientRect();
    const at = (selector) => this.canvas.parentElement.querySelector(selector)?.getBoundingClientRect() ?? map;
    const above = Math.max(at(".u-fleet-orders").bottom - map.top, 0) + 12;
    const below = Math.max(map.bottom - at(".u-map-bar").top, 0) + 12;
    let scale = Infinity; // the letters of names have no size
    for (let n = 0; n < FITS; n++) {
      this.view.fit(this.extent(scale), above, below);
      ({ scale } = this.view);
    }
  }

  // → left, low, right, high of all that is shown, with the names of robots at this scale
  extent(scale) {
    const xs = [], ys = [];
    for (const [x1, y1, x2, y2] of this.floor.lines) xs.push(x1, x2), ys.push(y1, y2);
    for (const [x, y, radius] of this.floor.circles) xs.push(x - radius, x + radius), ys.push(y - radius, y + radius);
    for (const { x, y } of this.floor.markers) xs.push(x), ys.push(y);
    const { pose, count } = this.frames.latest;
    const reach = this.painter.reachAt(scale);
    for (let n = 0; n < count; n++) {
      const [x, y] = [pose[3 * n], pose[3 * n + 1]];
      const [beside, above] = reach(this.floor.robots[n]);
      xs.push(x - beside, x + beside), ys.push(y - above, y + above);
    }
    const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
    const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
    return [least(xs), least(ys), most(xs), most(ys)];
  }

  toggle(layer) {
    this.layers[layer] = !this.layers[layer];
    this.view.moved += 1;
  }

  // ── a place for the chosen robot ──

  // `placing`: whether the next click is a place
  setPlacing(placing) {
    this.placing = placing && this.chosen >= 0;
    this.canvas.classList.toggle("u-placing", this.placing);
    const { x, y } = this.between;
    this.target = this.placing ? this.targetAt(x[this.chosen], y[this.chosen]) : null;
  }

  targetAt(x, y, yaw = null) {
    return { x, y, yaw, robot: this.floor.robots[this.chosen] };
  }

  // ── mouse and fingers ──

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => {
      this.pointers.delete(event.pointerId);
      this.band = null;
    });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.follow(false);
      this.view.zoom(Math.exp(-event.deltaY * WHEEL), event.offsetX, event.offsetY);
    }, { passive: false });
  }

  down(event) {
    const { offsetX: x, offsetY: y, pointerId, button } = event;
    const [places, picks] = [this.placing && button === 0, !this.placing && (event.shiftKey || event.ctrlKey || event.metaKey)];
    this.canvas.setPointerCapture(pointerId);
    this.pointers.set(pointerId, { x, y, startX: x, startY: y, places, picks });
    if (this.pointers.size === 2) for (const pointer of this.pointers.values()) pointer.places = pointer.picks = false;
    if (this.pointers.get(pointerId).places) this.target = this.targetAt(...this.view.from(x, y));
  }

  move({ offsetX: x, offsetY: y, pointerId }) {
    const pointer = this.pointers.get(pointerId);
    if (!pointer) return;
    const before = this.spread();
    const [dx, dy] = [x - pointer.x, y - pointer.y];
    Object.assign(pointer, { x, y });
    if (this.pointers.size === 2) this.pinch(before, dx, dy);
    else if (pointer.places) this.turnTarget(pointer);
    else if (pointer.picks) this.band = dragged(pointer) > CLICK_PX ? pointer : null;
    else if (pointer.moved || dragged(pointer) > CLICK_PX) {
      pointer.moved = true;
      this.follow(false);
      this.view.pan(dx, dy);
    }
  }

  pinch(before, dx, dy) {
    const { distance, x, y } = this.spread();
    this.follow(false);
    this.view.pan(dx / 2, dy / 2);
    if (before.distance > 0) this.view.zoom(distance / before.distance, x, y);
  }

  spread() {
    const [a, b] = [...this.pointers.values()];
    if (!b) return { distance: 0, x: 0, y: 0 };
    return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  }

  turnTarget(pointer) {
    const { startX, startY, x, y } = pointer;
    if (this.target) this.target.yaw = dragged(pointer) > HEADING_PX ? Math.atan2(startY - y, x - startX) : null;
  }

  up({ pointerId }) {
    const pointer = this.pointers.get(pointerId);
    this.pointers.delete(pointerId);
    if (!pointer) return;
    const { band } = this;
    this.band = null;
    if (pointer.places) this.send();
    else if (band) this.hooks.picked(this.robotsIn(band), true);
    else if (pointer.picks) this.pick(this.robotAt(pointer.x, pointer.y));
    else if (!pointer.moved && dragged(pointer) <= CLICK_PX && !this.placing) this.hooks.chosen(this.robotAt(pointer.x, pointer.y));
  }

  send() {
    if (this.target) this.hooks.placed(this.target);
  }

  pick(index) {
    if (index >= 0) this.hooks.picked([index], !this.selected.has(index));
  }

  // → the robots in a rectangle that was drawn
  robotsIn({ x: x1, y: y1, startX: x2, startY: y2 }) {
    const { x, y, count } = this.between;
    const within = (value, a, b) => value >= Math.min(a, b) && value <= Math.max(a, b);
    return Array.from({ length: count }, (_, n) => n).filter((n) => {
      const [px, py] = this.view.at(x[n], y[n]);
      return within(px, x1, x2) && within(py, y1, y2);
    });
  }

  // → the number of the robot at these pixels; -1 if there is none
  robotAt(px, py) {
    const { x, y, count } = this.between;
    let [found, nearest] = [-1, Infinity];
    for (let n = 0; n < count; n++) {
      const [robotX, robotY] = this.view.at(x[n], y[n]);
      const away = Math.hypot(px - robotX, py - robotY);
      if (away < nearest) [found, nearest] = [n, away];
    }
    return nearest <= Math.max(REACH_PX, 0.55 * this.view.scale) ? found : -1;
  }

  // ── keys, while the map has the focus ──

  key(event) {
    const places = this.placing && this.target;
    if (!(places ? this.moveTarget(event) : this.view.key(event.key))) return;
    if (!places) this.follow(false);
    event.preventDefault();
    event.stopPropagation();
  }

  moveTarget({ key }) {
    const { target } = this;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key] ?? [0, 0];
    target.x += dx * KEY_STEP;
    target.y += dy * KEY_STEP;
    const turn = { "<": 1, ",": 1, ">": -1, ".": -1 }[key];
    if (turn) target.yaw = (target.yaw ?? 0) + turn * KEY_TURN;
    if (key === "Enter") this.send();
    return Boolean(dx || dy || turn || key === "Enter");
  }
}

const dragged = ({ x, y, startX, startY }) => Math.hypot(x - startX, y - startY);
