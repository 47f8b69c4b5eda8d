// Jog buttons, by pointer or by keys: events while a button is held, so that the jog ends when they
// stop.

import { fixed, whenReady } from "../../frame/api.js";
import { feed } from "../../frame/feed.js";
import { isOpen, isTextField, isUsable } from "../../frame/keys.js";

const KEEP_ALIVE_MS = 100;
const FIGURES_MS = 100;

whenReady("#axes", (element) => {
  let held = null;
  let heldKey = ""; // empty while a pointer holds the button
  let timer = 0;
  let shown = 0;

  const release = () => {
    if (!held) return;
    clearInterval(timer);
    held.classList.remove("u-held-button");
    held = null;
    heldKey = "";
    emitEvent("jog_end");
  };

  const begin = (button) => {
    held = button;
    button.classList.add("u-held-button");
    const [{ robot, frame }, { jog, direction }] = [element.dataset, button.dataset];
    emitEvent("jog_begin", { robot, frame, axis: Number(jog), direction: Number(direction) });
    timer = setInterval(() => emitEvent("jog_hold"), KEEP_ALIVE_MS);
  };

  element.addEventListener("pointerdown", (event) => {
    const button = event.target.closest("[data-jog]");
    if (!button || held || event.button) return;
    event.preventDefault();
    button.setPointerCapture(event.pointerId);
    begin(button);
  });
  // On the document: the button may have been removed meanwhile.
  const page = new AbortController();
  const { signal } = page;
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) document.addEventListener(end, release, { signal });
  element.addEventListener("contextmenu", (event) => event.preventDefault());
  window.addEventListener("blur", release, { signal });
  document.addEventListener("visibilitychange", release, { signal });

  // By keys: Shift and a letter, one axis at a time. Shift is the enabling key.
  window.addEventListener("keydown", (event) => {
    if (held || event.repeat || !event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    if (isTextField(event.target) || isOpen()) return;
    const button = element.querySelector(`[data-hold-key="${CSS.escape(event.code)}"]`);
    if (!button || !isUsable(button)) return;
    event.preventDefault();
    heldKey = event.code;
    begin(button);
  }, { signal });
  window.addEventListener("keyup", ({ code, key }) => {
    if (heldKey && (code === heldKey || key === "Shift")) release();
  }, { signal, capture: true });
  window.addEventListener("keydown", ({ key }) => key === "Escape" && release(), { signal, capture: true });
  window.addEventListener("focusin", ({ target }) => isTextField(target) && release(), { signal });

  // Positions of the joints, or of the tool.
  const endFrames = feed.onFrame((frame) => {
    const robot = frame.robots[element.dataset.robot];
    if (!robot || performance.now() - shown < FIGURES_MS) return;
    shown = performance.now();
    const joint = element.dataset.frame === "joint" && robot.q.length;
    const values = joint ? robot.q : robot.tcp;
    for (const cell of element.querySelectorAll("[data-figure]")) {
      const axis = Number(cell.dataset.figure);
      const linear = joint ? (robot.linear || []).includes(axis) : axis < 3;
      cell.textContent = linear ? `${fixed(values[axis] * 1000, joint ? 3 : 1)} mm` : `${fixed((values[axis] * 180) / Math.PI, 2)}°`;
    }
  });

  return () => {
    release();
    page.abort();
    endFrames();
  };
});
