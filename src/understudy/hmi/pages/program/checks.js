// Validation of a program as a background run: start, progress, cancel, list of violations and warnings.

import { fixed, NotDone, run, text } from "../../frame/api.js";
import { add, button, html } from "../../frame/elements.js";

const CLOSE_MM = 5;
const MOST_ROWS = 300; // of the list: a program can have a finding on each of its lines

export class Checks {
  // calls found(result) at the end, goTo(line) when a violation is clicked
  constructor(element, { found, goTo }) {
    Object.assign(this, { element, found, goTo, run: null, result: null, previewed: [], live: [] });
    this.part = (name) => element.querySelector(`[data-check=${name}]`);
    this.part("cancel").addEventListener("click", () => this.cancel());
    this.show();
  }

  async start(robot, program, name) {
    if (this.run) return;
    this.clear();
    const mine = (this.run = { progress: 0 });
    this.show();
    const progress = (now) => {
      if (this.run !== mine || mine.cancelled) return false; // the text was changed, or cancelled
      Object.assign(mine, now);
      return this.show();
    };
    try {
      const result = await run("validate", { robot, text: program, name }, progress);
      if (this.run === mine) this.end(result ? "" : text("cancelled"), result);
    } catch (problem) {
      if (!(problem instanceof NotDone)) throw problem;
      if (this.run === mine) this.end(text(problem.message), null);
    }
  }

  // Violations that the preview has found, shown until the program is validated.
  showPreviewed(violations) {
    if (this.result || this.run) return;
    this.previewed = violations;
    this.show();
  }

  // Problems of the text as it is typed: the first one, without a list that moves the lines.
  showLive(problems) {
    this.live = problems;
    this.show();
  }

  // Works also before the cell has started the run.
  cancel() {
    if (this.run) this.run.cancelled = true;
  }

  // The page is left: the run goes on in the cell, its result is not shown.
  close() {
    this.run = null;
  }

  end(error, result) {
    Object.assign(this, { run: null, error, result });
    this.show();
    if (result) this.found(result);
  }

  clear() {
    Object.assign(this, { error: "", result: null, previewed: [], live: [], run: null });
    this.show();
  }

  show() {
    const { run, result, error, previewed, live } = this;
    this.element.classList.toggle("u-checking", Boolean(run));
    this.part("bar").style.setProperty("--done", run?.progress || 0);
    this.part("verdict").className = `u-verdict ${result ? `u-${result.verdict}` : error || previewed.length || live.length ? "u-fail" : ""}`;
    this.part("verdict").textContent = this.summary();
    this.part("list").replaceChildren(...this.rows(result?.violations || previewed, result?.warnings || []));
  }

  rows(violations, warnings) {
    const rows = violations.slice(0, MOST_ROWS).map((each) => this.row(each));
    rows.push(...warnings.slice(0, MOST_ROWS - rows.length).map((each) => this.row(each, "u-warned")));
    const count = violations.length + warnings.length - rows.length;
    return count ? [...rows, html("div", "u-more", text("more", { count }))] : rows;
  }

  summary() {
    if (this.run) return `${text("checking")} ${Math.round((this.run.progress || 0) * 100)} %`;
    if (this.result) return resultText(this.result);
    if (this.live.length) return liveText(this.live);
    const found = this.previewed.length ? ` · ${text("violations", { count: this.previewed.length })}` : "";
    return (this.error || text("not_checked")) + found;
  }

  row({ line, kind, message }, level = "") {
    const row = button(`u-violation u-kind-${kind} ${level}`, "", { line }, () => this.goTo(line));
    add(row, "span", "u-line", line);
    add(row, "span", "u-kind", text(`violation_${kind}`));
    add(row, "span", "u-message", message.replace(/^line \d+(, column \d+)?: /, ""));
    return row;
  }
}

function liveText([{ line, message }, ...others]) {
  const more = others.length ? ` · ${text("more", { count: others.length })}` : "";
  return `${text("line", { line })}: ${message}${more}`;
}

function resultText(result) {
  const count = result.violations.length;
  const warned = result.warnings.length ? ` · ${text("warnings", { count: result.warnings.length })}` : "";
  const verdict = (count ? text("violations", { count }) : text("passed")) + warned;
  const clear = (result.lines || []).map(({ clearance_mm: mm }) => mm).filter((mm) => Number.isFinite(mm));
  const closest = clear.length ? ` · ${text("closest", { mm: fixed(Math.min(...clear), 1) })}` : "";
  const time = result.cycle_time ? ` · ${fixed(result.cycle_time.total_s, 2)}\u00a0s` : "";
  return verdict + closest + time;
}

// → the marks of the editor: violations and clearances by line
export function marksOf(result) {
  const violations = new Map();
  for (const { line, message } of result.violations) if (!violations.has(line)) violations.set(line, message);
  const clearances = new Map();
  for (const { line, clearance_mm: mm, proven } of result.lines || []) {
    if (!Number.isFinite(mm)) continue;
    const kind = proven === false ? "u-unproven" : mm < CLOSE_MM ? "u-close" : "u-clear";
    clearances.set(line, { text: `${proven === false ? "? " : ""}${mm < 10 ? fixed(mm, 1) : fixed(mm, 0)} mm`, kind });
  }
  return { violations, clearances };
}
