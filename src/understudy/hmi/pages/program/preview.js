// Preview of a run: the path of the tool from the query `preview`, a timeline, and a ghost robot at
// the time of the slider.

import { answered, ask, fixed, notice, text } from "../../frame/api.js";

const NEAR_LINES = 2; // the reported line is slightly older than the joints
const GOLD = "#ffd700", BLUE = "#3f78a8", RED = "#ff4d4d", PALE = "#f2f5f7";

export class Preview {
  // calls moved(line) when the ghost moves to another line
  constructor(element, { moved }) {
    this.element = element;
    this.moved = moved;
    this.text = null;
    this.robot = "";
    this.data = null;
    this.at = 0; // seconds
    this.slider = element.querySelector("input[type=range]"); // only this script sets its value and its end
    this.strip = element.querySelector("canvas");
    this.readout = element.querySelector("[data-preview=readout]");
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    element.querySelector("[data-preview=play]").addEventListener("click", () => this.play());
    element.querySelector("[data-preview=close]").addEventListener("click", () => this.close());
    new ResizeObserver(() => this.draw()).observe(this.strip);
    this.show();
  }

  // → the preview of a program, requested once for several callers; null if it is refused; `quiet`:
  // without a notice of that
  load(robot, program, { quiet = false } = {}) {
    const is = (each) => each?.robot === robot && each.text === program;
    if (is(this) && this.data) return this.data;
    if (!is(this.request)) {
      this.request = { robot, text: program, quiet };
      this.request.answer = this.fetch(this.request);
    }
    return this.request.answer;
  }

  async fetch(request) {
    this.show();
    const data = await (request.quiet ? answered : ask)("preview", { robot: request.robot, text: request.text });
    if (this.request !== request) return null;
    this.request = null;
    if (data) {
      Object.assign(this, { robot: request.robot, text: request.text, data });
      this.slider.max = data.times.length ? data.times[data.times.length - 1] : 0;
      window.understudy?.showPreview(request.robot, data.tcp);
    }
    this.show();
    return data || null;
  }

  clear() {
    this.close();
    Object.assign(this, { text: null, data: null, at: 0, request: null });
    this.show();
  }

  // Moves to the end of a line; a line without motion ends where the line before it does.
  seekLine(line) {
    const { times = [], lines = [] } = this.data || {};
    let last = -1;
    for (let n = 0; n < lines.length; n++) if (lines[n] <= line) last = n;
    const beyond = this.data?.truncated && last === lines.length - 1 && line > lines[last];
    if (beyond) notice(text("beyond", { line: lines[last] }), "info");
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

  // Follows the running robot: the sample near its line that is closest to its joints. A ghost that
  // the user looks at stays.
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
    this.showTime();
  }

  // → [index of the sample before, fraction of the way to the next]
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
    if (this.playing) return this.pause();
    if (!this.data?.times.length) return;
    if (this.at >= Number(this.slider.max) - 1e-6) this.at = 0;
    let before = performance.now();
    const tick = (now) => {
      this.seek(this.at + (now - before) / 1000);
      before = now;
      if (this.at < Number(this.slider.max)) this.playing = requestAnimationFrame(tick);
      else this.pause();
    };
    this.playing = requestAnimationFrame(tick);
    this.element.classList.add("u-playing");
  }

  pause() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.element.classList.remove("u-playing");
  }

  close() {
    this.pause();
    this.followed = 0;
    this.ghost = null;
    this.line = 0;
    window.understudy?.pin(this.robot, null);
    this.show();
  }

  show() {
    this.element.classList.toggle("u-empty", !this.data?.times.length);
    this.element.classList.toggle("u-loading", Boolean(this.request));
    this.slider.value = this.at;
    this.showTime();
    this.draw();
  }

  showTime() {
    const total = this.data?.duration_s || 0;
    const line = this.ghost ? this.line : this.followed;
    this.readout.textContent = line
      ? `${fixed(this.at, 2)} s · ${text("line", { line })}`
      : total ? `${fixed(total, 2)} s` : "";
  }

  // Draws the timeline: arc in gold, violations in red, and where lines begin.
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
