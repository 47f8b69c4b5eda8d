// The scene of the cell: what stands where, as the state socket tells it. Talks to the page through
// `window.understudy`; never to the cell.

import { THREE } from "./three/index.js";
import { feed, mix } from "./feed.js";
import { matt } from "./materials.js";
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
    const material = matt(0x56616c);
    const object = body([facts], material);
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
    if (this.seen !== null && frame.t < this.seen) this.clear("trail"); // put back to an earlier time
    this.seen = frame.t;
    for (const [name, [first, points]] of Object.entries(frame.trail || {})) {
      const trail = this.marks.get(name)?.trail;
      if (!trail) continue;
      if (first === 0 && trail.length) trail.clear(); // told from the beginning: another trail
      const fresh = points.slice(Math.max(0, trail.length - first));
      if (!fresh.length) continue;
      trail.add(fresh);
      this.stage.changed = true;
    }
    this.touch(frame.contacts || []);
    this.tell(frame.robots[this.chosen]);
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

  touch(contacts) {
    if (!contacts.length && !this.contacts.length) return;
    this.contacts = contacts;
    this.stage.changed = true;
    const touching = new Set(contacts.flatMap(({ robot, a, b }) => [`${robot}/${a}`, `${robot}/${b}`, a, b]));
    for (const robot of this.robots.values()) {
      const names = [...robot.links.keys()].filter((link) => touching.has(`${robot.name}/${link}`));
      robot.alarm(new Set(names), this.colors.collision_color);
    }
    for (const [name, { material, ground }] of this.objects) {
      const touched = touching.has(name);
      material.emissive.set(touched ? this.colors.collision_color : 0x000000);
      material.visible = touched || !ground;
    }
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
      if (posture === robot.posture && !b.arc) continue;
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
  }

  clear(name) {
    for (const marks of this.marks.values()) {
      if (name === "trail" || name === "preview") marks[name].clear();
      if (name === "reach" && marks.cloud) [marks.cloud] = [dispose(marks.cloud)];
    }
    if (name === "contacts") this.touch([]);
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

  showCloud(robot, points, marks) {
    const mine = this.marks.get(robot);
    if (!mine) return;
    if (mine.cloud) dispose(mine.cloud);
    mine.cloud = cloud(points, marks);
    this.robots.get(robot).chain.root.add(mine.cloud);
    this.layer("reach", true);
  }

  // ── what tests and curious people see ──

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
      contacts: this.contacts, chosen: this.chosen, view: this.stage.name, stale: feed.stale,
      frames: feed.received, time: this.seen,
    };
  }
}

const figure = (value, angle) =>
  angle ? `${((value * 180) / Math.PI).toFixed(2)}°` : `${(value * 1000).toFixed(1)} mm`;

// After the page's own socket: building the scene can keep a slow machine busy for seconds, and a
// page that does not answer meanwhile is taken for gone.
function open() {
  const place = document.getElementById("scene");
  if (!place || !window.socket?.connected) return setTimeout(open, 50);
  const scene = new Scene(place);
  const offered = ["choose", "view", "layer", "clear", "preview", "showPreview", "showCloud", "pin", "report"];
  window.understudy = Object.fromEntries(offered.map((name) => [name, scene[name].bind(scene)]));
  window.understudy.scene = scene;
}

open();
