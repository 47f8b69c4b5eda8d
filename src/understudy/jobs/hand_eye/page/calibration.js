// The calibration page: the camera's view with the target in it, joints, table of poses, residuals
// and coverage. The view is asked for again when the robot, the camera or the poses have changed.

import { call, expose, fixed, ofCell, text, whenReady, whileVisible } from "../../frame/api.js";
import { add, html } from "../../frame/elements.js";
import { feed } from "../../frame/feed.js";
import { coverage, poseTable, residuals } from "./poses.js";
import { TargetView } from "./target_view.js";

const LOOK_MS = 500;
const REFRESH_MS = 5000; // things in the cell may have moved
const JOINTS_MS = 200;
const DEGREES = 180 / Math.PI;

// A panel that is not shown is not in the document: its elements are known from before.
const known = new Map();
function mark(name) {
  const found = document.querySelector(`[data-mark="${name}"]`);
  if (found) known.set(name, found);
  return known.get(name);
}

const degrees = (angle) => `${fixed(angle * DEGREES, 1)}°`;

class Calibration {
  constructor() {
    this.facts = null;
    this.shown = {}; // name of a part of the page → what it was drawn from
    this.view = new TargetView(mark("preview"));
    this.looked = { key: "", at: -Infinity };
    this.showsDepth = false;
    this.joints = [];
    this.jointsAt = 0;
    this.ends = [feed.onFrame((frame) => this.showJoints(frame)), whileVisible(LOOK_MS, () => this.look())];
    this.observer = new ResizeObserver(() => this.showResiduals());
    this.observer.observe(mark("residuals"));
    this.showFound();
  }

  // Facts of the chosen robot: page.py.
  show(facts) {
    if (facts.robot !== this.facts?.robot) [this.looked.key, this.joints] = ["", []];
    this.facts = facts;
    const { job } = facts;
    if (!job) return;
    mark("pose-count").textContent = text("count", job);
    this.draw("poses", [job.poses], () => poseTable(mark("poses"), job.poses));
    this.showResiduals();
    this.draw("coverage", [job.coverage], () => this.showCoverage(job.coverage));
    this.showSteps();
  }

  // Calls `work` if the values differ from those of the last call.
  draw(name, values, work) {
    const key = JSON.stringify(values);
    if (this.shown[name] === key) return;
    this.shown[name] = key;
    work();
  }

  showResiduals() {
    const { poses } = this.facts?.job ?? {};
    const place = mark("residuals");
    if (poses && place.clientWidth) this.draw("residuals", [poses, place.clientWidth], () => residuals(place, poses));
  }

  showCoverage(rows) {
    coverage(mark("coverage"), rows);
    const missing = rows.filter((row) => row.missing).map(({ direction }) => direction);
    mark("coverage-advice").textContent = missing.length ? text("missing", { directions: missing.join(", ") }) : text("covered");
  }

  // ── the robot ──

  showJoints(frame) {
    const q = frame.robots?.[this.facts?.robot]?.q;
    if (!q || performance.now() - this.jointsAt < JOINTS_MS) return;
    this.jointsAt = performance.now();
    this.joints = [...q];
    this.draw("joints", [this.facts.robot, ...this.joints.map(degrees)], () => {
      mark("joints").replaceChildren(...this.joints.map((angle, n) => this.joint(n, angle)));
    });
  }

  joint(n, angle) {
    const place = html("div");
    add(place, "span", "", `J${n + 1}`).title = this.facts.joints[n] ?? "";
    add(place, "b", "", degrees(angle));
    return place;
  }

  // ── the camera ──

  async look() {
    const { robot, camera, job } = this.facts ?? {};
    if (!robot) return;
    const key = JSON.stringify([robot, camera, job.captured, this.showsDepth, this.joints.map((q) => fixed(q, 4))]);
    if (key === this.looked.key && performance.now() - this.looked.at < REFRESH_MS) return;
    const seen = await call("hand_eye_view", { robot, depth: this.showsDepth }).catch((problem) => problem.refused && { reason: problem.message, found: false });
    if (!seen) return; // the frame shows that the cell does not answer
    if (this.closed || this.facts.robot !== robot) return;
    this.looked = { key, at: performance.now() };
    this.view.show(seen);
    this.showFound();
    this.showSteps();
  }

  showFound() {
    const seen = this.view.seen;
    const place = mark("detected");
    place.textContent = seen?.found === null || !seen ? "" : text(seen.found ? "detected" : "not_detected");
    place.classList.toggle("u-calm", Boolean(seen?.found));
    mark("not-detected").textContent = this.words(seen);
  }

  // What is beside the mark: number of corners, why the target is not found, or the distances.
  words(seen) {
    if (!seen) return text("no_view");
    if (seen.found === null) return text("range", { near: fixed(seen.nearest_mm, 0), far: fixed(seen.farthest_mm, 0) });
    const corners = seen.found ? text("corners", { count: seen.corners.length }) : "";
    return [corners, ofCell(seen.reason ?? "")].filter(Boolean).join(" · ");
  }

  // ── the four steps ──

  showSteps() {
    const { job, result } = this.facts ?? {};
    if (!job) return;
    const covered = job.enough && !job.coverage.some((row) => row.missing);
    const done = {
      place: Boolean(this.view.seen?.found) || job.captured > 0,
      capture: result || covered,
      compute: result,
      validate: result && job.checked.length > 0 && !job.doubts.length,
    };
    const next = Object.keys(done).find((name) => !done[name]);
    for (const step of document.querySelectorAll("[data-step]")) {
      const { step: name } = step.dataset;
      step.classList.toggle("u-done", done[name]);
      step.classList.toggle("u-next", name === next);
      step.toggleAttribute("aria-current", name === next);
    }
    this.steps = { done: Object.keys(done).filter((name) => done[name]), next: next ?? null };
  }

  // ── calls of buttons ──

  depth() {
    this.showsDepth = !this.showsDepth;
    mark("calib-depth").classList.toggle("u-chosen", this.showsDepth);
    this.look();
  }

  close() {
    this.closed = true;
    for (const end of this.ends) end();
    this.observer.disconnect();
    this.view.close();
  }

  report() {
    const { job, robot } = this.facts ?? {};
    return { ready: Boolean(job), robot, steps: this.steps, captured: job?.captured, view: this.view.report(), joints: this.joints };
  }
}

const ready = expose("calibration", ["show", "depth"], { report: () => null });
whenReady("#calibration-page", () => ready(new Calibration()));
