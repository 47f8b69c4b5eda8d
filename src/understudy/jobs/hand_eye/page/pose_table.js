// Table of the captured poses: what the robot has reported, what vision has seen, and the residual.

import { text } from "../../frame/api.js";
import { fixed } from "../../frame/figures.js";

const AXES = ["X", "Y", "Z", "RX", "RY", "RZ"];

const named = (values, names, unit) => values.map((value, n) => `${names[n]} ${fixed(value, n < 3 ? 1 : 2)}${unit(n)}`).join("  ");
const pose = (values) => named(values, AXES, (n) => (n < 3 ? " mm" : "°"));
const joints = (values) => values.map((value, n) => `J${n + 1} ${fixed(value, 1)}°`).join("  ");
const millimetres = (value) => (value === null ? "–" : `${fixed(value, 3)} mm`);

// `rows`: `poses` of `hand_eye_status`
export function poseTable(place, rows) {
  if (!rows.length) {
    place.textContent = text("no_poses");
    return;
  }
  const table = document.createElement("table");
  table.createTHead().append(line("th", ["#", text("robot"), text("vision"), text("residual")]));
  table.createTBody().append(...rows.map(row));
  place.replaceChildren(table);
  place.scrollTop = place.scrollHeight; // the last pose
}

function row({ number, flange_mm_deg: flange, target_mm_deg: target, joints_deg: angles, corners, residual_mm: off, residual_px: pixels }) {
  const [x, y, z] = flange.map((value) => fixed(value, 0));
  const made = line("td", [number, `✓ ${x}, ${y}, ${z}`, `✓ ${corners}`, millimetres(off)]);
  const [, robot, vision, residual] = made.children;
  robot.title = `${pose(flange)}\n${joints(angles)}`;
  vision.title = `${pose(target)}\n${text("corners").replace("{count}", corners)}`;
  residual.title = pixels === null ? "" : `${fixed(pixels, 3)} px`;
  return made;
}

function line(kind, contents) {
  const made = document.createElement("tr");
  for (const content of contents) {
    const cell = document.createElement(kind);
    cell.textContent = content;
    made.append(cell);
  }
  return made;
}
