// The scene of the cell: what stands where, as the state socket tells it. Talks to the page through
// `window.understudy`; never to the cell.

import { THREE } from "./three/index.js";
import { feed, mix, mixPose } from "./feed.js";
import { Arc, boundary, cloud, preview, weldTrail } from "./marks.js";
import { offer } from "./offer.js";
import { show } from "./readout.js";
import { Robot } from "./robot.js";
import { dispose } from "./shapes.js";
import { Stage } from "./stage.js";
import { Thing } from "./things.js";

const COLORS = {
  robot_color: 0xff5e00, ghost_robot_color: 0x808080, collision_color: 0xff0000,
  trajectory_color: 0x00ff00, weld_color: 0xffd700,
};
const SHOWN = {
  environment: true, ghost: true, preview: true, trail: true,
  volumes: false, workspace: false, reach: false, frames: false,
};
const CONFIGURED = {
  volumes: "show_collision_volumes", preview: "show_trajectory_preview",
  trail: "show_weld_trail", workspace: "show_workspace_boundary",
};

const MOST_CONTACTS = 50;
const RETRY_MS = 1000;
const same = (one, other) => one.robot === other.robot && one.link === other.link && one.object === other.object;
const still = ({ held, tool, tools, frames, ...rest }) => rest; // what of a robot's facts does not change

// → what the cell answers; null where it will not, or the page's process is away (the frame says so)
async function told(address) {
  try {
    const answer = await fetch(address);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

class Scene {
  constructor(place) {
    this.stage = new Stage(place);
    this.layers = { ...SHOWN };
    this.colors = { ...COLORS };
    this.chosen = place.dataset.robot || "";
    this.robots = new Map();
    this.things = new Map(); // what stands around or is held, by name
    this.marks = new Map(); // robot → {trail, preview, arc, cloud, workspace}
    this.contacts = [];
    this.wiped = []; // contacts that were cleared, and that frames from before still tell
    this.byHand = {}; // layer → whether somebody wants to see it
    this.ways = new Map(); // robot → points of its program's way
    this.loads = 0;
    this.pinned = new Map(); // robot → joints of a ghost that somebody wants to look at
    this.seen = null;
    feed.onFrame((frame) => this.hear(frame));
    this.load();
    this.stage.renderer.setAnimationLoop(() => this.draw());
  }

  // Of two that are under way the later one counts, whichever is answered first.
  async load() {
    const mine = ++this.loads;
    const facts = await told("/api/scene");
    if (mine !== this.loads) return;
    if (facts) this.build(facts);
    else setTimeout(() => mine === this.loads && this.load(), RETRY_MS);
  }

  // ── what stands there ──

  build(facts) {
    const cast = JSON.stringify(Object.entries(facts.robots || {}).map(([name, robot]) => [name, still(robot)]));
    if (cast !== this.cast) this.bring(facts);
    this.cast = cast;
    this.furnish(facts);
    this.apply();
    if (!this.ready) this.view(this.stage.name); // what somebody chose meanwhile stays
    this.ready = true;
  }

  // Other robots than before; the cell's file has a say in colours, and in what is shown at first.
  bring({ robots = {}, visualization: wishes = {} }) {
    for (const { object } of [...this.robots.values(), ...this.marks.values()]) dispose(object);
    for (const kept of [this.robots, this.marks]) kept.clear();
    for (const color in COLORS) this.colors[color] = wishes[color] ?? COLORS[color];
    for (const layer in CONFIGURED) this.layers[layer] = this.byHand[layer] ?? wishes[CONFIGURED[layer]] ?? SHOWN[layer];
    for (const [name, robot] of Object.entries(robots)) this.addRobot(name, robot);
    for (const [name, points] of this.ways) this.marks.get(name)?.preview.add(points);
    if (!this.robots.has(this.chosen)) this.chosen = this.robots.keys().next().value ?? "";
    this.arrange();
  }

  // What stands around, and what is held.
  furnish({ robots = {}, environment = [] }) {
    for (const thing of this.things.values()) thing.strike();
    this.things.clear();
    for (const thing of environment) this.addThing(thing);
    for (const [name, { held = [], tools = {}, frames = {} }] of Object.entries(robots)) {
      const robot = this.robots.get(name);
      for (const thing of held) this.addThing(thing, robot.chain.flange);
      robot.retool(tools);
      robot.stake(frames);
    }
    this.redden();
  }

  addRobot(name, facts) {
    const robot = new Robot(name, facts, this.colors);
    const marks = {
      object: new THREE.Group(), trail: weldTrail(this.colors.weld_color),
      preview: preview(this.colors.trajectory_color), arc: new Arc(), cloud: null, workspace: null,
    };
    marks.object.add(marks.trail.object, marks.preview.object);
    robot.chain.tcp.add(marks.arc.object);
    this.stage.scene.add(robot.object, marks.object);
    this.robots.set(name, robot);
    this.marks.set(name, marks);
  }

  addThing(facts, hand = null) {
    const thing = new Thing(facts, { held: Boolean(hand) });
    (hand || this.stage.scene).add(thing.object);
    this.things.set(facts.name, thing);
  }

  // ── who is in the picture ──

  // Robots that stand on one spot have no place of their own: of those only the chosen one is shown.
  arrange() {
    const taken = new Set();
    const spot = (robot) => robot.facts.base.map((value) => value.toFixed(4)).join();
    const first = this.robots.get(this.chosen);
    for (const robot of [first, ...this.robots.values()]) {
      if (!robot) continue;
      robot.object.visible = robot === first || !taken.has(spot(robot));
      taken.add(spot(robot));
      this.marks.get(robot.name).object.visible = robot.object.visible;
    }
    this.apply();
  }

  look() {
    const box = new THREE.Box3();
    for (const robot of this.robots.values()) {
      if (robot.object.visible) box.expandByObject(robot.chain.root);
    }
    for (const { object, ground } of this.things.values()) if (!ground) box.expandByObject(object);
    box.expandByPoint(new THREE.Vector3(0.5, 0.35, 0)).expandByPoint(new THREE.Vector3(-0.3, -0.35, 1));
    this.stage.frameOn(box);
  }

  apply() {
    const { layers } = this;
    this.stage.changed = true;
    for (const button of document.querySelectorAll("[data-layer]")) {
      button.classList.toggle("u-chosen", layers[button.dataset.layer]);
    }
    for (const { object } of this.things.values()) object.visible = layers.environment;
    for (const robot of this.robots.values()) {
      const marks = this.marks.get(robot.name);
      robot.posture = null;
      for (const skin of robot.volumes) skin.visible = layers.volumes;
      for (const arrows of [...robot.triads, ...robot.works]) arrows.visible = layers.frames;
      marks.trail.object.visible = layers.trail;
      marks.preview.object.visible = layers.preview;
      if (layers.workspace && !marks.workspace && robot.isArm) this.surround(robot, marks);
      if (marks.workspace) marks.workspace.visible = layers.workspace;
      if (marks.cloud) marks.cloud.visible = layers.reach;
    }
  }

  surround(robot, marks) {
    const { outline, from, to } = robot.outline();
    marks.workspace = boundary(outline, from, to);
    robot.chain.root.add(marks.workspace);
  }

  // ── what the cell tells ──

  hear(frame) {
    this.seen = frame.t;
    for (const [name, points] of Object.entries(feed.trails)) this.weld(name, points);
    this.touch(frame.contacts || []);
    const joints = this.robots.get(this.chosen)?.chain.movers.map(({ joint }) => joint) || [];
    show(document.getElementById("readout"), frame.robots[this.chosen], joints);
  }

  weld(robot, points) {
    const trail = this.marks.get(robot)?.trail;
    if (!trail || (trail.told === points && trail.length === points.length)) return;
    if (trail.told !== points) trail.clear();
    trail.told = points;
    trail.add(points.slice(trail.length));
    this.stage.changed = true;
  }

  // What touched stays red until somebody clears it; what still touches is red again at once.
  touch(contacts) {
    const among = (all) => (contact) => all.some((each) => same(each, contact));
    this.wiped = this.wiped.filter(among(contacts)); // once it is told no more it can come anew
    const old = among([...this.contacts, ...this.wiped]);
    const fresh = contacts.filter((contact) => !old(contact));
    if (!fresh.length) return;
    this.contacts = [...this.contacts, ...fresh].slice(-MOST_CONTACTS);
    this.redden();
  }

  redden() {
    const color = this.colors.collision_color;
    const touching = new Set(this.contacts.flatMap(({ robot, link, object }) =>
      [`${robot}/${link}`, `${robot}/${object}`, link, object]));
    for (const robot of this.robots.values()) {
      const names = robot.bodies().filter((link) => touching.has(`${robot.name}/${link}`));
      robot.redden(new Set(names), color);
    }
    for (const thing of this.things.values()) thing.redden(touching.has(thing.name), color);
    this.stage.changed = true;
  }

  draw() {
    const shown = feed.between();
    if (shown && this.ready) this.pose(...shown);
    this.stage.draw();
  }

  pose(before, after, part) {
    for (const robot of this.robots.values()) {
      const [a, b] = [before.robots[robot.name], after.robots[robot.name]];
      if (!b) continue;
      const [q, tcp] = [mix(a?.q, b.q, part), mixPose(a?.tcp, b.tcp, part)];
      const posture = JSON.stringify([q, tcp, this.ghostOf(robot.name, b), b.tool, b.arc]);
      const flickers = b.arc && after.t > before.t;
      if (posture === robot.posture && !flickers) continue;
      robot.posture = posture;
      robot.showTool(b.tool);
      robot.show(q, tcp);
      robot.showGhost(this.ghostOf(robot.name, b));
      this.marks.get(robot.name).arc.burn(b.arc);
      this.stage.changed = true;
    }
  }

  ghostOf(name, { ghost }) {
    return this.pinned.get(name) ?? (this.layers.ghost ? ghost : null);
  }

  // ── what the page asks ──

  // A ghost in this posture instead of at the robot's target; null: no more.
  pin(name, q) {
    if (q) this.pinned.set(name, q);
    else this.pinned.delete(name);
  }

  choose(name) {
    this.chosen = name;
    this.arrange();
    this.look();
    if (this.stage.followed) this.view("follow");
  }

  view(name) {
    const robot = this.robots.get(this.chosen);
    this.look();
    for (const button of document.querySelectorAll("[data-view]")) {
      button.classList.toggle("u-chosen", button.dataset.view === name);
    }
    this.stage.view(name, { follow: name === "follow" ? robot?.chain.tcp : null });
  }

  layer(name, on = !this.layers[name]) {
    this.layers[name] = this.byHand[name] = on;
    this.apply();
    if (name === "reach" && on && !this.marks.get(this.chosen)?.cloud) window.emitEvent("reach_wanted");
  }

  clear(name) {
    if (name === "preview") for (const robot of this.marks.keys()) this.showPreview(robot, []);
    if (name === "contacts") {
      [this.wiped, this.contacts] = [this.contacts, []];
      this.redden();
    }
    this.stage.changed = true;
  }

  async preview(robot) {
    const way = await told(`/api/preview?robot=${encodeURIComponent(robot)}`);
    if (way) this.showPreview(robot, way.tcp);
  }

  showPreview(robot, points) {
    this.ways.set(robot, points);
    const way = this.marks.get(robot)?.preview;
    way?.clear();
    way?.add(points);
    this.stage.changed = true;
  }

  // What came out of a run: x, y, z in mm from the robot's foot, and in how many directions.
  async reach(robot, run) {
    const answer = await told(`/api/run_result?id=${run}`);
    const mine = this.marks.get(robot);
    if (!answer || !mine) return;
    const { points_mm: points, orientations_tried: tried } = answer.result;
    if (mine.cloud) dispose(mine.cloud);
    const places = points.map(([x, y, z]) => [x / 1000, y / 1000, z / 1000]);
    mine.cloud = cloud(places, points.map((point) => point[3] / tried));
    this.robots.get(robot).chain.root.add(mine.cloud);
    this.apply();
  }

  // ── what tests and curious people see ──

  // Links and things that are red.
  reddened() {
    const links = [...this.robots.values()].flatMap((robot) => [...robot.red].map((link) => `${robot.name}/${link}`));
    return [...links, ...[...this.things.values()].filter(({ red }) => red).map(({ name }) => name)];
  }

  told(robot) {
    return feed.latest?.robots[robot];
  }

  frames() {
    return feed.frames;
  }

  report() {
    const robots = {};
    for (const [name, { chain, ghost, object, works }] of this.robots) {
      robots[name] = {
        q: [...chain.q], tcp: chain.tip(), shown: object.visible,
        ghost: ghost.root.visible, ghost_q: [...ghost.q], works: works.length,
      };
    }
    const each = (count) => Object.fromEntries([...this.marks].map(([name, marks]) => [name, count(marks)]));
    return {
      ready: Boolean(this.ready), robots, layers: { ...this.layers }, objects: [...this.things.keys()],
      trail: each((marks) => marks.trail.length), preview: each((marks) => marks.preview.length),
      cloud: each((marks) => marks.cloud?.geometry.attributes.position.count ?? 0),
      contacts: this.contacts, red: this.reddened(), chosen: this.chosen, view: this.stage.name,
      stale: feed.stale, frames: feed.received, time: this.seen,
    };
  }
}

// After the page's own socket: building the scene can keep a slow machine busy for seconds, and a
// page that does not answer meanwhile is taken for gone.
function open() {
  const place = document.getElementById("scene");
  if (!place || !window.socket?.connected) return setTimeout(open, 50);
  const scene = new Scene(place);
  take({ ...Object.fromEntries([...CALLS, "report"].map((name) => [name, scene[name].bind(scene)])), scene });
}

const CALLS = ["load", "choose", "view", "layer", "clear", "preview", "reach", "showPreview", "pin"];
const take = offer("understudy", CALLS, { report: () => ({ ready: false }) });

open();
