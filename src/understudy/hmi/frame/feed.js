// The cell's state, thirty times a second, made smooth: frames come over a websocket of their own
// and are shown a moment late, between the two they lie between.

import { decode } from "./msgpack.js";

const STALE_MS = 1000;
const RECONNECT_MS = 1000;
const LATE_S = 0.07; // two frames: what is shown always has a frame before it and one after it
const KEPT = 12;

export class Feed {
  constructor(address) {
    this.address = address;
    this.frames = []; // oldest first
    this.listeners = [];
    this.trails = {}; // robot → where its arc has burned, in metres
    this.received = 0;
    this.arrived = -Infinity;
    this.offset = Infinity; // wall time here minus the cell's, as quick as a frame ever came
    this.connect();
  }

  connect() {
    const socket = new WebSocket(this.address);
    socket.binaryType = "arraybuffer";
    socket.onmessage = (message) => this.take(decode(message.data));
    socket.onclose = () => setTimeout(() => this.connect(), RECONNECT_MS);
  }

  onFrame(listener) {
    this.listeners.push(listener);
  }

  take(frame) {
    const now = performance.now() / 1000;
    const last = this.latest;
    if (last && frame.real < last.real) this.forget(); // the cell was started anew
    // forgets slowly, so that a clock that drifts is followed
    this.offset = Math.min(this.offset + 0.0005, now - frame.real);
    for (const [robot, [first, points]] of Object.entries(frame.trail || {})) {
      this.extend(robot, first, points);
    }
    this.frames.push(frame);
    if (this.frames.length > KEPT) this.frames.shift();
    this.received += 1;
    this.arrived = performance.now();
    for (const listener of this.listeners) listener(frame);
  }

  // A trail that is told from its beginning again is another one.
  extend(robot, first, points) {
    const known = (this.trails[robot] ??= []);
    if (first > 0) known.push(...points.slice(known.length - first));
    else if (known.length || points.length) this.trails[robot] = points;
  }

  forget() {
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

  // → [earlier, later, part]: what is to be shown now
  between() {
    const frames = this.frames;
    if (!frames.length) return null;
    const shown = performance.now() / 1000 - this.offset - LATE_S;
    for (let n = frames.length - 1; n > 0; n--) {
      const [a, b] = [frames[n - 1], frames[n]];
      if (a.real > shown) continue;
      const span = b.real - a.real;
      return [a, b, span > 0 ? Math.min(1, (shown - a.real) / span) : 1];
    }
    return [frames[0], frames[0], 1];
  }
}

export const mix = (a, b, part) =>
  a && b && a.length === b.length ? b.map((value, n) => a[n] + (value - a[n]) * part) : b || a;

// Places along a line, angles the shorter way round.
export const mixPose = (a, b, part) =>
  a && b ? b.map((value, n) => a[n] + (n < 3 ? value - a[n] : turn(value - a[n])) * part) : b || a;

const turn = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));

const scheme = location.protocol === "https:" ? "wss" : "ws";
export const feed = new Feed(`${scheme}://${location.host}/ws/state`);
