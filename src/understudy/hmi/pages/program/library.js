// The dialog of programs and projects: open a shipped or an own program, save it, save and load the
// project folder.

import { ask, notice, text } from "../../frame/api.js";
import { openDialog } from "../../frame/dialog.js";

const SOURCES = ["shipped", "project", "cell"];

function element(tag, className, content = "", mark = "") {
  const made = Object.assign(document.createElement(tag), { className, textContent: content });
  if (mark) made.dataset.mark = mark;
  return made;
}

// Opens the dialog. `opened({name, text})` gets the program that was chosen; `current()` → {name,
// text} of the editor, to be saved; `operator`: whether this browser may save and load.
export async function openLibrary(robot, { opened, current, operator }) {
  const listed = await ask("programs", { robot });
  if (!listed) return;
  const dialog = element("dialog", "u-library", "", "library");
  dialog.append(element("h2", "", text("library_title").replace("{robot}", robot)));
  const rows = dialog.appendChild(element("div", "u-library-rows"));
  for (const source of SOURCES) {
    const found = listed.programs.filter((row) => row.source === source);
    rows.append(element("h3", "", text(`library_${source}`)));
    if (!found.length) rows.append(element("p", "u-caption", text("library_none")));
    for (const row of found) rows.append(programRow(dialog, robot, row, opened));
  }
  dialog.append(projectBar(dialog, robot, listed.project, current, operator));
  const close = dialog.appendChild(element("button", "u-question-choice", text("library_close"), "library-close"));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  openDialog(dialog);
}

function programRow(dialog, robot, row, opened) {
  const button = element("button", "u-library-row");
  button.dataset.program = row.name;
  button.append(element("span", "u-library-name", row.name), element("span", "u-caption", row[text("library_language")] || ""));
  button.addEventListener("click", async () => {
    const program = await ask("read_program", { robot, name: row.name, source: row.source });
    if (!program) return;
    dialog.close();
    opened(program);
  });
  return button;
}

// ── the project folder ──

function projectBar(dialog, robot, folder, current, operator) {
  const bar = element("div", "u-library-project");
  bar.append(element("h3", "", text("library_folder")));
  const field = bar.appendChild(element("input", "u-name", "", "project-folder"));
  field.value = folder;
  field.setAttribute("aria-label", text("library_folder"));
  const actions = {
    save_program: async () => {
      const saved = await ask("save_program", { robot, ...current() });
      if (saved) done(dialog, text("library_saved").replace("{file}", saved.file));
    },
    save_project: async () => {
      const saved = await ask("save_project", { folder: field.value });
      if (saved) done(dialog, text("library_saved").replace("{file}", saved.folder));
    },
    load_project: async () => {
      const loaded = await ask("load_project", { folder: field.value });
      if (!loaded) return;
      done(dialog, text("library_loaded").replace("{file}", loaded.folder));
      if (loaded.notes.length) notice(loaded.notes.join("\n"), "warning");
    },
  };
  const row = bar.appendChild(element("div", "u-question-choices"));
  for (const [name, act] of Object.entries(actions)) {
    const button = row.appendChild(element("button", "u-question-choice", text(`library_${name}`), name.replace("_", "-")));
    button.addEventListener("click", act);
  }
  bar.inert = !operator;
  return bar;
}

function done(dialog, message) {
  dialog.close();
  notice(message, "positive");
}
