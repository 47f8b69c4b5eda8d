// A dialog that asks the user to choose. Escape stops the robots (keys.js) and chooses nothing.

import { openDialog } from "./dialog.js";

// `choices`: [[answer, text, kind], …], the first one has the focus → the answer, or null
export function question({ title, details = "", choices, mark }) {
  const dialog = Object.assign(document.createElement("dialog"), { className: "u-question" });
  dialog.dataset.mark = mark;
  dialog.appendChild(document.createElement("h2")).textContent = title;
  dialog.appendChild(document.createElement("p")).textContent = details;
  const row = dialog.appendChild(document.createElement("div"));
  row.className = "u-question-choices";
  for (const [answer, text, kind = ""] of choices) row.append(choiceButton(dialog, answer, text, kind));
  openDialog(dialog);
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue || null);
  }));
}

function choiceButton(dialog, answer, text, kind) {
  const button = Object.assign(document.createElement("button"), { textContent: text, className: `u-question-choice ${kind}` });
  button.dataset.answer = answer;
  button.addEventListener("click", () => dialog.close(answer));
  return button;
}
