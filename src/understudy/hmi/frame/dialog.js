// Dialogs of scripts.

import { add, button, html } from "./elements.js";

// Opens a dialog below the header, so that mouse and touch still reach E-STOP. A modal dialog of the
// browser would make everything else inert.
export function openDialog(dialog) {
  const cover = html("div", "u-cover");
  const close = ({ key }) => key === "Escape" && dialog.close();
  document.body.append(cover, dialog);
  window.addEventListener("keydown", close);
  dialog.addEventListener("close", () => {
    cover.remove();
    dialog.remove();
    window.removeEventListener("keydown", close);
  });
  dialog.show();
}

// Asks the user to choose. Escape chooses nothing.
// `choices`: [[answer, text, kind], …], the first one has the focus → the answer, or null
export function question({ title, details = "", choices, mark }) {
  const dialog = html("dialog", "u-question", "", { mark });
  add(dialog, "h2", "", title);
  add(dialog, "p", "", details);
  const row = add(dialog, "div", "u-question-choices");
  for (const [answer, words, kind = ""] of choices) {
    row.append(button(`u-question-choice ${kind}`, words, { answer }, () => dialog.close(answer)));
  }
  openDialog(dialog);
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue || null)));
}
