// The hand on a jog button: told while it is held, so that a hand that is gone moves nothing.

import { feed } from "./feed.js";
import { onceThere } from "./api.js";

const FELT_MS = 100;
const SHOWN_MS = 100;

const figure = (value, places) => value.toFixed(places).replace(/^-(0\.0+)$/, "$1");

onceThere("#axes", (place) => {
  let held = null;
  let beat = 0;
  let shown = 0;

  const letGo = () => {
    if (!held) return;
    clearInterval(beat);
    held.classList.remove("u-held-button");
    held = null;
    emitEvent("jog_end");
  };

  place.addEventListener("pointerdown", (event) => {
    const button = event.target.closest("[data-jog]");
    if (!button || held || event.button) return;
    event.preventDefault();
    button.setPointerCapture(event.pointerId);
    held = button;
    button.classList.add("u-held-button");
    const [{ robot, frame }, { jog, direction }] = [place.dataset, button.dataset];
    emitEvent("jog_begin", { robot, frame, axis: Number(jog), direction: Number(direction) });
    beat = setInterval(() => emitEvent("jog_hold"), FELT_MS);
  });
  // Wherever the hand is by then, and even if the button under it is gone.
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) document.addEventListener(end, letGo);
  place.addEventListener("contextmenu", (event) => event.preventDefault());
  window.addEventListener("blur", letGo);
  document.addEventListener("visibilitychange", letGo);

  // The axes' own figures, or those of the tool.
  feed.onFrame((frame) => {
    const robot = frame.robots[place.dataset.robot];
    if (!robot || performance.now() - shown < SHOWN_MS) return;
    shown = performance.now();
    const joint = place.dataset.frame === "joint" && robot.q.length;
    const values = joint ? robot.q : robot.tcp;
    for (const cell of place.querySelectorAll("[data-figure]")) {
      const axis = Number(cell.dataset.figure);
      const linear = joint ? axis < (robot.linear || 0) : axis < 3;
      cell.textContent = linear ? `${figure(values[axis] * 1000, 1)} mm` : `${figure((values[axis] * 180) / Math.PI, 2)}°`;
    }
  });
});
