// The scene of the cell: what stands where, as the state socket tells it. Talks to the page through
// `window.understudy`; never to the cell.

import { THREE } from "./three/index.js";
import { feed, mix } from "./feed.js";
import { matt, veil } from "./materials.js";
import { Arc, boundary, cloud, preview, weldTrail } from "./marks.js";
import { Robot } from "./robot.js";
import { body, dispose } from "./shapes.js";
import { Stage } from "./stage.js";

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
const same = (one, other) => one.robot === other.robot && one.a === other.a && one.b === other.b;

class Scene {
  constructor(place) {
    this.stage = new Stage(place);
    this.layers = { ...SHOWN };
    this.colors = { ...COLORS };
    this.chosen = place.dataset.robot || "";
    this.robots = new Map();
    this.objects = new Map(); // environment: name → {object, material}
    this.marks = new Map(); // robot → {trail, preview, arc, cloud, workspace}
    this.contacts = [];
    this.pinned = new Map(); // robot → joints of a ghost that somebody wants to look at
    this.seen = null;
    feed.onFrame((frame) => this.hear(frame));
    this.load();
    this.stage.renderer.setAnimationLoop(() => this.draw());
  }

  async load() {
    const answer = await fetch("/api/scene");
    if (answer.ok) this.build(await answer.json());
    else setTimeout(() => this.load(), 1000);
  }

  // ── what stands there ──

  build(facts) {
    this.strike();
    const wishes = facts.visualization || {};
    for (const color in COLORS) if (wishes[color] !== undefined) this.colors[color] = wishes[color];
    for (const layer in CONFIGURED) this.layers[layer] = wishes[CONFIGURED[layer]] ?? this.layers[layer];
    for (const [name, robot] of Object.entries(facts.robots || {})) this.addRobot(name, robot);
    for (const thing of facts.environment || []) this.addObject(thing);
    if (!this.robots.has(this.chosen)) this.chosen = this.robots.keys().next().value ?? "";
    this.arrange();
    this.view("iso");
    this.ready = true;
  }

  strike() {
    for (const { object } of [...this.robots.values(), ...this.objects.values()]) dispose(object);
    for (const marks of this.marks.values()) dispose(marks.object);
    this.robots.clear();
    this.objects.clear();
    this.marks.clear();
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

  addObject(facts) {
    const material = facts.zone ? veil(0xffd23f) : matt(0x56616c);
    const object = body([facts], material, { shadow: !facts.zone });
    const box = new THREE.Box3().setFromObject(object);
    const ground = box.max.z < 0.005 && box.max.x - box.min.x > 1.5; // the grid stands for it
    const ink = new THREE.LineBasicMaterial({ color: 0x11161b, transparent: true, opacity: 0.55 });
    if (ground) material.visible = false;
    else for (const mesh of object.children) {
      mesh.add(new THREE.LineSegments(new THREE.EdgesGeometry(mesh.geometry, 30), ink));
    }
    this.stage.scene.add(object);
    this.objects.set(facts.name, { object, material, ground });
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
    for (const { object, ground } of this.objects.values()) if (!ground) box.expandByObject(object);
    box.expandByPoint(new THREE.Vector3(0.5, 0.35, 0)).expandByPoint(new THREE.Vector3(-0.3, -0.35, 1));
    this.stage.frameOn(box);
  }

  apply() {
    const { layers } = this;
    this.stage.changed = true;
    for (const button of document.querySelectorAll("[data-layer]")) {
      button.classList.toggle("u-chosen", layers[button.dataset.layer]);
    }
    for (const { object } of this.objects.values()) object.visible = layers.environment;
    for (const robot of this.robots.values()) {
      const marks = this.marks.get(robot.name);
      robot.posture = null;
      for (const skin of robot.volumes) skin.visible = layers.volumes;
      for (const arrows of robot.triads) arrows.visible = layers.frames;
      marks.trail.object.visible = layers.trail;
      marks.preview.object.visible = layers.preview;
      if (layers.workspace && !marks.workspace && robot.chain.movers.length > 2) this.surround(robot, marks);
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
    this.tell(frame.robots[this.chosen]);
  }

  weld(robot, points) {
    const trail = this.marks.get(robot)?.trail;
    if (!trail || (trail.told === points && trail.length === points.length)) return;
    if (trail.told !== points) trail.clear();
    trail.told = points;
    trail.add(points.slice(trail.length));
    this.stage.changed = true;
  }

  // The figures under the picture: joints, then the tip.
  tell(robot) {
    const place = document.getElementById("readout");
    if (!place || !robot) return;
    const joints = this.robots.get(this.chosen)?.chain.movers || [];
    const lines = robot.q.map((value, n) => [`J${n + 1}`, figure(value, joints[n]?.joint.type !== "prismatic")]);
    ["X", "Y", "Z", "RX", "RY", "RZ"].forEach((name, n) => lines.push([name, figure(robot.tcp[n] ?? 0, n > 2)]));
    while (place.children.length > lines.length) place.lastChild.remove();
    lines.forEach(([name, value], n) => {
      const cell = place.children[n] || place.appendChild(document.createElement("div"));
      if (cell.dataset.shown === name + value) return;
      cell.dataset.shown = name + value;
      cell.replaceChildren(Object.assign(document.createElement("b"), { textContent: name }), value);
    });
  }

  // What touched stays red until somebody clears it; what still touches is red again at once.
  touch(contacts) {
    const fresh = contacts.filter((contact) => !this.contacts.some((known) => same(known, contact)));
    if (!fresh.length) return;
    this.contacts = [...this.contacts, ...fresh].slice(-MOST_CONTACTS);
    this.redden();
  }

  redden() {
    const touching = new Set(this.contacts.flatMap(({ robot, a, b }) => [`${robot}/${a}`, `${robot}/${b}`, a, b]));
    for (const robot of this.robots.values()) {
      const names = [...robot.links.keys()].filter((link) => touching.has(`${robot.name}/${link}`));
      robot.alarm(new Set(names), this.colors.collision_color);
    }
    for (const [name, { material, ground }] of this.objects) {
      const touched = touching.has(name);
      material.emissive.set(touched ? this.colors.collision_color : 0x000000);
      material.visible = touched || !ground;
    }
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
      const [q, tcp] = [mix(a?.q, b.q, part), mix(a?.tcp, b.tcp, part)];
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
    this.layers[name] = on;
    this.apply();
    if (name === "reach" && on && !this.marks.get(this.chosen)?.cloud) window.emitEvent("reach_wanted");
  }

  clear(name) {
    if (name === "preview") for (const marks of this.marks.values()) marks.preview.clear();
    if (name === "contacts") {
      this.contacts = [];
      this.redden();
    }
    this.stage.changed = true;
  }

  async preview(robot) {
    const answer = await fetch(`/api/preview?robot=${encodeURIComponent(robot)}`);
    if (answer.ok) this.showPreview(robot, (await answer.json()).tcp);
  }

  showPreview(robot, points) {
    const way = this.marks.get(robot)?.preview;
    way?.clear();
    way?.add(points);
    this.stage.changed = true;
  }

  // What came out of a run: x, y, z in mm from the robot's foot, and in how many directions.
  async reach(robot, run) {
    const answer = await fetch(`/api/run_result?id=${run}`);
    const mine = this.marks.get(robot);
    if (!answer.ok || !mine) return;
    const { points_mm: points, orientations_tried: tried } = (await answer.json()).result;
    if (mine.cloud) dispose(mine.cloud);
    const places = points.map(([x, y, z]) => [x / 1000, y / 1000, z / 1000]);
    mine.cloud = cloud(places, points.map((point) => point[3] / tried));
    this.robots.get(robot).chain.root.add(mine.cloud);
    this.apply();
  }

  // ── what tests and curious people see ──

  // Links and objects that are red.
  reddened() {
    const red = ({ emissive }) => emissive.getHex() === this.colors.collision_color;
    const links = [...this.robots.values()].flatMap((robot) =>
      [...robot.links].filter(([, material]) => red(material)).map(([link]) => `${robot.name}/${link}`));
    return [...links, ...[...this.objects].filter(([, { material }]) => red(material)).map(([name]) => name)];
  }

  told(robot) {
    return feed.latest?.robots[robot];
  }

  report() {
    const robots = {};
    for (const [name, robot] of this.robots) {
      robots[name] = { q: [...robot.chain.q], tcp: robot.chain.tip(), ghost: robot.ghost.root.visible, ghost_q: [...robot.ghost.q], shown: robot.object.visible };
    }
    return {
      ready: Boolean(this.ready), robots, layers: { ...this.layers }, objects: [...this.objects.keys()],
      trail: Object.fromEntries([...this.marks].map(([name, marks]) => [name, marks.trail.length])),
      preview: Object.fromEntries([...this.marks].map(([name, marks]) => [name, marks.preview.length])),
      cloud: Object.fromEntries([...this.marks].map(([name, { cloud: c }]) => [name, c?.geometry.attributes.position.count ?? 0])),
      contacts: this.contacts, red: this.reddened(), chosen: this.chosen, view: this.stage.name, stale: feed.stale,
      frames: feed.received, time: this.seen,
    };
  }
}

const round = (value, digits) => value.toFixed(digits).replace(/^-(0\.0+)$/, "$1");
const figure = (value, angle) =>
  angle ? `${round((value * 180) / Math.PI, 2)}°` : `${round(value * 1000, 1)} mm`;

// After the page's own socket: building the scene can keep a slow machine busy for seconds, and a
// page that does not answer meanwhile is taken for gone.
function open() {
  const place = document.getElementById("scene");
  if (!place || !window.socket?.connected) return setTimeout(open, 50);
  const scene = new Scene(place);
  const offered = [
    "choose", "view", "layer", "clear", "preview", "reach", "showPreview", "pin", "report",
  ];
  window.understudy = Object.fromEntries(offered.map((name) => [name, scene[name].bind(scene)]));
  window.understudy.scene = scene;
}

open();
