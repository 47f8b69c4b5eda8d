// The pick & place page: what the server sends is drawn as diagram, camera overlay, pallet map and
// chart. Longer answers are requested when something that belongs to them has changed.

import { answered, ask, expose, fixed, text, whenReady, whileVisible } from "../../frame/api.js";
import { drawing, svg } from "../../frame/elements.js";
import { Camera } from "./camera.js";
import { Diagram } from "./diagram.js";
import { PalletMap } from "./pallet_map.js";

const LIVE_MS = 500; // between two pictures of the camera
const LIVE_WIDTH = 640;
const [CHART_WIDE, CHART_HIGH] = [300, 56];
const CHART_SLOTS = 30;

const mark = (name) => document.querySelector(`[data-mark="${name}"]`);

class PickPlace {
  constructor() {
    this.camera = new Camera(mark("camera"), mark("camera-line"));
    this.map = new PalletMap(mark("pallet-map"), mark("pallet-layer"));
    this.diagram = null;
    this.facts = null;
    this.queries = {}; // name → what its last answer belongs to, and what is wanted
    this.cycles = [];
    this.shown = { picture: "last", depth: false, back: 0 };
    this.misses = 0; // that are kept
    this.asked = this.drawn = 0; // requests for the picture of a result
    this.stopLive = whileVisible(LIVE_MS, () => this.showLive());
    this.loadTables();
    this.pane("camera");
    this.markPicture();
  }

  async loadTables() {
    const tables = await answered("job_tables");
    if (!tables || this.closed) return;
    this.diagram = new Diagram(mark("diagram"), tables);
    this.light();
  }

  // Facts of the chosen robot: page.py.
  show(facts) {
    this.facts = facts;
    if (!facts.job) return;
    this.light();
    const { robot, job, pallet, finder, target } = facts;
    this.camera.aim(target);
    this.request("cycles", [robot, job.success_count, job.fail_count], "pick_place_cycles", { robot }, ({ cycles }) => this.showCycles(cycles));
    if (finder && !finder.waiting) this.request("finder", [robot, finder], "vision_result", { robot }, (seen) => this.showSeen(seen));
    if (pallet) this.showPallet();
  }

  light() {
    const { job } = this.facts ?? {};
    if (job) this.diagram?.light(job.state, job.paused_in);
  }

  // Requests an answer if its key differs from that of the last one: one request at a time, and
  // another one after it if the key has changed meanwhile.
  async request(name, values, command, parameters, draw) {
    const query = (this.queries[name] ??= { key: null, wanted: null, under: false });
    query.wanted = JSON.stringify(values);
    query.ask = [command, parameters, draw];
    if (query.under) return;
    query.under = true;
    while (query.key !== query.wanted && !this.closed) {
      const { wanted, ask: [asked, given, drawn] } = query;
      const answer = await answered(asked, given);
      if (!answer) break; // the next change asks again
      query.key = wanted;
      if (!this.closed && given.robot === this.facts.robot) drawn(answer);
    }
    query.under = false;
  }

  showCycles(cycles) {
    this.cycles = cycles;
    chart(mark("cycle-chart"), cycles, text("chart_hint"));
  }

  showSeen(seen) {
    this.camera.show(seen);
    if (this.shown.picture === "last") this.loadPicture();
  }

  // The picture of the last result, or of the last one without objects; without one a plain field.
  async loadPicture(query = answered) {
    const { robot, camera } = this.facts;
    const { picture: which, depth, back } = this.shown;
    if (!camera || which === "live") return;
    const number = ++this.asked;
    const found = await query("vision_picture", { robot, which, depth, back });
    if (this.closed || this.shown.picture !== which || number < this.drawn) return; // a later one is shown
    this.drawn = number;
    this.misses = found?.misses ?? this.misses;
    if (found && which === "miss") found.caption = `${text("picture_miss")} ${back + 1}/${found.misses} · ${fixed(found.time_s, 1)} s`;
    this.camera.showPicture(found, { plain: which === "miss" });
  }

  async showLive() {
    if (this.shown.picture !== "live" || !this.facts?.camera) return;
    const { robot } = this.facts;
    const found = await answered("camera_picture", { robot, depth: this.shown.depth, width: LIVE_WIDTH });
    if (found && this.shown.picture === "live") this.camera.showPicture(found);
  }

  showPallet() {
    const { robot, pallet, source } = this.facts;
    const layer = this.map.chosen ?? pallet.layer;
    this.request("pallet", [robot, source, layer], "pallet_layer", { robot, source, layer }, (found) => {
      this.map.build(found);
      this.map.fill(this.facts.pallet);
    });
    this.map.fill(pallet);
  }

  // ── calls of buttons ──

  // The pane that a small screen shows; without a name the other one.
  pane(name) {
    const views = mark("views");
    views.dataset.pane = name ?? (views.dataset.pane === "camera" ? "scene" : "camera");
    for (const button of document.querySelectorAll("[data-pane-of]")) {
      button.classList.toggle("u-chosen", button.dataset.paneOf === views.dataset.pane);
    }
  }

  // `name`: last, miss or live; miss again: the one before
  picture(name) {
    const again = name === "miss" && this.shown.picture === "miss";
    this.shown.back = again ? (this.shown.back + 1) % Math.max(this.misses, 1) : 0;
    this.shown.picture = name;
    this.markPicture();
    this.loadPicture(name === "miss" ? ask : answered);
  }

  depth() {
    this.shown.depth = !this.shown.depth;
    this.markPicture();
    this.loadPicture();
  }

  markPicture() {
    for (const button of document.querySelectorAll("[data-picture]")) {
      const { picture } = button.dataset;
      button.classList.toggle("u-chosen", picture === "depth" ? this.shown.depth : picture === this.shown.picture);
    }
  }

  // Shows another layer of the pallet; the next one is followed again when it is reached.
  layer(by) {
    if (this.facts?.pallet) this.map.choose(by, this.facts.pallet.layer);
    if (this.facts?.pallet) this.showPallet();
  }

  close() {
    this.closed = true;
    this.stopLive();
    this.camera.close();
  }

  report() {
    return {
      ready: Boolean(this.diagram && this.facts), states: this.diagram?.names() ?? [], lit: this.diagram?.lit() ?? [],
      edges: this.diagram?.edges ?? [], objects: this.camera.objects.length, frame: this.camera.frame, picture: this.camera.report(),
      cycles: this.cycles, pallet: this.map.report(), robot: this.facts?.robot,
    };
  }
}

// Draws the times of the last cycles as bars; a cycle that failed is a red mark.
// `cycles`: rows of `pick_place_cycles`
function chart(place, cycles, hint) {
  const shown = cycles.slice(-CHART_SLOTS);
  const longest = Math.max(...shown.map(({ seconds }) => seconds), 1e-9);
  const wide = CHART_WIDE / CHART_SLOTS;
  const root = drawing(CHART_WIDE, CHART_HIGH, { preserveAspectRatio: "none", class: "u-chart-drawing", role: "img" });
  root.append(svg("title", { text: hint }), svg("line", { x1: 0, y1: CHART_HIGH - 1, x2: CHART_WIDE, y2: CHART_HIGH - 1, class: "u-chart-line" }));
  shown.forEach(({ number, success, seconds, code }, n) => {
    const high = success ? Math.max(3, (CHART_HIGH - 6) * (seconds / longest)) : CHART_HIGH - 6;
    const words = success ? `${number}: ${fixed(seconds, 2)} s` : `${number}: ${code}`;
    const bar = svg("rect", {
      x: n * wide + 1, y: CHART_HIGH - 1 - high, width: wide - 2, height: high, class: success ? "u-bar-done" : "u-bar-failed",
    }, [svg("title", { text: words })]);
    root.append(bar);
  });
  place.replaceChildren(root);
}

const ready = expose("pickPlace", ["show", "pane", "layer", "picture", "depth"], { report: () => null });
whenReady("#pick-place-page", () => ready(new PickPlace()));
