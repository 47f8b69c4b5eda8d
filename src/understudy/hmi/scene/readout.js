// Figures below the scene: joints and tool pose of the chosen robot.

const POSE = ["X", "Y", "Z", "RX", "RY", "RZ"];

const round = (value, digits) => value.toFixed(digits).replace(/^-(0\.0+)$/, "$1");
const figure = (value, angle) =>
  angle ? `${round((value * 180) / Math.PI, 2)}°` : `${round(value * 1000, 1)} mm`;

// `robot`: from a state frame; `joints`: from the scene, with their types.
export function show(element, robot, joints) {
  if (!element || !robot) return;
  const lines = robot.q.map((value, n) => [`J${n + 1}`, figure(value, joints[n]?.type !== "prismatic")]);
  POSE.forEach((name, n) => lines.push([name, figure(robot.tcp[n] ?? 0, n > 2)]));
  while (element.children.length > lines.length) element.lastChild.remove();
  lines.forEach(([name, value], n) => {
    const cell = element.children[n] || element.appendChild(document.createElement("div"));
    if (cell.dataset.shown === name + value) return;
    cell.dataset.shown = name + value;
    cell.replaceChildren(Object.assign(document.createElement("b"), { textContent: name }), value);
  });
}
