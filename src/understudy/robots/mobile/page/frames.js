// Frames of all mobile robots from /ws/fleet: arrays, and the two frames around the moment shown.

import { decode } from "../../frame/msgpack.js";

const DELAY_S = 0.15; // shown that much later, so that there is nearly always a frame to go to
const KEPT = 8;
const RETRY_MS = 500;
const STALE_MS = 1500;
const FLOATS = { pose: 3, goal: 3, speed: 1 };

export const STATE_FLAGS = { estop: 1, fault: 2, busy: 4, task: 8, blocked: 16, real: 32, held: 64 };

export class Frames {
  // calls changed(frame) for every frame
  constructor(changed) {
    this.frames = [];
    this.offset = Infinity; // smallest difference of the browser's clock to the cell's
    this.arrived = -Infinity;
    this.received = 0;
    this.changed = changed;
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = (this.socket = new WebSocket(`${scheme}://${location.host}/ws/fleet`));
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.add(data);
    socket.onclose = () => this.closed || setTimeout(() => this.closed || this.connect(), RETRY_MS);
  }

  close() {
    this.closed = true;
    this.socket.close();
  }

  add(data) {
    const frame = decode(data);
    for (const name of Object.keys(FLOATS)) frame[name] = floats(frame[name]);
    const last = this.latest;
    if (last && (frame.real < last.real || frame.count !== last.count)) this.restart(); // another cell
    this.offset = Math.min(this.offset, performance.now() / 1000 - frame.real);
    this.frames = [...this.frames, frame].slice(-KEPT);
    this.arrived = performance.now();
    this.received += 1;
    this.changed(frame);
  }

  restart() {
    this.frames = [];
    this.offset = Infinity;
  }

  get latest() {
    return this.frames[this.frames.length - 1];
  }

  get stale() {
    return performance.now() - this.arrived > STALE_MS;
  }

  // → [earlier frame, later frame, share between them] for the moment to be shown now
  between() {
    const shown = performance.now() / 1000 - this.offset - DELAY_S;
    for (let n = this.frames.length - 1; n > 0; n--) {
      const [a, b] = [this.frames[n - 1], this.frames[n]];
      if (a.real > shown) continue;
      const span = b.real - a.real;
      return [a, b, span > 0 ? Math.min(1, (shown - a.real) / span) : 1];
    }
    return [this.frames[0], this.frames[0], 1];
  }
}

// The bytes inside the message may begin at any place: an array of floats may not.
const floats = ({ buffer, byteOffset, byteLength }) => new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));

export const wrapped = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
