// Residual of each pose as a bar, in millimetres; the mean square is a line.

import { text } from "../../frame/api.js";
import { fixed } from "../../frame/figures.js";
import { drawing, element } from "../../frame/svg.js";

const [HIGH, FOOT, LEFT] = [110, 18, 46]; // pixels
const NARROWEST = 200;
const FEWEST_SLOTS = 15;

// `rows`: `poses` of `hand_eye_status`
export function residuals(place, rows) {
  const known = rows.filter((row) => row.residual_mm !== null);
  if (!known.length) {
    place.textContent = text("no_residuals");
    return;
  }
  const values = known.map((row) => row.residual_mm);
  const top = Math.max(...values, 1e-6);
  const mean = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);
  const high = (value) => (HIGH - FOOT - 8) * (value / top);
  const right = Math.max(place.clientWidth, NARROWEST);
  const wide = (right - LEFT) / Math.max(values.length, FEWEST_SLOTS);
  const root = drawing(right, HIGH, { class: "u-calib-drawing", role: "img" });
  root.append(element("title", { text: text("residuals") }), ...scale(right, top, mean, HIGH - FOOT - high(mean)));
  known.forEach(({ number, residual_mm: value }, n) => {
    const x = LEFT + n * wide;
    const bar = { x: x + 1, y: HIGH - FOOT - high(value), width: wide - 2, height: Math.max(1, high(value)) };
    root.append(element("rect", { ...bar, class: value > 2 * mean ? "u-calib-bar u-far" : "u-calib-bar" }, [element("title", { text: `${number}: ${fixed(value, 3)} mm` })]));
    if (wide > 18 || number % 5 === 0) root.append(element("text", { x: x + wide / 2, y: HIGH - 3, "text-anchor": "middle", text: number }));
  });
  place.replaceChildren(root);
}

function scale(right, top, mean, y) {
  const foot = HIGH - FOOT;
  return [
    element("line", { x1: LEFT, y1: foot, x2: right, y2: foot, class: "u-calib-foot" }),
    element("line", { x1: LEFT, y1: y, x2: right, y2: y, class: "u-calib-mean" }, [element("title", { text: `RMS ${fixed(mean, 3)} mm` })]),
    element("text", { x: LEFT - 4, y: 14, "text-anchor": "end", text: fixed(top, 3) }),
    element("text", { x: LEFT - 4, y: foot, "text-anchor": "end", text: "mm" }),
  ];
}
