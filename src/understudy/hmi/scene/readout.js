// Figures below the scene: joints and tool pose of the chosen robot, or the axes of a machine.

import { fixed } from "../frame/api.js";
import { add, html } from "../frame/elements.js";

const POSE = ["X", "Y", "Z", "RX", "RY", "RZ"];

const figure = (value, angle, digits = angle ? 2 : 1) =>
  angle ? `${fixed((value * 180) / Math.PI, digits)}°` : `${fixed(value * 1000, digits)} mm`;

const jointFigures = ({ q, tcp }, joints) => [
  ...q.map((value, n) => [`J${n + 1}`, figure(value, joints[n]?.type !== "prismatic")]),
  ...POSE.map((name, n) => [name, figure(tcp[n] ?? 0, n > 2)]),
];
// Controllers of machines report thousandths.
const axisFigures = ({ q }, joints) =>
  joints.map(({ name, type }, n) => [name, figure(q[n] ?? 0, type !== "prismatic", 3)]);

// `robot`: from a state frame; `joints`: from the scene, with their types.
export function show(element, robot, joints) {
  if (!element || !robot) return;
  const isMachine = joints.some(({ name }) => name === "X");
  element.classList.toggle("u-six-axes", isMachine);
  const lines = (isMachine ? axisFigures : jointFigures)(robot, joints);
  while (element.children.length > lines.length) element.lastChild.remove();
  lines.forEach(([name, value], n) => {
    const cell = element.children[n] || add(element, "div");
    if (cell.dataset.shown === name + value) return;
    cell.dataset.shown = name + value;
    cell.replaceChildren(html("b", "", name), value);
  });
}
