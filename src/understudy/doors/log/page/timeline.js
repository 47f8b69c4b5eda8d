// Time line: recordings of the cell, and one instant of one of them in 3D, plot and journal.

import { answered, ask, expose, filled, fixed, notice, orRefused, call, save, text, whenReady, whileVisible } from "../../frame/api.js";
import { question } from "../../frame/dialog.js";
import { add, html } from "../../frame/elements.js";
import { feed } from "../../frame/feed.js";

const POLL_MS = 500;
const SHOWN_MARKS = ["alarm", "collision", "fault"];
const PLOT = { width: 1000, height: 90 };
const COLORS = ["#4a90d9", "#e5484d", "#46a758", "#e9a23b", "#8e4ec6", "#12a594", "#d6409f"];
const ARROWS = { ">": "→", "<": "←", "!": "•" };
const MIB = 1024 * 1024;

class TimeLine {
  constructor(element) {
    this.element = element;
    this.robot = element.dataset.robot;
    this.part = (name) => element.querySelector(`[data-timeline=${name}]`);
    this.slider = this.part("slider");
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.name = "";
    this.marks = [];
    this.at = null;
    this.end = whileVisible(POLL_MS, () => this.poll());
  }

  close() {
    this.end();
    feed.hold(null);
  }

  // ── recordings ──

  async poll() {
    const found = await call("recordings");
    this.recording = found.recording;
    document.querySelector("[data-mark=timeline-record]")?.classList.toggle("u-chosen", found.recording);
    const shown = JSON.stringify([found, this.name]);
    if (shown !== this.shownFiles) {
      this.shownFiles = shown;
      this.showFiles(found);
    }
    const chosen = found.recordings.find(({ name }) => name === this.name);
    if (!chosen && found.recordings.length) await this.choose(found.recordings[0].name);
    else if (chosen?.running || (chosen && !this.whole)) await this.update();
  }

  showFiles({ recordings, most_bytes: most }) {
    const rows = recordings.map((file) => this.fileRow(file));
    this.part("files").replaceChildren(...(rows.length ? rows : [html("div", "u-caption", text("none"))]));
    const used = recordings.reduce((sum, { bytes }) => sum + bytes, 0);
    this.part("budget").textContent = text("budget", { used: size(used), most: size(most) });
  }

  fileRow({ name, bytes, running, to_s: length, dropped }) {
    const row = html("div", "u-timeline-file", "", { file: name });
    row.setAttribute("role", "button");
    row.tabIndex = 0;
    row.classList.toggle("u-chosen", name === this.name);
    add(row, "span", "", name);
    const state = [running && text("running"), `${fixed(length, 1)} s`, size(bytes), dropped && text("dropped", { count: dropped })];
    add(row, "span", "u-caption", state.filter(Boolean).join(", "));
    row.onclick = () => this.choose(name);
    row.onkeydown = ({ key }) => key === "Enter" && this.choose(name);
    for (const [icon, act] of running ? [] : [["download", () => this.download(name)], ["delete", () => this.remove(name)]]) {
      const made = add(row, "button", "material-icons u-timeline-icon", icon);
      made.title = text(icon);
      made.setAttribute("aria-label", text(icon));
      made.dataset.act = icon;
      made.onclick = (event) => (event.stopPropagation(), act());
    }
    return row;
  }

  record() {
    return ask(this.recording ? "record_stop" : "record_start");
  }

  async remove(name) {
    const title = filled(text("delete_question"), { name });
    const choices = [["yes", text("delete"), "u-stop"], ["", text("cancel")]];
    if (await question({ title, choices, mark: "timeline-delete" })) await ask("delete_recording", { name });
  }

  async download(name) {
    const parts = [];
    await orRefused(async () => {
      for (let offset = 0, bytes = 1; offset < bytes; ) {
        const answer = await call("recording_part", { name, offset });
        const part = Uint8Array.from(atob(answer.data), (letter) => letter.charCodeAt(0));
        if (!part.length) break;
        parts.push(part);
        [offset, bytes] = [offset + part.length, answer.bytes];
      }
      save(new Blob(parts), name, "application/octet-stream");
    });
  }

  // ── one recording ──

  async choose(name) {
    Object.assign(this, { name, at: null, scene: null, whole: false, marks: [], curves: null });
    await this.update();
    await this.loadCurves();
    if (this.at === null) await this.go(this.to ?? 0);
  }

  async update() {
    const name = this.name;
    const line = await answered("timeline", { name });
    if (!line || name !== this.name) return;
    Object.assign(this, { from: line.from_s, to: line.to_s, whole: line.whole, marks: line.marks });
    [this.slider.min, this.slider.max] = [this.from, this.to];
    if (this.at !== null) this.slider.value = this.at;
    this.showMarks();
    if (this.curves && this.to > 1.1 * (this.curvesTo ?? 0)) await this.loadCurves();
  }

  showMarks() {
    const span = Math.max(this.to - this.from, 1e-9);
    const ticks = this.marks.map((mark) => {
      const tick = html("button", "u-timeline-tick", "", { kind: mark.kind });
      tick.style.left = `${(100 * (mark.time_s - this.from)) / span}%`;
      tick.title = words(mark);
      tick.tabIndex = -1;
      tick.onclick = () => this.go(mark.time_s);
      return tick;
    });
    this.part("ticks").replaceChildren(...ticks);
    const rows = this.marks.filter(({ kind }) => SHOWN_MARKS.includes(kind)).map((mark) => {
      const row = html("button", "u-timeline-mark", "", { kind: mark.kind, at: mark.time_s });
      add(row, "span", "", `${fixed(mark.time_s, 3)} s`);
      add(row, "span", "", words(mark));
      row.title = words(mark);
      row.onclick = () => this.go(mark.time_s);
      return row;
    });
    this.part("marks").replaceChildren(...(rows.length ? rows : [html("div", "u-caption", text("no_marks"))]));
  }

  setRobot(robot) {
    this.robot = robot;
    this.loadCurves();
  }

  async loadCurves() {
    const { name, robot } = this;
    this.curvesTo = this.to;
    const curves = await answered("timeline_curves", { name, robot });
    if (!curves || name !== this.name || robot !== this.robot) return;
    this.curves = curves;
    this.drawPlot();
  }

  // Curves of the whole recording, each between its least and its largest value; a line at the instant.
  drawPlot() {
    const { names, rows } = this.curves ?? { names: [], rows: [] };
    const span = Math.max(this.to - this.from, 1e-9);
    const x = (at) => (PLOT.width * (at - this.from)) / span;
    const lines = names.map((name, n) => {
      const values = rows.map(([, row]) => row[n]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const y = (value) => PLOT.height * (0.95 - (0.9 * (value - low)) / (high - low || 1));
      const points = rows.map(([at, row]) => `${fixed(x(at), 1)},${fixed(y(row[n]), 1)}`).join(" ");
      return `<polyline fill="none" vector-effect="non-scaling-stroke" stroke="${COLORS[n % COLORS.length]}" points="${points}"/>`;
    });
    const at = this.at ?? this.from;
    const cursor = `<line data-at="${at}" vector-effect="non-scaling-stroke" stroke="currentColor" x1="${x(at)}" x2="${x(at)}" y1="0" y2="${PLOT.height}"/>`;
    this.part("plot").innerHTML = `<svg viewBox="0 0 ${PLOT.width} ${PLOT.height}" preserveAspectRatio="none">${lines.join("")}${cursor}</svg>`;
  }

  // ── one instant ──

  move(step) {
    if (this.name) return this.go((this.at ?? this.from) + step);
  }

  // Shows an instant. While it is read, only the latest one that was chosen meanwhile is remembered.
  async go(at) {
    this.at = Math.min(Math.max(at, this.from ?? 0), this.to ?? at);
    this.slider.value = this.at;
    this.part("at").textContent = `${fixed(this.at, 3)} s`;
    if (this.curves) this.drawPlot();
    if (this.reading) return;
    this.reading = true;
    for (let read = null; read !== this.at; ) {
      read = this.at;
      const found = await answered("timeline_at", { name: this.name, at_s: read, scene: true });
      if (found) this.show(found);
    }
    this.reading = false;
  }

  show({ at_s: at, view, scene, parts, journal, programs }) {
    this.shown = { at, journal: journal.length };
    const drawn = window.understudy.scene;
    const key = scene ? JSON.stringify(scene) : this.scene;
    if (drawn && scene && key !== this.scene) drawn.build(scene);
    this.scene = key;
    if (view) feed.hold({ ...view, t: at, parts: 0, trail: {} });
    if (drawn && parts) drawn.showParts(parts.parts);
    const rows = journal.map(({ time_s, endpoint, peer, kind, text: bytes }) =>
      html("div", "u-timeline-message", `${fixed(time_s, 3)} ${endpoint} ${peer} ${ARROWS[kind]} ${bytes}`));
    const list = this.part("journal");
    list.replaceChildren(...(rows.length ? rows : [html("div", "u-caption", text("no_journal"))]));
    list.scrollTop = list.scrollHeight;
    const lines = Object.entries(programs).filter(([, { line }]) => line);
    this.part("program").textContent = lines.map(([robot, { program, line, text: words }]) => text("line", { robot, program, line, text: words })).join(" · ");
  }

  async fork() {
    if (!this.name) return;
    notice(text("forking"), "info");
    const fork = await ask("fork_recording", { name: this.name, at_s: this.at });
    if (!fork) return;
    this.forked = fork;
    const handler = () => window.open(fork.page);
    notice(text("forked", { page: fork.page }), "positive", { actions: [{ label: text("fork"), noCaps: true, handler }], timeout: 0 });
  }

  report() {
    return {
      name: this.name, at: this.at, shown: this.shown ?? null, to: this.to ?? null, recording: Boolean(this.recording),
      marks: this.marks, forked: this.forked ?? null, held: feed.held ?? null,
      cursor: Number(this.element.querySelector("[data-at]")?.dataset.at),
    };
  }
}

const words = ({ kind, robot, text: said, line }) => [kind, robot, line ? `#${line}` : "", said].filter(Boolean).join(" ");

const size = (bytes) => (bytes < MIB ? `${Math.ceil(bytes / 1024)} KiB` : `${fixed(bytes / MIB, 1)} MiB`);

const ready = expose("timeline", ["record", "fork", "move", "setRobot"], { report: () => null });
whenReady("#timeline-page", (element) => ready(new TimeLine(element)));
