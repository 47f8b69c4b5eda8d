// The cell's desk from the browser: one command, its answer; a notice where it will not.

const NOTICE_MS = 6000;
const LOOK_MS = 250;
const SAVING_MS = 60000; // by then a slow browser has read it
const OVER = ["failed", "cancelled"];

export class NotDone extends Error {}

// → what the cell answers; throws NotDone with its words
export async function call(command, parameters = {}) {
  let answer;
  try {
    answer = await fetch(`/api/${command}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(parameters),
    });
  } catch {
    throw new NotDone(command);
  }
  const told = await answer.json();
  if (!answer.ok) throw new NotDone(told.message);
  return told;
}

// The same; null, and a notice on the page, where it will not.
export async function ask(command, parameters) {
  try {
    return await call(command, parameters);
  } catch (problem) {
    return notDone(problem);
  }
}

// What was not done is said; anything else is a bug, and goes on.
function notDone(problem) {
  if (!(problem instanceof NotDone)) throw problem;
  notice(words("not_done").replace("{reason}", problem.message));
  return null;
}

// A long query in a process of its own: its result, or NotDone. `told(run)` hears of its progress;
// who answers false waits for it no more, and it is ended.
export async function run(kind, parameters, told) {
  let now = await call("start_run", { kind, parameters });
  let result = null;
  while (now.state !== "done") {
    if (OVER.includes(now.state)) throw new NotDone(now.error || now.state);
    if (told(now) === false) {
      await call("cancel_run", { id: now.id });
      return null;
    }
    await new Promise((next) => setTimeout(next, LOOK_MS));
    ({ run: now, result } = await call("run_result", { id: now.id }));
  }
  return result;
}

// A file for the person in front of the browser.
export function save(text, name, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVING_MS);
}

export function notice(message, type = "negative") {
  Quasar.Notify.create({ message, type, position: "top", timeout: NOTICE_MS, multiLine: true });
}

// The page's words, in its language; the server puts them there.
export function words(key) {
  known ??= JSON.parse(document.querySelector("[data-words]").dataset.words);
  return known[key] ?? key;
}

let known = null;

// Call `work` again and again while somebody can see it; one at a time.
export function whileSeen(milliseconds, work) {
  const round = async () => {
    if (!document.hidden) await work().catch((problem) => console.debug(problem));
    setTimeout(round, milliseconds);
  };
  round();
}

// After the page's own socket has come up: what is built here can keep a slow machine busy.
export function onceThere(selector, build) {
  const place = document.querySelector(selector);
  if (place && window.socket?.connected) build(place);
  else setTimeout(() => onceThere(selector, build), 50);
}
