// Sliders that the user and the cell both move: `data-value` is the value of the cell,
// `data-answered` the number of the user's last change that the cell has answered. While the user
// drags a slider, or a change is not answered yet, values of the cell are older and not shown.

const changes = new WeakMap(); // slider → number of changes by the user
let dragged = null;

function showValue(slider) {
  const pending = (changes.get(slider) ?? 0) > Number(slider.dataset.answered);
  if (slider !== dragged && !pending && "value" in slider.dataset) slider.value = slider.dataset.value;
}

function release() {
  const slider = dragged;
  dragged = null;
  if (slider) setTimeout(() => showValue(slider)); // after its own `change`
}

const SLIDERS = ".u-slider[data-value]";
const sliders = (node) => (node.matches?.(SLIDERS) ? [node] : node.querySelectorAll?.(SLIDERS) ?? []);

new MutationObserver((mutations) => {
  for (const { target, type, addedNodes } of mutations) {
    if (type === "attributes") showValue(target);
    else for (const node of addedNodes) sliders(node).forEach(showValue);
  }
}).observe(document, { subtree: true, childList: true, attributeFilter: ["data-value", "data-answered"] });

window.addEventListener("pointerdown", ({ target }) => {
  if (target.matches?.("[data-answered]")) dragged = target;
}, true);
for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, release);

// Counts a change by the user → its number.
window.understudySlider = (slider) => {
  changes.set(slider, (changes.get(slider) ?? 0) + 1);
  return changes.get(slider);
};
