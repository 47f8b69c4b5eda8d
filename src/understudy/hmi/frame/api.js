// Commands and queries of the cell from the browser, and what the scripts of all pages share.

import { question } from "./dialog.js";

const NOTICE_MS = 6000;
const OFFER_MS = 15000;
const POLL_MS = 250;
const SWITCHING_MS = 5000; // for drives to come on
const RETRY_MS = 1000;
const TIMED_OUT = 408;
const REVOKE_MS = 60000; // by then a slow browser has read the file
const ENDED = ["failed", "cancelled"];

// `refused`: the cell has answered; otherwise it was not reached, or did not answer in time.
export class NotDone extends Error {
  constructor(reason, refused = false, code = 0) {
    super(reason);
    Object.assign(this, { refused, code });
  }
}

// ── commands and queries ──

// → the cell's answer as text; throws NotDone with the reason of a refusal
export async function post(command, body) {
  let response, answer;
  try {
    response = await fetch(`/api/${command}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body,
    });
    answer = await response.text();
    if (response.ok) return answer;
    answer = JSON.parse(answer);
  } catch {
    throw new NotDone(command);
  }
  throw new NotDone(answer.message, response.status < 500 && response.status !== TIMED_OUT, answer.code);
}

export async function call(command, parameters = {}) {
  const answer = await post(command, JSON.stringify(parameters));
  try {
    return JSON.parse(answer);
  } catch {
    throw new NotDone(command);
  }
}

// The same; null, and a notice on the page, if it is refused.
export const ask = (command, parameters) => orRefused(() => call(command, parameters));

// → what `work` returns; null, and a notice on the page, if it throws NotDone
export async function orRefused(work) {
  try {
    return await work();
  } catch (problem) {
    if (!(problem instanceof NotDone)) throw problem;
    refused(problem.message);
    return null;
  }
}

// → the answer; null without one, if the next change or poll asks again
export async function answered(command, parameters) {
  try {
    return await call(command, parameters);
  } catch (problem) {
    console.debug(problem);
    return null;
  }
}

// → the answer to a query that is asked again, as long as it is `wanted()`, until the cell answers;
// null if it is refused, or not wanted any more
export async function persist(query, parameters, wanted, onRefusal = refused) {
  while (wanted()) {
    try {
      return await call(query, parameters);
    } catch (problem) {
      if (!(problem instanceof NotDone)) throw problem;
      if (problem.refused) {
        onRefusal(problem.message);
        return null;
      }
    }
    await new Promise((next) => setTimeout(next, RETRY_MS));
  }
  return null;
}

// → the result of a background run; throws NotDone if it fails. Calls `progress(run)` while it
// runs; if that returns false, the run is cancelled and the result is null.
export async function run(kind, parameters, progress) {
  let now = await call("start_run", { kind, parameters });
  let result = null;
  while (now.state !== "done") {
    if (ENDED.includes(now.state)) throw new NotDone(now.error || now.state);
    if (progress(now) === false) {
      await call("cancel_run", { id: now.id });
      return null;
    }
    await new Promise((next) => setTimeout(next, POLL_MS));
    ({ run: now, result } = await call("run_result", { id: now.id }));
  }
  return result;
}

// ── orders that start a motion ──

// Sends a command that starts a motion. If it is refused because the drives are off or the cell is
// stopped, the user is asked once; then this is done and the command sent again.
// `more(problem)`: → further parameters after a refusal that has a question of its own; null if the
// user does not want them; undefined if it has none.
// → the answer; null if the user does not want it, or, with a notice, if it is refused
export async function order(command, given = {}, more = () => undefined) {
  const frame = frameData();
  const robot = given.robot ?? frame.robot;
  const done = new Map(); // remedy → when it was done
  let parameters = { robot, ...given };
  for (;;) {
    try {
      return await call(command, parameters);
    } catch (problem) {
      if (!(problem instanceof NotDone)) throw problem;
      const remedy = remedyOf(problem.message);
      const further = remedy ? undefined : await more(problem);
      if (further === null) return null;
      if (further) parameters = { ...parameters, ...further };
      else if (remedy && performance.now() - (done.get(remedy.command) ?? -Infinity) < SWITCHING_MS) {
        await new Promise((next) => setTimeout(next, POLL_MS)); // a REAL robot takes some time
      } else if (!remedy || done.has(remedy.command)) {
        refused(problem.message);
        return null;
      } else {
        if (!done.size && !(await agrees(remedy, robot))) return null;
        done.set(remedy.command, performance.now());
        if (!(await accept(remedy, robot))) return null;
      }
    }
  }
}

async function agrees({ question: words, answer }, robot) {
  const { cancel, realHint } = frameData();
  const details = document.body.classList.contains("u-real") ? realHint : "";
  const choices = [["yes", answer, "u-go"], ["", cancel]];
  return Boolean(await question({ title: filled(words, { robot }), details, choices, mark: "run-anyway" }));
}

const frameData = () => document.querySelector("[data-mark=refusals]").dataset;

const remedyOf = (reason) => JSON.parse(frameData().remedies).find((each) => reason.includes(each.reason));

const accept = ({ command }, robot) => ask(command, command === "start" ? {} : { robot });

// ── files and notices ──

// Downloads a text as a file.
export function save(content, name, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_MS);
}

// A notice in the corner, with × to close it; it is gone when its page is left.
// `type`: negative, warning, positive, info; `actions`: buttons of Quasar → function that closes it
export function notice(message, type = "negative", { actions = [], timeout = NOTICE_MS, ...options } = {}) {
  const close = { icon: "close", round: true, "aria-label": frameData().close };
  const dismiss = Quasar.Notify.create({
    message, timeout, icon: ICONS[type], classes: `u-note u-note-${type}`, position: "bottom-right", actions: [...actions, close], ...options,
  });
  notices.push(dismiss);
  return dismiss;
}

export function dismissNotices() {
  for (const dismiss of notices.splice(0)) dismiss();
}

const ICONS = { negative: "error", warning: "warning", positive: "check_circle", info: "info" };
const notices = [];

// Shows a refusal of the cell, with a button where the frame offers a remedy: drives off → drives on.
export function refused(reason) {
  const { notDone, robot } = frameData();
  const offer = remedyOf(reason);
  const actions = offer ? [{ label: offer.label, noCaps: true, handler: () => accept(offer, robot) }] : [];
  const message = filled(notDone, { reason: ofCell(reason) });
  notice(message, "negative", { actions, timeout: offer ? OFFER_MS : NOTICE_MS });
}

// → a sentence of the cell in the page's language: known English phrases are translated, a {field}
// of a phrase stands for any words and is kept; the rest stays.
export function ofCell(reason) {
  const words = JSON.parse(frameData().words);
  const longestFirst = Object.entries(words).sort(([one], [other]) => other.length - one.length);
  for (const [phrase, translation] of longestFirst) {
    const pattern = phrase.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/{(\w+)}/g, "(?<$1>.+?)");
    reason = reason.replace(new RegExp(pattern), (...match) => filled(translation, match.at(-1)));
  }
  return reason;
}

// ── texts and figures ──

// → the text of a key in the page's language, with its {fields} filled in; the server writes the
// texts into `data-texts`
export function text(key, fields = {}) {
  const element = document.querySelector("[data-texts]");
  if (element && element !== textsOf) [textsOf, texts] = [element, JSON.parse(element.dataset.texts)];
  return filled(texts[key] ?? key, fields);
}

export const filled = (words, fields) => words.replace(/{(\w+)}/g, (all, name) => fields[name] ?? all);

let textsOf = null; // the element of the page whose texts these are
let texts = {};

// → a number with this many decimals; a value that rounds to zero has no sign
export const fixed = (value, digits) => value.toFixed(digits).replace(/^-(0(?:\.0+)?)$/, "$1");

// → zoom of words and buttons on this screen: frame.css
export const largeness = () => Number(getComputedStyle(document.documentElement).getPropertyValue("--large")) || 1;

// ── the script of a page ──

// Calls `work` periodically while the page is visible; one call at a time. → function that ends this
export function whileVisible(milliseconds, work) {
  let ended = false;
  const round = async () => {
    if (!document.hidden) await work().catch((problem) => console.debug(problem));
    if (!ended) setTimeout(round, milliseconds);
  };
  round();
  return () => (ended = true);
}

// Calls `build(element)` for every element with this selector that appears: one is built for every
// visit of its page. What `build` returns is called when the element is gone. Waits until the page's
// socket is connected: building can keep a slow machine busy, and a page that connects too late
// counts as closed.
export function whenReady(selector, build) {
  watched.push({ selector, build, element: null, end: null });
  check();
}

const CONNECTING_MS = 50;
const watched = [];
let waiting = 0;

function check() {
  for (const watch of watched) {
    if (watch.element?.isConnected) continue;
    if (watch.element) watch.end?.();
    [watch.element, watch.end] = [null, null];
    const element = document.querySelector(watch.selector);
    if (!element) continue;
    if (!window.socket?.connected) return checkLater();
    watch.element = element;
    watch.end = watch.build(element);
  }
}

function checkLater() {
  clearTimeout(waiting);
  waiting = setTimeout(check, CONNECTING_MS);
}

new MutationObserver(check).observe(document, { childList: true, subtree: true });

// Offers an object to the buttons of its page as `window[name]`. Calls that they make before it is
// built are queued, and made in their order when it is.
// → ready(object): from then on `window[name]` is the object itself. `ready` returns a function that
// ends the object (its `close`, if it has one); calls are queued again from then on.
export function expose(name, calls, defaults = {}) {
  let queue = [];
  const queued = (call) => [call, (...args) => void queue.push([call, args])];
  const waiting = { ...Object.fromEntries(calls.map(queued)), ...defaults };
  window[name] = waiting;
  return (object) => {
    window[name] = object;
    for (const [call, args] of queue) object[call](...args);
    queue = [];
    return () => {
      object.close?.();
      window[name] = waiting;
    };
  };
}

// Calls `changed` when the user types. Escape is the stop key here too; the browser would also clear
// the field, and with it what it filters.
export function onSearch(field, changed) {
  field.addEventListener("input", changed);
  field.addEventListener("keydown", (event) => event.key === "Escape" && event.preventDefault());
}
