// Draws the floor and the robots. What does not change is drawn once for each view; the robots are
// drawn by colour, one path for all of them, and only those in view.

import { largeness } from "../../frame/api.js";
import { wrapped } from "../../frame/feed.js";
import { STATE_FLAGS } from "./frames.js";

export const COLORS = { calm: "#5fe39a", busy: "#6cc7ff", held: "#ffd23f", warn: "#ff9a3d", alarm: "#ff5a4d", off: "#8796a3" };
const GROUND = "#0b0e11";
const GRID = "#1b2229";
const GRID_STRONG = "#2a333c";
const SOLID = "#3b4752";
const SOLID_EDGE = "#8796a3";
const MARKER = "#c9a7ff";
const NAMES_FROM = 16; // pixels of a metre
const MARKER_NAMES_FROM = 22;
const MOST_NAMES = 200;
const NAME_PX = 13; // on a usual screen
const LETTER = 0.6; // width of a letter, of the height of the text
const NAME_AWAY = 0.62; // metres from the robot's pose
const GRID_PX = 14;
const COVER_PX = 3; // a name this near to the middle of a robot hides it

// Whole steps of the grid, in metres, that are at least some pixels apart.
const gridStep = (scale) => [0.5, 1, 2, 5, 10, 20, 50, 100, 200].find((step) => step * scale >= GRID_PX) ?? 500;

// → the severity of a robot, a key of COLORS
export function severity(status, stop, flags) {
  if (status === "ERROR" || ["ESTOP", "INTERNAL_FAULT"].includes(stop) || flags & STATE_FLAGS.estop) return "alarm";
  if (status === "OFFLINE") return "off";
  if (stop) return "held";
  if (flags & STATE_FLAGS.fault || status === "WARNING") return "warn";
  return flags & STATE_FLAGS.busy ? "busy" : "calm";
}

export class Painter {
  constructor(canvas, view) {
    Object.assign(this, { canvas, view, floor: null, rings: [], drawn: -1 });
    this.context = canvas.getContext("2d", { alpha: false });
    this.still = document.createElement("canvas");
    this.images = 0;
    this.spent = 0; // milliseconds in `paint`
    this.large = 1;
    this.names = []; // of robots, in the last image
    this.markerNames = [];
    this.visible = 0;
  }

  setFloor(floor) {
    this.floor = floor;
    this.rings = joined(floor.lines);
    this.drawn = -1;
  }

  // `robots`: see `frame` of map.js
  paint(robots, { layers, chosen, selected, details, target, band }) {
    const { context, view } = this;
    const begun = performance.now();
    if (this.drawn !== view.moved) this.paintFloor(layers);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.still, 0, 0);
    context.setTransform(view.density, 0, 0, view.density, 0, 0);
    if (layers.routes) this.paintGoals(robots);
    if (details) this.paintDetails(details, layers);
    this.paintRobots(robots, chosen, details);
    if (selected.size > 1) this.paintSelected(robots, selected);
    if (band) this.paintBand(band);
    this.names = [];
    this.markerNames = [];
    if (layers.names && view.scale >= NAMES_FROM) this.paintNames(robots, chosen);
    if (layers.markers && view.scale >= MARKER_NAMES_FROM) this.paintMarkerNames(robots);
    if (target) this.paintTarget(target);
    this.images += 1;
    this.spent += performance.now() - begun;
  }

  // ── the floor ──

  paintFloor(layers) {
    const { view, floor } = this;
    this.large = largeness();
    Object.assign(this.still, { width: this.canvas.width, height: this.canvas.height });
    const context = this.still.getContext("2d", { alpha: false });
    context.setTransform(view.density, 0, 0, view.density, 0, 0);
    context.fillStyle = GROUND;
    context.fillRect(0, 0, view.wide, view.high);
    this.paintGrid(context);
    if (floor) {
      this.paintSolids(context);
      if (layers.markers) this.paintMarkers(context);
    }
    this.drawn = view.moved;
  }

  paintGrid(context) {
    const step = gridStep(this.view.scale);
    const [left, low, right, high] = this.view.bounds;
    for (const [color, every] of [[GRID, step], [GRID_STRONG, 5 * step]]) {
      context.beginPath();
      for (let x = Math.ceil(left / every) * every; x <= right; x += every) line(context, this.view.at(x, high), this.view.at(x, low));
      for (let y = Math.ceil(low / every) * every; y <= high; y += every) line(context, this.view.at(left, y), this.view.at(right, y));
      context.strokeStyle = color;
      context.lineWidth = 1;
      context.stroke();
    }
  }

  paintSolids(context) {
    const { at, scale } = this.view;
    context.lineWidth = 2;
    context.strokeStyle = SOLID_EDGE;
    context.fillStyle = SOLID;
    for (const { points, closed } of this.rings) {
      context.beginPath();
      points.forEach(([x, y], n) => context[n ? "lineTo" : "moveTo"](...at(x, y)));
      if (closed) {
        context.closePath();
        context.fill();
      }
      context.stroke();
    }
    for (const [x, y, radius] of this.floor.circles) {
      context.beginPath();
      context.arc(...at(x, y), Math.max(radius * scale, 1), 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
  }

  paintMarkers(context) {
    const { at, scale } = this.view;
    const half = Math.min(8, Math.max(2, 0.12 * scale));
    context.fillStyle = MARKER;
    for (const { x, y } of this.floor.markers) {
      const [mx, my] = at(x, y);
      context.fillRect(mx - half, my - half, 2 * half, 2 * half);
    }
  }

  // Below the marker, or above it; none where a robot or another name is.
  paintMarkerNames({ x, y, count }) {
    const { context, view, floor } = this;
    const [high, half] = [this.namesIn(context), Math.min(8, Math.max(2, 0.12 * view.scale))];
    context.fillStyle = MARKER;
    const near = [...Array(count).keys()].filter((n) => this.inView(x[n], y[n]));
    const bodies = near.map((n) => ({ at: view.at(x[n], y[n]), radius: (floor.robots[n].length * view.scale) / 2 }));
    for (const { code, x: atX, y: atY } of floor.markers) {
      if (!this.inView(atX, atY)) continue;
      const [px, my] = view.at(atX, atY);
      const wide = nameWidth(code, high) / 2;
      const apart = ({ at: [bx, by], radius }, at) => Math.abs(by - at + high / 2) >= radius + high / 2 || Math.abs(bx - px) >= radius + wide;
      const free = (at) => this.isFree(px, at, wide, high) && bodies.every((body) => apart(body, at));
      const at = [my + half + high + 2, my - half - 5].find(free);
      if (at === undefined) continue;
      this.markerNames.push({ name: code, px, at, half: wide });
      context.fillText(code, px, at);
    }
  }

  // Whether no name is written there.
  isFree(px, at, half, high) {
    return [...this.names, ...this.markerNames].every((other) => Math.abs(other.at - at) >= high || Math.abs(other.px - px) >= half + other.half);
  }

  // ── robots ──

  paintRobots({ x, y, yaw, colors, held, count }, chosen, details) {
    const { context, view } = this;
    const paths = new Map();
    const holds = new Path2D();
    let visible = 0;
    for (let n = 0; n < count; n++) {
      if (!this.inView(x[n], y[n])) continue;
      visible += 1;
      let path = paths.get(colors[n]);
      if (!path) paths.set(colors[n], (path = new Path2D()));
      this.outline(path, this.floor.robots[n], x[n], y[n], yaw[n]);
      if (held[n]) {
        const [px, py] = view.at(x[n], y[n]);
        const radius = Math.max(0.75 * view.scale, 7);
        holds.moveTo(px + radius, py);
        holds.arc(px, py, radius, 0, 2 * Math.PI);
      }
    }
    context.lineWidth = 1;
    context.strokeStyle = GROUND;
    for (const [color, path] of paths) {
      context.fillStyle = color;
      context.fill(path);
      if (view.scale > 12) context.stroke(path);
    }
    context.lineWidth = 2;
    context.setLineDash([5, 4]);
    context.strokeStyle = COLORS.held;
    context.stroke(holds);
    context.setLineDash([]);
    this.visible = visible;
    if (chosen >= 0 && chosen < count) this.paintChosen(chosen, x[chosen], y[chosen], yaw[chosen], details);
  }

  inView(x, y) {
    const [px, py] = this.view.at(x, y);
    const edge = 2 * this.view.scale + 10;
    return px > -edge && py > -edge && px < this.view.wide + edge && py < this.view.high + edge;
  }

  // The footprint, cut off in front so that the heading can be seen; never smaller than 5 pixels.
  outline(path, { length, width, ahead }, x, y, yaw) {
    const { view } = this;
    const least = 2.5 / view.scale;
    const [half, side] = [Math.max(length / 2, 1.4 * least), Math.max(width / 2, least)];
    const nose = Math.min(half, side) * 0.7;
    const [c, s] = [Math.cos(yaw), Math.sin(yaw)];
    const corners = [[half, side - nose], [half, nose - side], [half - nose, -side], [-half, -side], [-half, side], [half - nose, side]];
    for (let n = 0; n < corners.length; n++) {
      const [a, b] = [corners[n][0] + ahead, corners[n][1]];
      const [px, py] = view.at(x + a * c - b * s, y + a * s + b * c);
      if (n) path.lineTo(px, py);
      else path.moveTo(px, py);
    }
    path.closePath();
  }

  paintChosen(chosen, x, y, yaw, details) {
    const { context, view } = this;
    const path = new Path2D();
    this.outline(path, this.floor.robots[chosen], x, y, yaw);
    context.lineWidth = 3;
    context.strokeStyle = "#ffffff";
    context.stroke(path);
    context.lineWidth = 2;
    context.beginPath();
    context.arc(...view.at(x, y), Math.max(1.05 * view.scale, 14), 0, 2 * Math.PI);
    context.stroke();
    if (!details?.true_pose) return;
    const [offX, offY, turned] = details.pose.map((value, n) => value - details.true_pose[n]);
    if (Math.hypot(offX, offY) * view.scale < 6) return;
    const believed = new Path2D();
    this.outline(believed, this.floor.robots[chosen], x + offX, y + offY, yaw + turned);
    context.setLineDash([3, 3]);
    context.stroke(believed);
    context.setLineDash([]);
  }

  paintSelected({ x, y, count }, selected) {
    const { context, view } = this;
    const rings = new Path2D();
    const radius = Math.max(0.68 * view.scale, 8);
    for (const n of selected) {
      if (n >= count || !this.inView(x[n], y[n])) continue;
      const [px, py] = view.at(x[n], y[n]);
      rings.moveTo(px + radius, py);
      rings.arc(px, py, radius, 0, 2 * Math.PI);
    }
    context.lineWidth = 2;
    context.strokeStyle = "#ffffff";
    context.stroke(rings);
  }

  // The rectangle in which robots are chosen.
  paintBand({ x, y, startX, startY }) {
    const { context } = this;
    context.fillStyle = "#ffffff22";
    context.strokeStyle = "#ffffff";
    context.lineWidth = 1.5;
    context.fillRect(startX, startY, x - startX, y - startY);
    context.strokeRect(startX, startY, x - startX, y - startY);
  }

  paintGoals({ x, y, goal, count }) {
    const { context, view } = this;
    context.beginPath();
    for (let n = 0; n < count; n++) {
      const [goalX, goalY] = [goal[3 * n], goal[3 * n + 1]];
      if (Number.isNaN(goalX) || !(this.inView(x[n], y[n]) || this.inView(goalX, goalY))) continue;
      line(context, view.at(x[n], y[n]), view.at(goalX, goalY));
      const [px, py] = view.at(goalX, goalY);
      context.moveTo(px + 4, py);
      context.arc(px, py, 4, 0, 2 * Math.PI);
    }
    context.lineWidth = 1.5;
    context.strokeStyle = COLORS.busy;
    context.globalAlpha = 0.7;
    context.stroke();
    context.globalAlpha = 1;
  }

  // The route and the lidar of the chosen robot.
  paintDetails({ route, lidar, pose, true_pose: truePose }, layers) {
    const { context, view } = this;
    if (layers.routes && route.length) {
      context.beginPath();
      [truePose ?? pose, ...route].forEach(([x, y], n) => context[n ? "lineTo" : "moveTo"](...view.at(x, y)));
      context.lineWidth = 3;
      context.strokeStyle = COLORS.busy;
      context.stroke();
      const [x, y] = view.at(...route.at(-1));
      context.beginPath();
      context.arc(x, y, 7, 0, 2 * Math.PI);
      context.stroke();
    }
    if (!layers.lidar) return;
    context.fillStyle = "#ff77c8";
    for (const [x, y] of lidar) {
      const [px, py] = view.at(x, y);
      context.fillRect(px - 2, py - 2, 4, 4);
    }
  }

  // → function of a robot: metres that it and its name take beside and above its pose, at a scale
  reachAt(scale) {
    const high = NAME_PX * largeness();
    const named = scale >= NAMES_FROM;
    return ({ name, length, width, ahead }) => {
      const body = Math.hypot(length, width) / 2 + Math.abs(ahead);
      if (!named) return [body, body];
      return [Math.max(body, nameWidth(name, high) / 2 / scale), Math.max(body, NAME_AWAY + (high + 5) / scale)];
    };
  }

  // Sets the font of names; → its height in pixels
  namesIn(context) {
    const px = NAME_PX * this.large;
    context.font = `600 ${px}px Roboto, sans-serif`;
    context.textAlign = "center";
    return px;
  }

  // Below the robot, or above it where another name or robot is; none if there is no room. The
  // chosen robot is the first to be written, and always.
  paintNames({ x, y, count }, chosen) {
    const { context, view, floor } = this;
    const high = this.namesIn(context);
    context.fillStyle = "#ffffff";
    context.strokeStyle = GROUND;
    context.lineWidth = 3;
    const places = [];
    for (let n = 0; n < count; n++) if (this.inView(x[n], y[n])) places.push(view.at(x[n], y[n]));
    const covers = (px, at, half) => places.some(([rx, ry]) => Math.abs(rx - px) < half && Math.abs(ry - at + high / 2) < high / 2 + COVER_PX);
    for (let n = -1; n < count && this.names.length < MOST_NAMES; n++) {
      const index = n < 0 ? chosen : n;
      if (index < 0 || (n === chosen && n >= 0) || !this.inView(x[index], y[index])) continue;
      const [px, py] = view.at(x[index], y[index]);
      const { name } = floor.robots[index];
      const [half, away] = [nameWidth(name, high) / 2, NAME_AWAY * view.scale];
      const at = [py + away + high + 1, py - away - 5].find((each) => this.isFree(px, each, half, high) && (n < 0 || !covers(px, each, half)));
      if (at === undefined) continue;
      this.names.push({ name, px, at, half });
      context.strokeText(name, px, at);
      context.fillText(name, px, at);
    }
  }

  // The place and heading that the user is about to send.
  paintTarget({ x, y, yaw, robot }) {
    const { context, view } = this;
    const path = new Path2D();
    this.outline(path, robot, x, y, yaw ?? 0);
    context.strokeStyle = "#ffffff";
    context.lineWidth = 2;
    context.setLineDash([6, 4]);
    if (yaw !== null) context.stroke(path);
    context.setLineDash([]);
    const [px, py] = view.at(x, y);
    context.beginPath();
    line(context, [px - 12, py], [px + 12, py]);
    line(context, [px, py - 12], [px, py + 12]);
    if (yaw !== null) line(context, [px, py], [px + 46 * Math.cos(yaw), py - 46 * Math.sin(yaw)]);
    context.stroke();
  }
}

const nameWidth = (name, high) => name.length * high * LETTER;

function line(context, [x1, y1], [x2, y2]) {
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
}

// Lines that follow each other → rings; one that ends where it began is an area.
function joined(lines) {
  const rings = [];
  let ring = null;
  for (const [x1, y1, x2, y2] of lines) {
    const last = ring?.points.at(-1);
    if (!last || ring.closed || last[0] !== x1 || last[1] !== y1) rings.push((ring = { points: [[x1, y1]], closed: false }));
    const [firstX, firstY] = ring.points[0];
    if (firstX === x2 && firstY === y2) ring.closed = true;
    else ring.points.push([x2, y2]);
  }
  return rings;
}

// Poses between two frames, in arrays that are used again.
export class Between {
  constructor() {
    this.count = 0;
  }

  set([a, b, share], colors, held) {
    if (this.count !== b.count) {
      this.count = b.count;
      for (const name of ["x", "y", "yaw"]) this[name] = new Float32Array(b.count);
    }
    const [from, to] = [a.pose, b.pose];
    for (let n = 0, k = 0; n < b.count; n++, k += 3) {
      this.x[n] = from[k] + (to[k] - from[k]) * share;
      this.y[n] = from[k + 1] + (to[k + 1] - from[k + 1]) * share;
      this.yaw[n] = from[k + 2] + wrapped(to[k + 2] - from[k + 2]) * share;
    }
    Object.assign(this, { goal: b.goal, colors, held });
    return this;
  }
}
