// The program page: a program of the chosen robot, its preview, its validation and its run.
//
// The program of a robot is the cell's: every browser shows it. Typed text is a draft until it is
// loaded; a draft is kept in sessionStorage, as long as the browser window is open.

import { answered, ask, expose, fixed, notice, ofCell, order, persist, save, text, whenReady } from "../../frame/api.js";
import { feed } from "../../frame/feed.js";
import { question } from "../../frame/dialog.js";
import { Checks, marksOf } from "./checks.js";
import { Editor } from "./editor.js";
import { openLibrary } from "./library.js";
import { Preview } from "./preview.js";

const FILE_LIMIT = 8 * 1024 * 1024;
const AUTO_PREVIEW_LINES = 300;
const PROCESS_OFF = 30; // code of a refusal: earlier lines switch on what is off now
const LIVE_CHARACTERS = 500000; // longer texts are checked when they are loaded or validated
const LIVE_MS = 350; // without a key, before the text is checked
const UNDO_MS = 10000;
const ACTIVE = ["running", "paused"];
const NO_STATE = { name: "", state: "idle", line: 0, lines: 0, error: "", checksum: null, breakpoints: [] };

class Program {
  constructor(element) {
    this.element = element;
    this.robot = element.dataset.robot;
    this.status = NO_STATE; // of the robot's program
    this.loaded = ""; // the robot's text
    this.checksum = null; // of the robot's text
    this.request = null; // of the robot's text, the latest
    this.commands = 0; // sent
    this.lineInAddress = Number(new URLSearchParams(location.search).get("line"));
    this.name = element.querySelector("[data-program=name]");
    this.banner = element.querySelector("[data-program=banner]");
    this.empty = element.querySelector("[data-program=empty]");
    this.lost = element.querySelector("[data-program=lost]");
    this.stateLine = element.querySelector("[data-program=state]");
    this.translations = JSON.parse(element.dataset.words); // English text of the cell → of this language
    this.editor = new Editor(element.querySelector("#editor"), {
      changed: () => this.changed(), clicked: (line) => this.previewLine(line),
      breakpointsChanged: () => this.breakpointsChanged(), phrases: JSON.parse(element.dataset.phrases),
    });
    this.preview = new Preview(element.querySelector("#preview"), { moved: (line) => this.highlight(line) });
    this.checks = new Checks(element.querySelector("#checks"), {
      found: (result) => this.found(result), goTo: (line) => this.goTo(line),
    });
    this.name.addEventListener("input", () => this.storeDraft());
    this.loadWords();
    this.endFrames = feed.onFrame((frame) => this.follow(frame.robots[this.robot]));
    this.file = Object.assign(document.createElement("input"), { type: "file", accept: ".gcode,.nc,.ngc,.tap,.txt,.cnc" });
    this.file.addEventListener("change", () => this.readFile(this.file.files[0]));
    element.addEventListener("dragover", (event) => event.preventDefault());
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      this.readFile(event.dataTransfer.files[0]);
    });
  }

  close() {
    this.request = null;
    clearTimeout(this.live);
    this.endFrames();
    this.checks.close();
    this.preview.clear();
    this.editor.view.destroy();
  }

  // ── state of the program ──

  // `included`: number of the last command of this browser that the state includes; a state from
  // before the latest command is ignored.
  async update(status, included = this.commands) {
    if (included < this.commands) return;
    this.status = status || NO_STATE;
    if (status && status.checksum !== this.checksum) await this.fetch(status.checksum);
    if (this.editor.text === this.loaded) this.editor.breakpoints = this.status.breakpoints ?? [];
    this.show();
  }

  // Requests the robot's text until it is there. An answer that comes after a newer request, or after
  // this browser has loaded a program, is ignored.
  async fetch(checksum) {
    const { robot } = this;
    const request = (this.request = {});
    this.checksum = checksum;
    const program = await persist("program", { robot }, () => request === this.request);
    if (!program || request !== this.request) return;
    const untouched = this.editor.text === this.loaded;
    this.loaded = program.text;
    const draft = this.draft();
    if (untouched && draft !== null && draft.text !== program.text) this.setText(draft.text, draft.name, draft.breakpoints);
    else if (untouched) this.revert(program.name);
    if (this.lineInAddress >= 1 && this.lineInAddress <= this.editor.lines) this.goTo(this.lineInAddress);
    else this.previewIfShort();
    this.lineInAddress = 0;
  }

  // Shows the robot's text instead of the draft.
  revert(name = this.status.name) {
    this.setText(this.loaded, name, this.status.breakpoints ?? []);
    this.storeDraft();
    this.show();
  }

  setText(content, name, breakpoints = []) {
    if (content !== this.editor.text) this.clearFindings();
    this.editor.text = content;
    this.editor.breakpoints = breakpoints;
    this.name.value = name;
    this.checkSoon();
  }

  setRobot(robot) {
    Object.assign(this, { robot, status: NO_STATE, loaded: "", checksum: null, request: null });
    this.setText("", "");
    this.preview.clear();
    this.loadWords();
    this.show();
    window.understudyFrame.address({ line: null });
  }

  show() {
    const { status, editor } = this;
    const [running, same] = [ACTIVE.includes(status.state), editor.text === this.loaded];
    const failed = status.state === "failed" && same;
    editor.lock(running && same);
    editor.mark({ running: running && same ? status.line : 0, failed: failed ? status.line : 0 });
    if (running && same && status.line !== this.shownLine) editor.show(status.line);
    this.shownLine = status.line;
    this.banner.hidden = same;
    this.empty.hidden = Boolean(editor.text.trim()) || !same;
    this.banner.dataset.running = running;
    this.stateLine.className = `u-run-state u-run-${status.state}${running && status.warning ? " u-run-warned" : ""}${status.collisions ? " u-run-collided" : ""}`;
    this.stateLine.textContent = this.stateText(running, failed);
    const lost = status.lost_mm ?? null;
    this.lost.hidden = lost === null || running || !same;
    if (lost !== null) this.lost.querySelector("[data-program=lost-words]").textContent = text("arc_lost", { mm: fixed(lost, 0) });
    this.element.dataset.state = status.state;
  }

  stateText(running, failed) {
    const { state, line, lines, error, warning, collisions } = this.status;
    const at = running || failed ? ` · ${text("of_lines", { line, lines })}` : "";
    const stands = state === "paused" && this.status.breakpoints?.includes(line) ? ` · ${text("breakpoint")}` : "";
    const without = running && warning ? ` · ⚠ ${warning.replace(/^runs without/, text("runs_without"))}` : "";
    const met = collisions ? `, ${text(collisions === 1 ? "collision" : "collisions", { count: collisions })}` : "";
    return text(`state_${state}`) + met + at + stands + without + (error ? ` · ${error}` : "");
  }

  // ── text and draft ──

  changed() {
    this.clearFindings();
    this.storeDraft();
    this.show();
    this.checkSoon();
  }

  // ── words of the language, and the check while typing ──

  async loadWords() {
    const { robot } = this;
    const words = await answered("program_words", { robot });
    if (robot !== this.robot) return;
    const named = (each) => [this.translated(each.meaning), each.switches && `(${text(`switched_${each.switches}`).replace(/^switched_/, "")})`];
    this.editor.setWords((words || []).map((each) => ({
      word: each.word, meaning: named(each).filter(Boolean).join(" "), parameters: this.translated(each.parameters),
    })));
  }

  // A text of the cell in the page's language; a number in it stays.
  translated(words) {
    const [number] = words.match(/\d+/) || [];
    return this.translations[words] ?? this.translations[words.replace(/\d+/, "{n}")]?.replace("{n}", number) ?? words;
  }

  checkSoon() {
    clearTimeout(this.live);
    this.live = setTimeout(() => this.check(), LIVE_MS);
  }

  // Marks the lines that the robot's own reader refuses; a short text without any is previewed.
  async check() {
    const { robot, editor } = this;
    const content = editor.text;
    if (content.length > LIVE_CHARACTERS || (!content.trim() && !editor.problems.length)) return;
    const answer = await answered("check_program", { robot, text: content });
    if (!answer || robot !== this.robot || content !== editor.text) return;
    const found = answer.problems.map((each) => ({ ...each, message: ofCell(each.message) }));
    editor.setProblems(found);
    this.checks.showLive(found);
    if (!found.length) await this.previewIfShort({ quiet: true });
  }

  nextProblem() {
    this.editor.nextProblem();
  }

  search() {
    this.editor.search();
  }

  // ── breakpoints ──

  breakpoint() {
    this.editor.toggleBreakpoint();
  }

  // Those of a draft are sent when it is loaded.
  async breakpointsChanged() {
    this.storeDraft();
    if (this.editor.text !== this.loaded) return;
    const status = await this.send("set_breakpoints", { lines: this.editor.breakpoints });
    if (!status) this.editor.breakpoints = this.status.breakpoints ?? [];
    else this.update(status);
    if (status?.late.length) notice(text("late", { lines: status.late.join(", ") }), "info");
  }

  // Discards results that belong to another text.
  clearFindings() {
    this.checks.clear();
    this.preview.clear();
    this.editor.mark({ violations: new Map(), clearances: new Map(), chosen: 0 });
  }

  storeDraft() {
    const key = `draft ${this.robot}`;
    if (this.editor.text === this.loaded) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify({ text: this.editor.text, name: this.name.value, breakpoints: this.editor.breakpoints }));
  }

  draft() {
    return JSON.parse(sessionStorage.getItem(`draft ${this.robot}`) || "null");
  }

  open() {
    this.file.value = "";
    this.file.click();
  }

  async readFile(file) {
    if (!file) return;
    if (file.size > FILE_LIMIT) return notice(text("too_large"));
    this.showDraft({ text: (await file.text()).replaceAll("\r\n", "\n"), name: file.name });
  }

  // Shows an opened program; it is a draft until it is loaded.
  showDraft({ text: content, name }) {
    if (this.editor.locked) return notice(text("locked"));
    this.setText(content, name);
    this.changed();
    this.previewIfShort();
  }

  // Programs to open, and the project folder.
  library() {
    const current = () => ({ text: this.editor.text, name: this.name.value || "program.gcode" });
    const operator = this.element.dataset.role === "operator";
    return openLibrary(this.robot, { opened: (program) => this.showDraft(program), current, operator });
  }

  download() {
    save(this.editor.text, this.name.value || "program.gcode");
  }

  // Inserts a move below the cursor, with a feed if no line above sets one.
  insert(move, note) {
    if (this.editor.locked) return notice(text("locked"));
    const above = this.editor.text.split("\n").slice(0, this.editor.line).join("\n");
    const feed = /^[^;(]*F\s*\d/im.test(above) ? "" : " F1000";
    this.editor.insertBelow(`${move}${feed}  ; ${note}`);
  }

  // A notice about a changed point, with a button that takes the change back.
  offerUndo(message, label) {
    const button = document.querySelector("[data-mark=point-undo]");
    const undo = { label, noCaps: true, handler: () => button?.click() };
    const dismiss = notice(message, "info", { timeout: UNDO_MS, actions: [undo], group: false });
    this.dismissUndo?.(); // one change at a time is offered
    this.dismissUndo = dismiss;
    button?.addEventListener("click", dismiss, { once: true });
  }

  // ── preview and validation ──

  async previewLine(line) {
    window.understudyFrame.address({ line });
    this.highlight(line);
    if (await this.loadPreview()) this.preview.seekLine(line);
  }

  async loadPreview(options) {
    const preview = await this.preview.load(this.robot, this.editor.text, options);
    if (!preview) return false;
    if (!this.checks.result) this.editor.mark({ violations: marksOf(preview).violations });
    this.checks.showPreviewed(preview.violations);
    return true;
  }

  // Short programs are previewed without a click, but not while one runs: the preview starts at
  // the robot's present position.
  async previewIfShort(options) {
    const isShort = this.editor.lines <= AUTO_PREVIEW_LINES && this.editor.text.trim();
    if (isShort && !ACTIVE.includes(this.status.state)) await this.loadPreview(options);
  }

  highlight(line) {
    this.editor.mark({ chosen: line });
  }

  goTo(line) {
    this.editor.goTo(line);
    this.previewLine(line);
  }

  validate() {
    return this.checks.start(this.robot, this.editor.text, this.name.value);
  }

  found(result) {
    this.editor.mark(marksOf(result));
    if (result.violations.length) this.editor.show(result.violations[0].line);
  }

  // The slider follows the robot while it runs the previewed program.
  follow(robot) {
    const { state, line } = this.status;
    if (robot && ACTIVE.includes(state) && this.preview.text === this.loaded) this.preview.follow(line, robot.q);
  }

  // ── running ──

  async load() {
    const loaded = this.editor.text;
    const status = await this.send("load_program", { text: loaded, name: this.name.value, breakpoints: this.editor.breakpoints });
    if (!status) return false;
    Object.assign(this, { loaded, checksum: status.checksum, request: null, status });
    if (this.editor.text === loaded) this.editor.breakpoints = status.breakpoints;
    this.storeDraft();
    this.show();
    this.previewIfShort();
    return true;
  }

  async run(parameters = {}) {
    const starts = !ACTIVE.includes(this.status.state);
    if (starts && this.editor.text !== this.loaded && !(await this.load())) return;
    const line = parameters.from_line ?? 1;
    const more = ({ code }) => (code === PROCESS_OFF ? this.askProcess(line) : undefined);
    this.preview.close();
    await this.command("run_program", parameters, (command, given) => order(command, given, more));
  }

  // Asks whether to switch on again what earlier lines switched on → parameters of run_program, or
  // null if the user does not want to start.
  async askProcess(line) {
    const off = await ask("process_before", { robot: this.robot, from_line: line });
    if (!off) return null;
    const named = ({ name, word, line: at }) => `${text(`switched_${name}`).replace(/^switched_/, "") || word} (${word}, ${text("line", { line: at })})`;
    const answer = await question({
      title: text("restore_title", { what: off.map(named).join(", ") }),
      details: text("restore_details", { line }),
      choices: [["restore", text("restore"), "u-go"], ["leave", text("leave")], ["", text("cancel_start")]],
      mark: "restore-process",
    });
    return answer && { process: answer };
  }

  continueWeld() {
    const overlap_mm = Number(this.lost.querySelector("[data-program=overlap]").value);
    return this.command("continue_weld", { overlap_mm }, order);
  }

  runFrom() {
    return this.run({ from_line: this.editor.line });
  }

  async step() {
    if (ACTIVE.includes(this.status.state)) await this.command("step_program", {}, order);
    else await this.run({ from_line: 1, step: true });
  }

  pause() {
    return this.command("pause_program");
  }

  stop() {
    return this.command("stop_program");
  }

  // `how`: `order` for one that starts a motion
  async command(command, parameters = {}, how = ask) {
    const status = await this.send(command, parameters, how);
    if (status) this.update(status);
  }

  // → the answer, if the robot is still the same and no other command was sent since. The event
  // makes the server refresh its state, so that the next `update` includes this command.
  async send(command, parameters, how = ask) {
    const { robot } = this;
    const number = ++this.commands;
    try {
      const status = await how(command, { robot, ...parameters });
      return robot === this.robot && number === this.commands ? status : null;
    } finally {
      emitEvent("program_command", number);
    }
  }

  // ── state for tests and scripts ──

  report() {
    const { editor, preview, checks, status } = this;
    const lines = (kind) => [...this.element.querySelectorAll(`.${kind}`)].map((line) => line.textContent);
    return {
      robot: this.robot, text: editor.text, name: this.name.value, draft: editor.text !== this.loaded, status,
      running: lines("u-running-line"), bad: lines("u-bad-line"), failed: lines("u-failed-line"), locked: Boolean(editor.locked),
      ghost: preview.ghost || null, at: preview.at, line: preview.line || 0, followed: preview.followed || 0, seconds: preview.data?.duration_s ?? 0,
      checking: Boolean(checks.run), result: checks.result, error: checks.error || "", breakpoints: editor.breakpoints,
      problems: editor.problems.map(({ from, message }) => ({ line: editor.view.state.doc.lineAt(from).number, message })), words: editor.words.size,
    };
  }
}

const CALLS = [
  "update", "setRobot", "insert", "offerUndo", "open", "library", "download", "revert", "load", "validate", "run", "runFrom", "continueWeld", "step", "pause", "stop",
  "search", "breakpoint", "nextProblem",
];
const ready = expose("program", CALLS, { report: () => null });
whenReady("#program-page", (element) => ready(new Program(element)));
