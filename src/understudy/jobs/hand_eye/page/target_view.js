// What the camera sees, with the corners of the target that are found in it.

import { svg } from "../../frame/elements.js";
import { Picture } from "../../frame/picture.js";

const FIELD = { width: 640, height: 480 };
const CORNER_PX = 3; // on the screen, at least
const CORNER_SHARE = 0.004; // of the width of the picture

export class TargetView {
  constructor(place) {
    this.seen = null; // answer to `hand_eye_view`; without a picture if it was refused
    this.picture = new Picture(place, () => this.draw());
  }

  close() {
    this.picture.close();
  }

  show(seen) {
    this.seen = { corners: [], ...seen };
    this.draw();
  }

  draw() {
    const { width = FIELD.width, height = FIELD.height, data, corners = [] } = this.seen ?? {};
    const scale = this.picture.scale({ width, height });
    const target = corners.length ? [this.target(corners, scale, Math.max(CORNER_PX * scale, CORNER_SHARE * width))] : [];
    this.picture.show({ width, height }, data ? this.seen : null, target);
  }

  target(corners, scale, r) {
    const outline = hull(corners).map(([x, y]) => `${x},${y}`).join(" ");
    const dots = corners.map(([cx, cy]) => svg("circle", { cx, cy, r }));
    return svg("g", { class: "u-calib-target" }, [svg("polygon", { points: outline, "stroke-width": 2 * scale }), ...dots]);
  }

  report() {
    return this.seen && { found: this.seen.found, corners: this.seen.corners.length, picture: Boolean(this.seen.data) };
  }
}

const turn = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);

// → the convex outline of points (Andrew's monotone chain)
export function hull(points) {
  const sorted = [...points].sort(([ax, ay], [bx, by]) => ax - bx || ay - by);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}
