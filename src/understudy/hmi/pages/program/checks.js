// The proof of a program, in a process of its own: begun, watched, cancelled; what it found goes
// beside the lines.

import { NotDone, run, words } from "./api.js";

const CLOSE_MM = 5;

export class Checks {
  // found(result) when there is one; goTo(line) when somebody wants to see a violation
  constructor(place, { found, goTo }) {
    Object.assign(this, { place, found, goTo, run: null, result: null, glanced: [] });
    this.part = (name) => place.querySelector(`[data-check=${name}]`);
    this.part("cancel").addEventListener("click", () => this.cancel());
    this.show();
  }

  async begin(robot, text, name) {
    if (this.run) return;
    this.forget();
    const mine = (this.run = { progress: 0 });
    this.show();
    const told = (now) => {
      if (this.run !== mine || mine.unwanted) return false; // the text is another by now, or enough
      Object.assign(mine, now);
      return this.show();
    };
    try {
      const result = await run("validate", { robot, text, name }, told);
      if (this.run === mine) this.end(result ? "" : words("cancelled"), result);
    } catch (problem) {
      if (!(problem instanceof NotDone)) throw problem;
      if (this.run === mine) this.end(words(problem.message), null);
    }
  }

  // What the look ahead has found, until somebody asks for a proof.
  glance(violations) {
    if (this.result || this.run) return;
    this.glanced = violations;
    this.show();
  }

  // Also before the run has begun.
  cancel() {
    if (this.run) this.run.unwanted = true;
  }

  end(error, result) {
    Object.assign(this, { run: null, error, result });
    this.show();
    if (result) this.found(result);
  }

  forget() {
    Object.assign(this, { error: "", result: null, glanced: [], run: null });
    this.show();
  }

  // ── what is seen ──

  show() {
    const { run, result, error, glanced } = this;
    this.place.classList.toggle("u-checking", Boolean(run));
    this.part("bar").style.setProperty("--done", run?.progress || 0);
    this.part("verdict").className = `u-verdict ${result ? `u-${result.verdict}` : error || glanced.length ? "u-fail" : ""}`;
    this.part("verdict").textContent = this.saying();
    this.part("list").replaceChildren(...(result?.violations || glanced).map((each) => this.row(each)));
  }

  saying() {
    if (this.run) return `${words("checking")} ${Math.round((this.run.progress || 0) * 100)} %`;
    if (this.result) return summary(this.result);
    const seen = this.glanced.length ? ` · ${words("violations").replace("{count}", this.glanced.length)}` : "";
    return (this.error || words("unchecked")) + seen;
  }

  row({ line, kind, message }) {
    const row = document.createElement("button");
    row.className = `u-violation u-kind-${kind}`;
    row.dataset.line = line;
    const said = message.replace(/^line \d+(, column \d+)?: /, "");
    for (const [name, text] of [["u-line", line], ["u-kind", words(`kind_${kind}`)], ["u-words", said]]) {
      row.appendChild(Object.assign(document.createElement("span"), { className: name, textContent: text }));
    }
    row.addEventListener("click", () => this.goTo(line));
    return row;
  }
}

function summary(result) {
  const count = result.violations.length;
  const verdict = count ? words("violations").replace("{count}", count) : words("sound");
  const clear = (result.lines || []).map(({ clearance_mm: mm }) => mm).filter((mm) => Number.isFinite(mm));
  const closest = clear.length ? ` · ${words("closest").replace("{mm}", Math.min(...clear).toFixed(1))}` : "";
  const time = result.cycle_time ? ` · ${result.cycle_time.total_s.toFixed(2)}\u00a0s` : "";
  return verdict + closest + time;
}

// → what the editor shows beside its lines
export function marksOf(result) {
  const violations = new Map();
  for (const { line, message } of result.violations) if (!violations.has(line)) violations.set(line, message);
  const clearances = new Map();
  for (const { line, clearance_mm: mm, proven } of result.lines || []) {
    if (!Number.isFinite(mm)) continue;
    const kind = proven === false ? "u-unproven" : mm < CLOSE_MM ? "u-close" : "u-clear";
    clearances.set(line, { text: `${proven === false ? "? " : ""}${mm < 10 ? mm.toFixed(1) : mm.toFixed(0)} mm`, kind });
  }
  return { violations, clearances };
}
