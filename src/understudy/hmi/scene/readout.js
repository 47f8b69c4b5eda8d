// The figures under the picture: the joints of the chosen robot, then its tip.

const TIP = ["X", "Y", "Z", "RX", "RY", "RZ"];

const round = (value, digits) => value.toFixed(digits).replace(/^-(0\.0+)$/, "$1");
const figure = (value, angle) =>
  angle ? `${round((value * 180) / Math.PI, 2)}°` : `${round(value * 1000, 1)} mm`;

// `robot`: as a frame tells of it; `joints`: what kind its axes are.
export function show(place, robot, joints) {
  if (!place || !robot) return;
  const lines = robot.q.map((value, n) => [`J${n + 1}`, figure(value, joints[n]?.type !== "prismatic")]);
  TIP.forEach((name, n) => lines.push([name, figure(robot.tcp[n] ?? 0, n > 2)]));
  while (place.children.length > lines.length) place.lastChild.remove();
  lines.forEach(([name, value], n) => {
    const cell = place.children[n] || place.appendChild(document.createElement("div"));
    if (cell.dataset.shown === name + value) return;
    cell.dataset.shown = name + value;
    cell.replaceChildren(Object.assign(document.createElement("b"), { textContent: name }), value);
  });
}
