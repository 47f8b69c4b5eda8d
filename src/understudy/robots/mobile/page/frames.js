// Frames of all mobile robots, ten a second, as arrays.

import { Feed } from "../../frame/feed.js";

const DELAY_S = 0.15; // so that there is nearly always a frame to go to
const FLOATS = ["pose", "goal", "speed"];

export const STATE_FLAGS = { estop: 1, fault: 2, busy: 4, task: 8, blocked: 16, real: 32, held: 64 };

export class Frames extends Feed {
  // calls changed(frame) for every frame
  constructor(changed) {
    super("fleet", DELAY_S);
    this.onFrame(changed);
  }

  receive(frame) {
    for (const name of FLOATS) frame[name] = floats(frame[name]);
    super.receive(frame);
  }

  isOther(frame) {
    return super.isOther(frame) || frame.count !== this.latest.count;
  }
}

// The bytes inside the message may begin at any place: an array of floats may not.
const floats = ({ buffer, byteOffset, byteLength }) => new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
