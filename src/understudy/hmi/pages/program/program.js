// The program page: one text, the robot it is for, and everything that can be done with it.
//
// The robot's program is the cell's: every browser shows it. What is typed here is a draft until it
// is loaded; a draft outlives the page (sessionStorage), not the browser.

import { ask, notice, onceThere, save, words } from "./api.js";
import { feed } from "./feed.js";
import { offer } from "./offer.js";
import { Checks, marksOf } from "./program_checks.js";
import { Editor } from "./program_editor.js";
import { Way } from "./program_way.js";

const LARGEST_FILE = 8 * 1024 * 1024;
const SHORT_LINES = 300;
const UNDER_WAY = ["running", "paused"];
const NO_READING = { name: "", state: "idle", line: 0, lines: 0, error: "", checksum: null };

class Program {
  constructor(place) {
    this.place = place;
    this.robot = place.dataset.robot;
    this.reading = NO_READING;
    this.loaded = ""; // the text that the robot has
    this.known = null; // its checksum
    this.orders = 0; // that were given
    this.name = place.querySelector("[data-program=name]");
    this.banner = place.querySelector("[data-program=banner]");
    this.state = place.querySelector("[data-program=state]");
    this.editor = new Editor(place.querySelector("#editor"), { told: () => this.changed(), chose: (line) => this.look(line) });
    this.way = new Way(place.querySelector("#way"), { moved: (line) => this.choose(line) });
    this.checks = new Checks(place.querySelector("#checks"), {
      found: (result) => this.found(result), goTo: (line) => this.goTo(line),
    });
    this.name.addEventListener("input", () => this.keep());
    feed.onFrame((frame) => this.follow(frame.robots[this.robot]));
    this.file = Object.assign(document.createElement("input"), { type: "file", accept: ".gcode,.nc,.ngc,.tap,.txt,.cnc" });
    this.file.addEventListener("change", () => this.read(this.file.files[0]));
    place.addEventListener("dragover", (event) => event.preventDefault());
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      this.read(event.dataTransfer.files[0]);
    });
  }

  // ── what the cell tells ──

  // `heard`: how many of our orders the cell had heard by then; what it told before that is old.
  async tell(reading, heard = this.orders) {
    if (heard < this.orders) return;
    this.reading = reading || NO_READING;
    if (reading && reading.checksum !== this.known) await this.fetch(reading.checksum);
    this.show();
  }

  async fetch(checksum) {
    const robot = this.robot;
    this.known = checksum;
    const told = await ask("program", { robot });
    if (!told || robot !== this.robot) return;
    const untouched = this.editor.text === this.loaded;
    this.loaded = told.text;
    const draft = this.draft();
    if (untouched && draft !== null && draft.text !== told.text) this.put(draft.text, draft.name);
    else if (untouched) this.take(told.name);
    this.peek();
  }

  take(name = this.reading.name) {
    this.put(this.loaded, name);
    this.keep();
    this.show();
  }

  put(text, name) {
    if (text !== this.editor.text) this.fresh();
    this.editor.text = text;
    this.name.value = name;
  }

  turnTo(robot) {
    Object.assign(this, { robot, reading: NO_READING, loaded: "", known: null });
    this.put("", "");
    this.way.forget();
    this.show();
  }

  show() {
    const { reading, editor } = this;
    const [running, same] = [UNDER_WAY.includes(reading.state), editor.text === this.loaded];
    const failed = reading.state === "failed" && same;
    editor.lock(running && same);
    editor.mark({ running: running && same ? reading.line : 0, failed: failed ? reading.line : 0 });
    if (running && same && reading.line !== this.shown) editor.show(reading.line);
    this.shown = reading.line;
    this.banner.hidden = same;
    this.banner.dataset.running = running;
    this.state.className = `u-run-state u-run-${reading.state}`;
    this.state.textContent = this.saying(running, failed);
    this.place.dataset.state = reading.state;
  }

  saying(running, failed) {
    const { state, line, lines, error } = this.reading;
    const at = running || failed ? ` · ${words("of_lines").replace("{line}", line).replace("{lines}", lines)}` : "";
    return words(`state_${state}`) + at + (error ? ` · ${error}` : "");
  }

  // ── what is typed ──

  changed() {
    this.fresh();
    this.keep();
    this.show();
  }

  // What was found out about another text is not true of this one.
  fresh() {
    this.checks.forget();
    this.way.forget();
    this.editor.mark({ violations: new Map(), clearances: new Map(), chosen: 0 });
  }

  keep() {
    const key = `draft ${this.robot}`;
    if (this.editor.text === this.loaded) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify({ text: this.editor.text, name: this.name.value }));
  }

  draft() {
    return JSON.parse(sessionStorage.getItem(`draft ${this.robot}`) || "null");
  }

  open() {
    this.file.value = "";
    this.file.click();
  }

  async read(file) {
    if (!file) return;
    if (file.size > LARGEST_FILE) return notice(words("too_large"));
    this.put((await file.text()).replaceAll("\r\n", "\n"), file.name);
    this.changed();
  }

  download() {
    save(this.editor.text, this.name.value || "program.gcode");
  }

  // A move below the cursor; it has a feed of its own if none is in force there.
  insert(move, note) {
    if (this.editor.locked) return notice(words("locked"));
    const above = this.editor.text.split("\n").slice(0, this.editor.line).join("\n");
    const feed = /^[^;(]*F\s*\d/im.test(above) ? "" : " F1000";
    this.editor.insertBelow(`${move}${feed}  ; ${note}`);
  }

  // ── looking ahead ──

  async look(line) {
    this.choose(line);
    if (await this.ahead()) this.way.seekLine(line);
  }

  async ahead() {
    const way = await this.way.of(this.robot, this.editor.text);
    if (!way) return false;
    if (!this.checks.result) this.editor.mark({ violations: marksOf(way).violations });
    this.checks.glance(way.violations);
    return true;
  }

  // Of its own accord only where it takes no time; from where a robot is that runs it begins wrong.
  async peek() {
    const short = this.editor.lines <= SHORT_LINES && this.editor.text.trim();
    if (short && !UNDER_WAY.includes(this.reading.state)) await this.ahead();
  }

  choose(line) {
    this.editor.mark({ chosen: line });
  }

  goTo(line) {
    this.editor.goTo(line);
    this.look(line);
  }

  validate() {
    return this.checks.begin(this.robot, this.editor.text, this.name.value);
  }

  found(result) {
    this.editor.mark(marksOf(result));
    if (result.violations.length) this.editor.show(result.violations[0].line);
  }

  // The slider goes with the robot that runs what it shows.
  follow(robot) {
    const { state, line } = this.reading;
    if (robot && UNDER_WAY.includes(state) && this.way.text === this.loaded) this.way.follow(line, robot.q);
  }

  // ── running ──

  async load() {
    const { text } = this.editor;
    const told = await this.ordered("load_program", { text, name: this.name.value });
    if (!told) return false;
    Object.assign(this, { loaded: text, known: told.checksum, reading: told });
    this.keep();
    this.show();
    this.peek();
    return true;
  }

  async run(parameters = {}) {
    if (!UNDER_WAY.includes(this.reading.state) && this.editor.text !== this.loaded && !(await this.load())) return;
    this.way.close();
    await this.order("run_program", parameters);
  }

  runFrom() {
    return this.run({ from_line: this.editor.line });
  }

  async step() {
    if (UNDER_WAY.includes(this.reading.state)) await this.order("step_program");
    else await this.run({ from_line: 1, step: true });
  }

  pause() {
    return this.order("pause_program");
  }

  stop() {
    return this.order("stop_program");
  }

  async order(command, parameters = {}) {
    const told = await this.ordered(command, parameters);
    if (told) this.tell(told);
  }

  // → the answer, if it is still about this robot and nothing was ordered since. Until the page's
  // process knows of the order, what it tells of the program may be from before it.
  async ordered(command, parameters) {
    const { robot } = this;
    const mine = ++this.orders;
    try {
      const told = await ask(command, { robot, ...parameters });
      return robot === this.robot && mine === this.orders ? told : null;
    } finally {
      emitEvent("program_ordered", mine);
    }
  }

  // ── what tests and curious people see ──

  report() {
    const { editor, way, checks, reading } = this;
    const lines = (kind) => [...this.place.querySelectorAll(`.${kind}`)].map((line) => line.textContent);
    return {
      robot: this.robot, text: editor.text, name: this.name.value, draft: editor.text !== this.loaded, reading,
      running: lines("u-running-line"), bad: lines("u-bad-line"), failed: lines("u-failed-line"), locked: Boolean(editor.locked),
      ghost: way.ghost || null, at: way.at, line: way.line || 0, followed: way.followed || 0, seconds: way.data?.duration_s ?? 0,
      checking: Boolean(checks.run), result: checks.result, error: checks.error || "",
    };
  }
}

const CALLS = [
  "tell", "turnTo", "insert", "open", "download", "take", "load", "validate", "run", "runFrom", "step", "pause", "stop",
];
const take = offer("program", CALLS, { report: () => null });
onceThere("#program-page", (place) => take(new Program(place)));
