// Opens a dialog below the header, so that mouse and touch still reach E-STOP. A modal dialog of the
// browser would make everything else inert.

export function openDialog(dialog) {
  const cover = Object.assign(document.createElement("div"), { className: "u-cover" });
  const close = ({ key }) => key === "Escape" && dialog.close();
  document.body.append(cover, dialog);
  window.addEventListener("keydown", close);
  dialog.addEventListener("close", () => {
    cover.remove();
    window.removeEventListener("keydown", close);
  });
  dialog.show();
}
