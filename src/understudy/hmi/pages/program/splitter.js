// Divider between the editor and the scene: dragged, or moved with the arrow keys. Its place is kept
// in this browser.

import { whenReady } from "../../frame/api.js";

const KEY = "program source width";
const STEP_PX = 24;
const LEAST_PX = 300; // of the editor, and of the scene
const STACKED = window.matchMedia("(max-width: 1200px)"); // the scene is above manual operation

whenReady(".u-splitter", (splitter) => {
  const page = splitter.parentElement;
  const source = page.querySelector(".u-source");

  const move = (width) => {
    const beside = STACKED.matches ? 0 : page.querySelector(".u-manual").clientWidth;
    const most = page.clientWidth - LEAST_PX - beside;
    const wanted = Math.round(Math.min(Math.max(width, LEAST_PX), Math.max(most, LEAST_PX)));
    page.style.setProperty("--source", `${wanted}px`);
    localStorage.setItem(KEY, wanted);
  };

  if (localStorage.getItem(KEY)) move(Number(localStorage.getItem(KEY)));
  splitter.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    splitter.setPointerCapture(event.pointerId);
  });
  splitter.addEventListener("pointermove", (event) => {
    if (splitter.hasPointerCapture(event.pointerId)) move(event.clientX - source.getBoundingClientRect().left);
  });
  splitter.addEventListener("keydown", ({ key }) => {
    const step = { ArrowLeft: -STEP_PX, ArrowRight: STEP_PX }[key];
    if (step) move(source.clientWidth + step);
  });
  splitter.addEventListener("dblclick", () => {
    page.style.removeProperty("--source");
    localStorage.removeItem(KEY);
  });
});
