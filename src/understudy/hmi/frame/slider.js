// Sliders under two hands: `data-told` is what the cell says, `data-answered` the last turn of this
// hand that it has answered. While a hand is on the knob, or has turned it and is not answered yet,
// what is told is older than what was done, and not shown.

const turns = new WeakMap(); // slider → how often it was turned
let held = null;

function follow(slider) {
  const awaited = (turns.get(slider) ?? 0) > Number(slider.dataset.answered);
  if (slider !== held && !awaited && "told" in slider.dataset) slider.value = slider.dataset.told;
}

function letGo() {
  const slider = held;
  held = null;
  if (slider) setTimeout(() => follow(slider)); // after its own `change`
}

const sliders = (node) => (node.matches?.("[data-told]") ? [node] : node.querySelectorAll?.("[data-told]") ?? []);

new MutationObserver((changes) => {
  for (const { target, type, addedNodes } of changes) {
    if (type === "attributes") follow(target);
    else for (const node of addedNodes) sliders(node).forEach(follow);
  }
}).observe(document, { subtree: true, childList: true, attributeFilter: ["data-told", "data-answered"] });

window.addEventListener("pointerdown", ({ target }) => {
  if (target.matches?.("[data-answered]")) held = target;
}, true);
for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, letGo);

// The number of this turn.
window.understudySlider = (slider) => {
  turns.set(slider, (turns.get(slider) ?? 0) + 1);
  return turns.get(slider);
};
