// What the captured poses tell: a table of what the robot has reported and vision has seen, residuals,
// and how far the poses turn the flange. `rows`: `poses` or `coverage` of `hand_eye_status`.

import { fixed, text } from "../../frame/api.js";
import { add, drawing, html, svg } from "../../frame/elements.js";

const AXES = ["X", "Y", "Z", "RX", "RY", "RZ"];

const named = (values, names, unit) => values.map((value, n) => `${names[n]} ${fixed(value, n < 3 ? 1 : 2)}${unit(n)}`).join("  ");
const pose = (values) => named(values, AXES, (n) => (n < 3 ? " mm" : "°"));
const joints = (values) => values.map((value, n) => `J${n + 1} ${fixed(value, 1)}°`).join("  ");
const millimetres = (value) => (value === null ? "–" : `${fixed(value, 3)} mm`);

export function poseTable(place, rows) {
  if (!rows.length) {
    place.textContent = text("no_poses");
    return;
  }
  const table = html("table");
  table.createTHead().append(line("th", ["#", text("robot"), text("vision"), text("residual")]));
  table.createTBody().append(...rows.map(poseRow));
  place.replaceChildren(table);
  place.scrollTop = place.scrollHeight; // the last pose
}

function poseRow({ number, flange_mm_deg: flange, target_mm_deg: target, joints_deg: angles, corners, residual_mm: off, residual_px: pixels }) {
  const [x, y, z] = flange.map((value) => fixed(value, 0));
  const made = line("td", [number, `✓ ${x}, ${y}, ${z}`, `✓ ${corners}`, millimetres(off)]);
  const [, robot, vision, residual] = made.children;
  robot.title = `${pose(flange)}\n${joints(angles)}`;
  vision.title = `${pose(target)}\n${text("corners", { count: corners })}`;
  residual.title = pixels === null ? "" : `${fixed(pixels, 3)} px`;
  return made;
}

function line(kind, contents) {
  const made = html("tr");
  for (const content of contents) add(made, kind, "", content);
  return made;
}

// ── residual of each pose as a bar, in millimetres; the mean square is a line ──

const [HIGH, FOOT, LEFT] = [110, 18, 46]; // pixels
const NARROWEST = 200;
const FEWEST_SLOTS = 15;

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
  root.append(svg("title", { text: text("residuals") }), ...scale(right, top, mean, HIGH - FOOT - high(mean)));
  known.forEach(({ number, residual_mm: value }, n) => {
    const x = LEFT + n * wide;
    const bar = { x: x + 1, y: HIGH - FOOT - high(value), width: wide - 2, height: Math.max(1, high(value)) };
    root.append(svg("rect", { ...bar, class: value > 2 * mean ? "u-calib-bar u-far" : "u-calib-bar" }, [svg("title", { text: `${number}: ${fixed(value, 3)} mm` })]));
    if (wide > 18 || number % 5 === 0) root.append(svg("text", { x: x + wide / 2, y: HIGH - 3, "text-anchor": "middle", text: number }));
  });
  place.replaceChildren(root);
}

function scale(right, top, mean, y) {
  const foot = HIGH - FOOT;
  return [
    svg("line", { x1: LEFT, y1: foot, x2: right, y2: foot, class: "u-calib-foot" }),
    svg("line", { x1: LEFT, y1: y, x2: right, y2: y, class: "u-calib-mean" }, [svg("title", { text: `RMS ${fixed(mean, 3)} mm` })]),
    svg("text", { x: LEFT - 4, y: 14, "text-anchor": "end", text: fixed(top, 3) }),
    svg("text", { x: LEFT - 4, y: foot, "text-anchor": "end", text: "mm" }),
  ];
}

// ── turns of the flange in each direction; directions that are missing are marked ──

const FULL_DEG = 40; // a bar of full length

export function coverage(place, rows) {
  place.replaceChildren(...rows.map(turnBar));
}

function turnBar({ direction, turned_deg: turned, missing }) {
  const made = html("div", missing ? "u-calib-turn u-missing-turn" : "u-calib-turn", "", { direction });
  add(made, "span", "", direction);
  add(add(made, "span"), "i").style.width = `${Math.min(100, (100 * turned) / FULL_DEG)}%`;
  add(made, "b", "", `${fixed(turned, 0)}° ${missing ? "✗" : "✓"}`);
  return made;
}
