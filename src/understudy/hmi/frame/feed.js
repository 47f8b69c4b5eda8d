// State frames over a websocket. They are shown with a short delay, interpolated between two frames,
// so that motion is smooth.

import { decode } from "./msgpack.js";

const STALE_MS = 1000;
const RECONNECT_MS = 1000;
const DELAY_S = 0.07; // two frames, so that there is a frame before and one after the shown moment
const FRAMES_KEPT = 12;

// The frames of the cell, thirty a second; other feeds (`name`: their address) build on it.
export class Feed {
  constructor(name, delay = DELAY_S) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.address = `${scheme}://${location.host}/ws/${name}`;
    this.delay = delay;
    this.frames = []; // oldest first
    this.listeners = [];
    this.trails = {}; // robot → points of its weld trail, in metres
    this.received = 0;
    this.arrived = -Infinity;
    this.offset = Infinity; // browser time minus the cell's real time, with the least transport delay
    this.connect();
  }

  connect() {
    const socket = (this.socket = new WebSocket(this.address));
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.receive(decode(data));
    socket.onclose = () => this.closed || setTimeout(() => this.closed || this.connect(), RECONNECT_MS);
  }

  close() {
    this.closed = true;
    this.socket.close();
  }

  // → function that ends this
  onFrame(listener) {
    this.listeners.push(listener);
    return () => (this.listeners = this.listeners.filter((each) => each !== listener));
  }

  receive(frame) {
    const now = performance.now() / 1000;
    if (this.latest && this.isOther(frame)) this.clear();
    // rises slowly, so that it follows a clock that drifts
    this.offset = Math.min(this.offset + 0.0005, now - frame.real);
    for (const [robot, [first, points]] of Object.entries(frame.trail || {})) {
      this.extend(robot, first, points);
    }
    this.frames.push(frame);
    if (this.frames.length > FRAMES_KEPT) this.frames.shift();
    this.received += 1;
    this.arrived = performance.now();
    if (!this.held) for (const listener of this.listeners) listener(frame);
  }

  // Shows this frame, of another time, until it is null.
  hold(frame) {
    this.held = frame;
    if (frame) for (const listener of this.listeners) listener(frame);
  }

  // Whether the frame is of another cell than the latest one, or of the cell after a restart.
  isOther(frame) {
    return frame.real < this.latest.real;
  }

  // With `first` 0 the points are a whole new trail.
  extend(robot, first, points) {
    const known = (this.trails[robot] ??= []);
    if (first > 0) known.push(...points.slice(known.length - first));
    else if (known.length || points.length) this.trails[robot] = points;
  }

  clear() {
    this.frames = [];
    this.trails = {};
    this.offset = Infinity;
  }

  get latest() {
    return this.frames[this.frames.length - 1];
  }

  get stale() {
    return performance.now() - this.arrived > STALE_MS;
  }

  // → [earlier frame, later frame, fraction between them] for the moment to be shown now
  between() {
    const frames = this.frames;
    if (this.held) return [this.held, this.held, 1];
    if (!frames.length) return null;
    const shown = performance.now() / 1000 - this.offset - this.delay;
    for (let n = frames.length - 1; n > 0; n--) {
      const [a, b] = [frames[n - 1], frames[n]];
      if (a.real > shown) continue;
      const span = b.real - a.real;
      return [a, b, span > 0 ? Math.min(1, (shown - a.real) / span) : 1];
    }
    return [frames[0], frames[0], 1];
  }
}

export const interpolate = (a, b, part) =>
  a && b && a.length === b.length ? b.map((value, n) => a[n] + (value - a[n]) * part) : b || a;

// Positions along a line, angles the shorter way round.
export const interpolatePose = (a, b, part) =>
  a && b ? b.map((value, n) => a[n] + (n < 3 ? value - a[n] : wrapped(value - a[n])) * part) : b || a;

export const wrapped = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));

export const feed = new Feed("state");
