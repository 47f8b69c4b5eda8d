// Snapshots and environments as files of the browser's machine: downloaded, and sent in the request.
//
// A snapshot is passed on as text: its whole numbers are larger than those of JavaScript.

import { call, fixed, notice, NotDone, orRefused, post, save, text } from "../../frame/api.js";

const LARGEST_FILE = 8_000_000; // bytes; the page takes requests of 8 MiB
const BEGINNING = '{"snapshot":';

// → a file that the user chooses; null if it is too large
function chosen(accept) {
  const field = Object.assign(document.createElement("input"), { type: "file", accept });
  field.dataset.mark = "chosen-file";
  field.hidden = true;
  document.body.append(field);
  field.click();
  return new Promise((resolve) => {
    field.addEventListener("cancel", () => field.remove());
    field.addEventListener("change", () => {
      field.remove();
      const file = field.files[0];
      if (file.size > LARGEST_FILE) notice(text("too_large"));
      resolve(file.size > LARGEST_FILE ? null : file);
    });
  });
}

function isJson(written) {
  try {
    JSON.parse(written);
    return true;
  } catch {
    return false;
  }
}

window.understudySetup = {
  download: () => orRefused(async () => {
    const answer = await post("snapshot", "{}");
    save(answer.slice(answer.indexOf(BEGINNING) + BEGINNING.length, answer.lastIndexOf("}")), "snapshot.json", "application/json");
  }),

  upload: () => orRefused(async () => {
    const file = await chosen(".json,application/json");
    if (!file) return;
    const snapshot = await file.text();
    if (!isJson(snapshot)) throw new NotDone(text("not_json", { file: file.name }));
    const { now_s } = JSON.parse(await post("restore", `${BEGINNING}${snapshot}}`));
    notice(text("restored", { seconds: fixed(now_s, 2) }), "positive");
  }),

  environment: () => orRefused(async () => {
    const file = await chosen(".yaml,.yml");
    if (!file) return;
    const { objects } = await call("load_environment", { text: await file.text() });
    notice(text("loaded", { count: objects.length }), "positive");
  }),
};
