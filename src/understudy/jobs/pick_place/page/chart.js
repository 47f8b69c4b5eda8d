// Times of the last cycles as bars; a cycle that failed is a red mark.

import { fixed } from "../../frame/figures.js";
import { drawing, element } from "../../frame/svg.js";

const [WIDE, HIGH] = [300, 56];
const SLOTS = 30;

// `cycles`: rows of `pick_place_cycles`
export function chart(place, cycles, hint) {
  const shown = cycles.slice(-SLOTS);
  const longest = Math.max(...shown.map(({ seconds }) => seconds), 1e-9);
  const wide = WIDE / SLOTS;
  const root = drawing(WIDE, HIGH, { preserveAspectRatio: "none", class: "u-chart-drawing", role: "img" });
  root.append(element("title", { text: hint }), element("line", { x1: 0, y1: HIGH - 1, x2: WIDE, y2: HIGH - 1, class: "u-chart-line" }));
  shown.forEach(({ number, success, seconds, code }, n) => {
    const high = success ? Math.max(3, (HIGH - 6) * (seconds / longest)) : HIGH - 6;
    const words = success ? `${number}: ${fixed(seconds, 2)} s` : `${number}: ${code}`;
    const bar = element("rect", {
      x: n * wide + 1, y: HIGH - 1 - high, width: wide - 2, height: high, class: success ? "u-bar-done" : "u-bar-failed",
    }, [element("title", { text: words })]);
    root.append(bar);
  });
  place.replaceChildren(root);
}
