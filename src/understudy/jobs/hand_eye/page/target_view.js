// What the camera sees, with the corners of the target that are found in it.

import { drawing, element } from "../../frame/svg.js";

const FIELD = { width: 640, height: 480 };
const CORNER_PX = 3; // on the screen, at least
const CORNER_SHARE = 0.004; // of the width of the picture

export class TargetView {
  constructor(place) {
    this.place = place;
    this.seen = null; // answer to `hand_eye_view`; without a picture if it was refused
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(place);
  }

  close() {
    this.observer.disconnect();
  }

  show(seen) {
    this.seen = { corners: [], ...seen };
    this.draw();
  }

  draw() {
    const { width = FIELD.width, height = FIELD.height, data, format, corners = [] } = this.seen ?? {};
    const scale = Math.max(width / Math.max(this.place.clientWidth, 1), height / Math.max(this.place.clientHeight, 1));
    const root = drawing(width, height, { class: "u-eye-drawing" });
    root.append(element("rect", { width, height, class: "u-eye-field" }));
    if (data) root.append(element("image", { href: `data:image/${format};base64,${data}`, width, height, preserveAspectRatio: "none" }));
    if (corners.length) root.append(this.target(corners, scale, Math.max(CORNER_PX * scale, CORNER_SHARE * width)));
    this.place.replaceChildren(root);
  }

  target(corners, scale, r) {
    const outline = hull(corners).map(([x, y]) => `${x},${y}`).join(" ");
    const dots = corners.map(([cx, cy]) => element("circle", { cx, cy, r }));
    return element("g", { class: "u-calib-target" }, [element("polygon", { points: outline, "stroke-width": 2 * scale }), ...dots]);
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
