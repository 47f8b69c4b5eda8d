// Picture of the camera with what vision has seen last: box, axes, class and confidence of every
// object.

import { fixed, largeness, text, whileVisible } from "../../frame/api.js";
import { svg } from "../../frame/elements.js";
import { feed } from "../../frame/feed.js";
import { Picture } from "../../frame/picture.js";

const AXES = ["x", "y", "z"];
const FIELD = { width: 1280, height: 960 };
const LABEL_PX = 15; // on a usual screen
const SMALL_PX = 12;
const LETTER = 0.55; // width of a letter, of the height of the text
const LINE_MS = 500;

const keyOf = ({ id, bbox }) => `${id} ${bbox}`;

export class Camera {
  constructor(place, line) {
    this.view = new Picture(place, () => this.draw());
    this.line = line;
    this.objects = [];
    this.frame = 0;
    this.seen = null;
    this.picture = this.target = null;
    this.draw();
    this.endLine = whileVisible(LINE_MS, async () => this.showLine());
  }

  close() {
    this.view.close();
    this.endLine();
  }

  // The object that is picked; null without one. Markers of the same number have the same id: the
  // box tells them apart.
  aim(object) {
    const target = object && keyOf(object);
    if (target === this.target) return;
    this.target = target;
    this.draw();
  }

  // `seen`: the answer to `vision_result`
  show(seen) {
    this.seen = seen;
    [this.objects, this.frame] = [seen.objects, seen.frame_id];
    this.draw();
    this.showLine();
  }

  // `picture`: an answer of `vision_picture`, with the objects that were seen in it, or of
  // `camera_picture`; null without one. `plain`: then no objects are drawn either.
  showPicture(picture, { plain = false } = {}) {
    [this.picture, this.plain] = [picture, plain];
    this.showLine();
    this.draw();
  }

  draw() {
    const size = this.seen?.camera ?? FIELD;
    this.scale = largeness() * this.view.scale(size);
    const over = this.picture ? [] : this.cross(size);
    over.push(...this.drawn().map((object) => this.drawObject(object, size.width)));
    if (this.picture?.caption) over.push(this.caption(this.picture.caption));
    this.view.show(size, this.picture, over);
  }

  caption(words) {
    const size = LABEL_PX * this.scale;
    return svg("text", { x: 0.6 * size, y: 1.4 * size, "font-size": size, class: "u-eye-caption", text: words });
  }

  // The objects of the picture that is shown; without one those of the last result, if it is shown.
  drawn() {
    if (this.picture) return this.picture.objects ?? [];
    return this.plain ? [] : this.objects;
  }

  cross({ width, height }) {
    const [x, y] = [width / 2, height / 2];
    return [[0, y, width, y], [x, 0, x, height]].map(([x1, y1, x2, y2]) => svg("line", { x1, y1, x2, y2, class: "u-eye-cross" }));
  }

  drawObject(object, width) {
    const { id, class: name, confidence, bbox: [x, y, wide, high], axes_px: axes } = object;
    const size = LABEL_PX * this.scale;
    const parts = [svg("rect", { x, y, width: wide, height: high, "stroke-width": 2 * this.scale })];
    const [origin, ...ends] = axes; // none without a lens
    ends.forEach(([ex, ey], n) => parts.push(svg("line", {
      x1: origin[0], y1: origin[1], x2: ex, y2: ey, class: `u-axis-${AXES[n]}`, "stroke-width": 2.5 * this.scale,
    })));
    parts.push(...this.labels(name, `${Math.round(100 * confidence)} %`, [x, y, wide], size, width));
    const newest = !this.picture || this.picture.frame_id === this.frame;
    const kind = newest && keyOf(object) === this.target ? "u-seen u-seen-target" : "u-seen";
    return svg("g", { class: kind, "data-object": id }, parts);
  }

  // Above the box; if it is too narrow, in two lines inside it.
  labels(name, share, [x, y, wide], size, width) {
    const fits = LETTER * size * (name.length + share.length + 1) <= Math.max(wide + size, width / this.drawn().length);
    if (fits) {
      const label = `${name} ${share}`;
      const left = Math.max(0, Math.min(x, width - LETTER * size * label.length));
      return [svg("text", { x: left, y: Math.max(y - 0.3 * size, size), "font-size": size, text: label })];
    }
    const small = SMALL_PX * this.scale;
    return [name, share].map((line, n) => svg("text", { x: x + 0.2 * small, y: y + (n + 1) * small, "font-size": small, text: line }));
  }

  showLine() {
    const { seen } = this;
    if (!seen || (!seen.frame_id && !seen.error)) {
      this.line.textContent = text("no_picture");
      return;
    }
    const now = feed.latest?.t;
    const age = seen.exposed_at_s === null || now === undefined ? seen.age_s : Math.max(0, now - seen.exposed_at_s);
    const values = { frame: seen.frame_id, count: seen.objects.length, age: fixed(age, 1) };
    const isLive = this.picture && this.picture.frame_id === undefined;
    const words = text(seen.error ? "vision_failed" : isLive ? "seen_before" : "seen", values);
    this.line.textContent = seen.error ? `${words} ${seen.error}` : words;
    this.line.classList.toggle("u-alarm", Boolean(seen.error));
  }

  report() {
    return this.picture && { frame: this.picture.frame_id ?? null, bytes: this.picture.data.length };
  }
}
