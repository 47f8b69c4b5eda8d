// The dialog of programs and projects: open a shipped or an own program, save it, save and load the
// project folder.

import { ask, notice, text } from "../../frame/api.js";
import { openDialog } from "../../frame/dialog.js";
import { add, button, html } from "../../frame/elements.js";

const SOURCES = ["shipped", "project", "cell"];

// Opens the dialog. `opened({name, text})` gets the program that was chosen; `current()` → {name,
// text} of the editor, to be saved; `operator`: whether this browser may save and load.
export async function openLibrary(robot, { opened, current, operator }) {
  const listed = await ask("programs", { robot });
  if (!listed) return;
  const dialog = html("dialog", "u-library", "", { mark: "library" });
  add(dialog, "h2", "", text("library_title", { robot }));
  const rows = add(dialog, "div", "u-library-rows");
  for (const source of SOURCES) {
    const found = listed.programs.filter((row) => row.source === source);
    add(rows, "h3", "", text(`library_${source}`));
    if (!found.length) add(rows, "p", "u-caption", text("library_none"));
    for (const row of found) rows.append(programRow(dialog, robot, row, opened));
  }
  dialog.append(projectBar(dialog, robot, listed.project, current, operator));
  dialog.append(button("u-question-choice", text("library_close"), { mark: "library-close" }, () => dialog.close()));
  openDialog(dialog);
}

function programRow(dialog, robot, row, opened) {
  const made = button("u-library-row", "", { program: row.name }, async () => {
    const program = await ask("read_program", { robot, name: row.name, source: row.source });
    if (!program) return;
    dialog.close();
    opened(program);
  });
  add(made, "span", "u-library-name", row.name);
  add(made, "span", "u-caption", row[text("library_language")] || "");
  return made;
}

// ── the project folder ──

function projectBar(dialog, robot, folder, current, operator) {
  const bar = html("div", "u-library-project");
  add(bar, "h3", "", text("library_folder"));
  const field = add(bar, "input", "u-name", "", { mark: "project-folder" });
  field.value = folder;
  field.setAttribute("aria-label", text("library_folder"));
  const actions = {
    save_program: async () => {
      const saved = await ask("save_program", { robot, ...current() });
      if (saved) done(dialog, text("library_saved", { file: saved.file }));
    },
    save_project: async () => {
      const saved = await ask("save_project", { folder: field.value });
      if (saved) done(dialog, text("library_saved", { file: saved.folder }));
    },
    load_project: async () => {
      const loaded = await ask("load_project", { folder: field.value });
      if (!loaded) return;
      done(dialog, text("library_loaded", { file: loaded.folder }));
      if (loaded.notes.length) notice(loaded.notes.join("\n"), "warning");
    },
  };
  const row = add(bar, "div", "u-question-choices");
  for (const [name, act] of Object.entries(actions)) {
    row.append(button("u-question-choice", text(`library_${name}`), { mark: name.replace("_", "-") }, act));
  }
  bar.inert = !operator;
  return bar;
}

function done(dialog, message) {
  dialog.close();
  notice(message, "positive");
}
