// The run before it is run: the way of the tool from `preview`, and a ghost that stands on it
// wherever the slider does.

import { ask, notice, words } from "./api.js";

const NEAR_LINES = 2; // what is told of the line is a moment older than the joints
const GOLD = "#ffd700", BLUE = "#3f78a8", RED = "#ff4d4d", PALE = "#f2f5f7";

export class Way {
  constructor(place, { moved }) {
    this.place = place;
    this.moved = moved; // (line) → the ghost stands on it now
    this.text = null;
    this.robot = "";
    this.data = null;
    this.at = 0; // seconds
    this.slider = place.querySelector("input[type=range]"); // its value and end are ours alone
    this.strip = place.querySelector("canvas");
    this.readout = place.querySelector("[data-way=readout]");
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    place.querySelector("[data-way=play]").addEventListener("click", () => this.play());
    place.querySelector("[data-way=close]").addEventListener("click", () => this.close());
    new ResizeObserver(() => this.draw()).observe(this.strip);
    this.show();
  }

  // → the way of this text, asked for once, however many wait for it; null where there is none
  of(robot, text) {
    const is = (each) => each?.robot === robot && each.text === text;
    if (is(this) && this.data) return this.data;
    if (!is(this.asked)) {
      this.asked = { robot, text };
      this.asked.answer = this.fetch(this.asked);
    }
    return this.asked.answer;
  }

  async fetch(asked) {
    this.show();
    const data = await ask("preview", { robot: asked.robot, text: asked.text });
    if (this.asked !== asked) return null;
    this.asked = null;
    if (data) {
      Object.assign(this, { robot: asked.robot, text: asked.text, data });
      this.slider.max = data.times.length ? data.times[data.times.length - 1] : 0;
      window.understudy?.showPreview(asked.robot, data.tcp);
    }
    this.show();
    return data || null;
  }

  forget() {
    this.close();
    Object.assign(this, { text: null, data: null, at: 0, asked: null });
    this.show();
  }

  // Where a line ends; a line that moves nothing ends where the last one did.
  seekLine(line) {
    const { times = [], lines = [] } = this.data || {};
    let last = -1;
    for (let n = 0; n < lines.length; n++) if (lines[n] <= line) last = n;
    const beyond = this.data?.truncated && last === lines.length - 1 && line > lines[last];
    if (beyond) notice(words("beyond").replace("{line}", lines[last]), "info");
    if (last < 0 || beyond) this.close();
    else this.seek(times[last], { quiet: true });
  }

  seek(seconds, { quiet = false } = {}) {
    const { times = [] } = this.data || {};
    if (!times.length) return;
    this.at = Math.min(Math.max(seconds, times[0]), times[times.length - 1]);
    const [n, part] = this.between(this.at);
    const [a, b] = [this.data.q[n], this.data.q[Math.min(n + 1, times.length - 1)]];
    this.ghost = a.map((value, axis) => value + (b[axis] - value) * part);
    this.line = this.data.lines[part > 0 ? Math.min(n + 1, times.length - 1) : n];
    window.understudy?.pin(this.robot, this.ghost);
    if (!quiet) this.moved(this.line);
    this.show();
  }

  // Where the robot is that runs it, as near as the way comes to it on these lines; a ghost that
  // somebody looks at is not taken from him.
  follow(line, q) {
    if (this.ghost || this.playing || !this.data) return;
    const { times, lines, q: postures } = this.data;
    const away = (n) => postures[n].reduce((sum, angle, axis) => sum + (angle - q[axis]) ** 2, 0);
    let [best, least] = [-1, Infinity];
    for (let n = 0; n < times.length; n++) {
      if (Math.abs(lines[n] - line) > NEAR_LINES || away(n) >= least) continue;
      [best, least] = [n, away(n)];
    }
    if (best < 0) return;
    [this.at, this.followed] = [times[best], lines[best]];
    this.slider.value = this.at;
    this.tell();
  }

  // → the sample before, and how far it is to the next
  between(seconds) {
    const { times } = this.data;
    let [low, high] = [0, times.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= seconds) low = middle;
      else high = middle - 1;
    }
    const span = times[low + 1] - times[low];
    return [low, span > 0 ? (seconds - times[low]) / span : 0];
  }

  play() {
    if (this.playing) return this.halt();
    if (!this.data?.times.length) return;
    if (this.at >= Number(this.slider.max) - 1e-6) this.at = 0;
    let before = performance.now();
    const tick = (now) => {
      this.seek(this.at + (now - before) / 1000);
      before = now;
      if (this.at < Number(this.slider.max)) this.playing = requestAnimationFrame(tick);
      else this.halt();
    };
    this.playing = requestAnimationFrame(tick);
    this.place.classList.add("u-playing");
  }

  halt() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.place.classList.remove("u-playing");
  }

  close() {
    this.halt();
    this.followed = 0;
    this.ghost = null;
    this.line = 0;
    window.understudy?.pin(this.robot, null);
    this.show();
  }

  // ── what is seen ──

  show() {
    this.place.classList.toggle("u-empty", !this.data?.times.length);
    this.place.classList.toggle("u-asking", Boolean(this.asked));
    this.slider.value = this.at;
    this.tell();
    this.draw();
  }

  tell() {
    const total = this.data?.duration_s || 0;
    const line = this.ghost ? this.line : this.followed;
    this.readout.textContent = line
      ? `${this.at.toFixed(2)} s · ${words("line").replace("{line}", line)}`
      : total ? `${total.toFixed(2)} s` : "";
  }

  // Where the arc burns, where lines begin, where something is wrong, where the ghost stands.
  draw() {
    const { clientWidth: width, clientHeight: height } = this.strip;
    const scale = window.devicePixelRatio || 1;
    Object.assign(this.strip, { width: width * scale, height: height * scale });
    const pen = this.strip.getContext("2d");
    pen.scale(scale, scale);
    const { times = [], arc = [], lines = [], violations = [] } = this.data || {};
    if (!times.length) return;
    const x = (seconds) => (seconds / Number(this.slider.max)) * width;
    const bad = new Set(violations.map(({ line }) => line));
    for (let n = 1; n < times.length; n++) {
      pen.fillStyle = bad.has(lines[n]) ? RED : arc[n] && arc[n - 1] ? GOLD : BLUE;
      pen.fillRect(x(times[n - 1]), height / 2 - 6, Math.max(0.6, x(times[n]) - x(times[n - 1]) + 0.3), 12);
      if (lines[n] !== lines[n - 1]) {
        pen.fillStyle = PALE;
        pen.fillRect(x(times[n - 1]), height / 2 - 10, 1, 20);
      }
    }
  }
}
