// 3D scene of the cell: geometry from the query `scene`, positions from the state frames. Pages call
// it through `window.understudy`.

import { THREE } from "../three/index.js";
import { answered, expose, filled, notice, orRefused, persist, run, whenReady } from "../frame/api.js";
import { html } from "../frame/elements.js";
import { feed, interpolate, interpolatePose } from "../frame/feed.js";
import { Arc, boundary, cloud, preview, separateNames, weldTrail } from "./marks.js";
import { SceneObject } from "./objects.js";
import { show } from "./readout.js";
import { Robot } from "./robot.js";
import { dispose } from "./shapes.js";
import { fieldOfView, Places } from "./site.js";
import { Viewport, VIEWS } from "./viewport.js";
import "./capture.js";

const COLORS = {
  robot_color: 0xff5e00, ghost_robot_color: 0x808080, collision_color: 0xff0000,
  trajectory_color: 0x00ff00, weld_color: 0xffd700,
};
const DEFAULT_LAYERS = {
  environment: true, ghost: true, preview: true, trail: true,
  volumes: false, workspace: false, reach: false, frames: false, camera: true, pallet: true,
};
const LAYER_OPTIONS = {
  volumes: "show_collision_volumes", preview: "show_trajectory_preview",
  trail: "show_weld_trail", workspace: "show_workspace_boundary",
};

const RETRY_MS = 1000;
const FIGURES_MS = 100;
const REACH_RESOLUTION_MM = 100;
const same = (one, other) => one.robot === other.robot && one.link === other.link && one.object === other.object;
const fixed = ({ held, tool, tools, frames, ...rest }) => rest; // facts of a robot that never change

// A part of the query `parts` as an object of the scene.
function partFacts({ name, type, size_mm: [x, y, z], color, transform }) {
  const [wide, deep, high] = [x / 1000, y / 1000, z / 1000];
  return { name, type, color, transform, dimensions: [wide, deep, high], radius: wide / 2, height: high };
}

class Scene {
  constructor() {
    this.viewport = new Viewport(html("div", "u-scene-root"), (look) => window.understudyFrame.address({ view: look }), () => this.separateNames());
    if (lookInAddress() in { ...VIEWS, follow: null }) this.viewport.name = lookInAddress();
    this.layers = { ...DEFAULT_LAYERS };
    this.colors = { ...COLORS };
    this.chosen = "";
    this.robots = new Map();
    this.objects = new Map(); // name → object of the environment, or held by a robot
    this.parts = new Map(); // name → {object, key, holder}: parts of the cell, resting or held
    this.partsVersion = 0;
    this.marks = new Map(); // robot → {trail, preview, arc, cloud, workspace}
    this.contacts = [];
    this.dismissed = []; // contacts that were cleared, but that older frames still contain
    this.userLayers = {}; // layer → the user's choice
    this.paths = new Map(); // robot → points of its program's path
    this.previews = new Map(); // robot → the latest request of its program's path
    this.loads = 0;
    this.filled = new Map(); // robot → places of its pallet that are done
    this.pinned = new Map(); // robot → joints of a ghost that the page shows
    this.time = null;
    this.changed = null; // called when there are other objects
    this.figuresAt = -Infinity;
    feed.onFrame((frame) => this.update(frame));
    this.viewport.renderer.setAnimationLoop(() => this.draw());
  }

  // Draws into the element of the page that is open now. What may have changed meanwhile is loaded.
  attach(element) {
    element.append(this.viewport.element);
    this.undrawnText = element.dataset.undrawn;
    const robot = element.dataset.robot || this.chosen;
    if (this.robots.has(robot) && robot !== this.chosen) this.choose(robot);
    this.chosen = robot;
    this.load();
    this.applyLayers();
    this.showView();
  }

  // The latest of several requests counts, whichever is answered first.
  async load() {
    const number = ++this.loads;
    const facts = await answered("scene");
    if (number !== this.loads) return;
    if (facts) this.build(facts);
    else setTimeout(() => number === this.loads && this.load(), RETRY_MS);
  }

  // ── robots and objects ──

  build(facts) {
    const key = JSON.stringify(Object.entries(facts.robots || {}).map(([name, robot]) => [name, fixed(robot)]));
    if (key !== this.robotsKey) this.rebuildRobots(facts);
    this.robotsKey = key;
    this.rebuildObjects(facts);
    this.showUndrawn();
    this.applyLayers();
    this.changed?.(); // the editor of the environment, while it is open
    if (!this.ready) this.view(this.viewport.name); // keeps a view that was chosen meanwhile
    this.unplaced = !this.ready;
    this.ready = true;
  }

  // The cell file may set colours and the layers that are shown at first.
  rebuildRobots({ robots = {}, visualization: options = {} }) {
    for (const { object } of [...this.robots.values(), ...this.marks.values()]) dispose(object);
    for (const { object } of this.parts.values()) object.remove();
    for (const kept of [this.robots, this.marks, this.parts]) kept.clear();
    this.partsVersion = 0; // held parts went with their robots
    for (const color in COLORS) this.colors[color] = options[color] ?? COLORS[color];
    for (const layer in LAYER_OPTIONS) this.layers[layer] = this.userLayers[layer] ?? options[LAYER_OPTIONS[layer]] ?? DEFAULT_LAYERS[layer];
    for (const [name, robot] of Object.entries(robots)) this.addRobot(name, robot);
    for (const [name, points] of this.paths) this.marks.get(name)?.preview.add(points);
    if (!this.robots.has(this.chosen)) this.chosen = this.robots.keys().next().value ?? "";
    this.showRobots();
  }

  // Says what is missing, in place of an empty scene.
  showUndrawn() {
    this.viewport.element.querySelectorAll(".u-undrawn").forEach((each) => each.remove());
    for (const robot of this.robots.values()) {
      const [first] = robot.undrawn;
      if (!first) continue;
      const values = { robot: robot.name, count: robot.undrawn.length, link: first[0], reason: first[1] };
      const note = html("div", "u-undrawn", filled(this.undrawnText, values));
      note.setAttribute("role", "alert");
      this.viewport.element.append(note);
    }
  }

  rebuildObjects({ robots = {}, environment = [] }) {
    for (const object of this.objects.values()) object.remove();
    this.objects.clear();
    for (const facts of environment) this.addObject(facts);
    for (const [name, { held = [], tools = {}, frames = {} }] of Object.entries(robots)) {
      const robot = this.robots.get(name);
      for (const facts of held) this.addObject(facts, robot.chain.flange);
      robot.updateTools(tools);
      robot.showWorkFrames(frames);
    }
    this.showContacts();
  }

  addRobot(name, facts) {
    const robot = new Robot(name, facts, this.colors);
    const marks = {
      object: new THREE.Group(), trail: weldTrail(this.colors.weld_color),
      preview: preview(this.colors.trajectory_color), arc: new Arc(), cloud: null, workspace: null,
    };
    marks.object.add(marks.trail.object, marks.preview.object);
    robot.chain.tcp.add(marks.arc.object);
    marks.view = facts.camera && fieldOfView(facts.camera);
    if (marks.view) (facts.camera.on_flange ? robot.chain.flange : marks.object).add(marks.view);
    marks.pallets = (facts.pallets ?? []).map((pallet) => new Places(pallet));
    for (const { object } of marks.pallets) marks.object.add(object);
    marks.pallets[0]?.fill(this.filled.get(name) ?? 0);
    this.viewport.scene.add(robot.object, marks.object);
    this.robots.set(name, robot);
    this.marks.set(name, marks);
  }

  // Parts change their places seldom: the frames only say that there is something to read.
  async loadParts(version) {
    this.partsVersion = version;
    const answer = await answered("parts");
    if (!answer) this.partsVersion = 0; // the next frame tries again
    if (!answer || version !== this.partsVersion) return;
    this.showParts(answer.parts);
  }

  showParts(parts) {
    const known = new Set(parts.map(({ name }) => name));
    for (const [name, { object }] of this.parts) {
      if (known.has(name)) continue;
      object.remove();
      this.parts.delete(name);
    }
    for (const part of parts) {
      const key = JSON.stringify([part.transform, part.holder, part.size_mm, part.color]);
      const before = this.parts.get(part.name);
      if (before?.key === key) continue;
      before?.object.remove();
      const object = new SceneObject(partFacts(part), { held: true });
      object.object.visible = this.layers.environment;
      (this.robots.get(part.holder)?.chain.flange ?? this.viewport.scene).add(object.object);
      this.parts.set(part.name, { object, key, holder: part.holder });
    }
    this.showContacts();
    this.changed?.();
  }

  addObject(facts, flange = null) {
    const object = new SceneObject(facts, { held: Boolean(flange) });
    (flange || this.viewport.scene).add(object.object);
    this.objects.set(facts.name, object);
  }

  shownObjects() {
    return [...this.objects.values(), ...[...this.parts.values()].map(({ object }) => object)];
  }

  // ── visibility ──

  // Of robots with the same base only the chosen one is shown.
  showRobots() {
    for (const robot of this.robots.values()) robot.showChosen(robot.name === this.chosen);
    const taken = new Set();
    const base = (robot) => robot.facts.base.map((value) => Math.round(value * 1e4)).join();
    const first = this.robots.get(this.chosen);
    for (const robot of [first, ...this.robots.values()]) {
      if (!robot) continue;
      robot.object.visible = robot === first || !taken.has(base(robot));
      taken.add(base(robot));
      this.marks.get(robot.name).object.visible = robot.object.visible;
    }
    this.applyLayers();
  }

  frameCamera() {
    const box = new THREE.Box3();
    for (const robot of this.robots.values()) if (robot.object.visible) robot.expand(box);
    for (const { object, isFloor } of this.objects.values()) if (!isFloor) box.expandByObject(object);
    box.expandByPoint(new THREE.Vector3(0.5, 0.35, 0)).expandByPoint(new THREE.Vector3(-0.3, -0.35, 1));
    this.viewport.frameOn(box);
  }

  applyLayers() {
    const { layers } = this;
    this.viewport.changed = true;
    for (const button of document.querySelectorAll("[data-layer]")) {
      button.classList.toggle("u-chosen", layers[button.dataset.layer]);
    }
    for (const { object } of this.shownObjects()) object.visible = layers.environment;
    for (const robot of this.robots.values()) {
      const marks = this.marks.get(robot.name);
      robot.posture = null;
      for (const skin of robot.volumes) skin.visible = layers.volumes;
      for (const arrows of [...robot.triads, ...robot.workFrames]) arrows.visible = layers.frames;
      marks.trail.object.visible = layers.trail;
      marks.preview.object.visible = layers.preview;
      if (layers.workspace && !marks.workspace && robot.isArm) this.addWorkspace(robot, marks);
      if (marks.workspace) marks.workspace.visible = layers.workspace;
      if (marks.cloud) marks.cloud.visible = layers.reach;
      if (marks.view) marks.view.visible = layers.camera;
      for (const pallet of marks.pallets) pallet.object.visible = layers.pallet;
    }
    const legend = document.querySelector("[data-mark=reach-legend]");
    if (legend) legend.hidden = !(layers.reach && this.marks.get(this.chosen)?.cloud);
  }

  addWorkspace(robot, marks) {
    const { outline, from, to } = robot.outline();
    marks.workspace = boundary(outline, from, to);
    robot.chain.root.add(marks.workspace);
  }

  // ── state frames ──

  update(frame) {
    this.time = frame.t;
    for (const [name, points] of Object.entries(feed.trails)) this.updateTrail(name, points);
    this.updateContacts(frame.contacts || []);
    if (this.ready && frame.parts && frame.parts !== this.partsVersion) this.loadParts(frame.parts);
    const joints = this.robots.get(this.chosen)?.chain.movers.map(({ joint }) => joint) || [];
    if (performance.now() - this.figuresAt < FIGURES_MS) return;
    this.figuresAt = performance.now();
    show(document.getElementById("readout"), frame.robots[this.chosen], joints);
  }

  updateTrail(robot, points) {
    const trail = this.marks.get(robot)?.trail;
    if (!trail || (trail.source === points && trail.length === points.length)) return;
    if (trail.source !== points) trail.clear();
    trail.source = points;
    trail.add(points.slice(trail.length));
    this.viewport.changed = true;
  }

  // The cell keeps contacts until they are cleared.
  updateContacts(contacts) {
    const among = (all) => (contact) => all.some((each) => same(each, contact));
    this.dismissed = this.dismissed.filter(among(contacts)); // one that has ended may come again
    const dismissed = among(this.dismissed);
    const shown = contacts.filter((contact) => !dismissed(contact));
    if (shown.length === this.contacts.length && shown.every(among(this.contacts))) return;
    this.contacts = shown;
    this.showContacts();
  }

  showContacts() {
    const color = this.colors.collision_color;
    const touching = new Set(this.contacts.flatMap(({ robot, link, object }) =>
      [`${robot}/${link}`, `${robot}/${object}`, link, object]));
    for (const robot of this.robots.values()) {
      const names = robot.bodies().filter((link) => touching.has(`${robot.name}/${link}`));
      robot.showContacts(new Set(names), color);
    }
    for (const object of this.shownObjects()) object.showContact(touching.has(object.name), color);
    this.viewport.changed = true;
  }

  draw() {
    if (!this.viewport.element.isConnected) return; // a page without a scene is open
    const shown = feed.between();
    if (shown && this.ready) this.showPoses(...shown);
    if (shown && this.unplaced) this.placed();
    this.viewport.draw();
  }

  separateNames() {
    const robots = [...this.robots.values()].filter(({ object }) => object.visible);
    this.viewport.camera.updateMatrixWorld();
    this.names = separateNames(this.viewport.camera, robots.map(({ marker }) => marker));
  }

  // The robots are where they are, vehicles no longer at the origin: the view shows them all.
  placed() {
    this.unplaced = false;
    this.view(this.viewport.name);
    this.viewport.lookAs(lookInAddress());
  }

  showPoses(before, after, part) {
    for (const robot of this.robots.values()) {
      const [a, b] = [before.robots[robot.name], after.robots[robot.name]];
      if (!b) continue;
      const [q, tcp] = [interpolate(a?.q, b.q, part), interpolatePose(a?.tcp, b.tcp, part)];
      const [opening] = b.opening == null ? [null] : interpolate([a?.opening ?? b.opening], [b.opening], part);
      const posture = JSON.stringify([q, tcp, this.ghostOf(robot.name, b), b.tool, b.arc, opening]);
      const flickers = b.arc && after.t > before.t;
      if (posture === robot.posture && !flickers) continue;
      robot.posture = posture;
      robot.showTool(b.tool);
      robot.showOpening(opening);
      robot.show(q, tcp);
      robot.raiseLabel();
      robot.showGhost(this.ghostOf(robot.name, b));
      this.marks.get(robot.name).arc.show(b.arc);
      this.viewport.changed = true;
    }
  }

  ghostOf(name, { ghost }) {
    return this.pinned.get(name) ?? (this.layers.ghost ? ghost : null);
  }

  // ── calls of pages ──

  // Shows the ghost in these joints instead of at the robot's target; null ends that.
  pin(name, q) {
    if (q) this.pinned.set(name, q);
    else this.pinned.delete(name);
  }

  choose(name) {
    this.chosen = name;
    this.showRobots();
    this.frameCamera();
    if (this.viewport.followed) this.view("follow");
  }

  view(name) {
    const robot = this.robots.get(this.chosen);
    this.frameCamera();
    this.viewport.view(name, { follow: name === "follow" ? robot?.chain.tcp : null });
    this.showView();
  }

  showView() {
    for (const button of document.querySelectorAll("[data-view]")) {
      button.classList.toggle("u-chosen", button.dataset.view === this.viewport.name);
    }
  }

  layer(name, on = !this.layers[name]) {
    this.layers[name] = this.userLayers[name] = on;
    this.applyLayers();
    if (name === "reach" && on && !this.marks.get(this.chosen)?.cloud) this.reach(this.chosen);
  }

  clear(name) {
    if (name === "preview") for (const robot of this.marks.keys()) this.showPreview(robot, []);
    if (name === "contacts") {
      [this.dismissed, this.contacts] = [this.contacts, []];
      this.showContacts();
    }
    this.viewport.changed = true;
  }

  // Of the robot's program; the latest of several requests counts. A program without a path has none.
  async preview(robot) {
    const request = {};
    this.previews.set(robot, request);
    const wanted = () => this.previews.get(robot) === request;
    const path = await persist("preview", { robot }, wanted, () => {});
    if (path && wanted()) this.showPreview(robot, path.tcp);
  }

  // Colours the places of the robot's first pallet, of which `index` are done.
  places(robot, index) {
    this.filled.set(robot, index);
    this.marks.get(robot)?.pallets[0]?.fill(index);
    this.viewport.changed = true;
  }

  showPreview(robot, points) {
    this.paths.set(robot, points);
    const path = this.marks.get(robot)?.preview;
    path?.clear();
    path?.add(points);
    this.viewport.changed = true;
  }

  // Computes where a robot reaches, as a background run of the cell, and draws its result: x, y, z in
  // mm from the base, and the number of orientations.
  async reach(robot) {
    const { computing } = document.querySelector("[data-mark=reach-legend]").dataset;
    const note = notice(computing, "info", { spinner: true, timeout: 0, group: false });
    const progress = (now) => void note({ message: `${computing} ${Math.round(100 * now.progress)}%` });
    const result = await orRefused(() => run("reach", { robot, resolution_mm: REACH_RESOLUTION_MM }, progress));
    note();
    const marks = this.marks.get(robot);
    if (!result || !marks) return;
    const { points_mm: points, orientations_tried: tried } = result;
    if (marks.cloud) dispose(marks.cloud);
    const positions = points.map(([x, y, z]) => [x / 1000, y / 1000, z / 1000]);
    marks.cloud = cloud(positions, points.map((point) => point[3] / tried));
    this.robots.get(robot).chain.root.add(marks.cloud);
    this.applyLayers();
  }

  // ── state for tests and scripts ──

  // Names of the links and objects that are red.
  redNames() {
    const links = [...this.robots.values()].flatMap((robot) => [...robot.red].map((link) => `${robot.name}/${link}`));
    return [...links, ...[...this.objects.values()].filter(({ red }) => red).map(({ name }) => name)];
  }

  latest(robot) {
    return feed.latest?.robots[robot];
  }

  frames() {
    return feed.frames;
  }

  report() {
    const robots = {};
    for (const [name, { chain, ghost, object, workFrames, marker, tool }] of this.robots) {
      robots[name] = {
        q: [...chain.q], tcp: chain.tip(), shown: object.visible, screen: this.viewport.onScreen(chain.flange),
        ghost: ghost.root.visible, ghost_q: [...ghost.q], works: workFrames.length, marked: marker.ring.visible,
        fingers: (tool.userData.fingers || []).map(({ object: finger }) => finger.position.toArray()),
      };
    }
    const each = (count) => Object.fromEntries([...this.marks].map(([name, marks]) => [name, count(marks)]));
    return {
      ready: Boolean(this.ready), robots, layers: { ...this.layers }, objects: [...this.objects.keys()],
      parts: Object.fromEntries([...this.parts].map(([name, { object, holder }]) => [name, { holder, at: object.position() }])),
      trail: each((marks) => marks.trail.length), preview: each((marks) => marks.preview.length),
      cloud: each((marks) => marks.cloud?.geometry.attributes.position.count ?? 0),
      pallets: each((marks) => marks.pallets.map(({ count, index }) => [count, index])),
      cameras: each((marks) => marks.view?.getWorldPosition(new THREE.Vector3()).toArray() ?? null),
      contacts: this.contacts, red: this.redNames(), chosen: this.chosen, view: this.viewport.name,
      stale: feed.stale, frames: feed.received, time: this.time,
    };
  }
}

const lookInAddress = () => new URLSearchParams(location.search).get("view") ?? "";

const CALLS = ["load", "choose", "view", "layer", "clear", "preview", "showPreview", "pin", "places"];
const ready = expose("understudy", CALLS, { report: () => ({ ready: false }) });
let scene = null; // built on the first page that shows it
whenReady("#scene", (element) => {
  if (!scene) {
    scene = new Scene();
    const view = (name) => {
      window.understudyFrame.address({ view: name });
      scene.view(name);
    };
    ready({ ...Object.fromEntries([...CALLS, "report"].map((name) => [name, scene[name].bind(scene)])), view, scene });
  }
  scene.attach(element);
});
