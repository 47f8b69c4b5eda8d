// A robot in the scene: its joint chain (the forward kinematics), its bodies and its tool; and the
// same chain again as a ghost.

import { THREE } from "../three/index.js";
import { ghost, paint, plain, steel, tinted } from "./materials.js";
import { body, dispose, drawable, matrix, meshColor, part, place, roundedCylinder, solid } from "./shapes.js";
import { Marker, triad } from "./marks.js";

const GRAPHITE = plain ? 0x59646f : 0x2b3138; // plain materials reflect nothing
const COVER = plain ? 0x77828d : 0x4a535c;
const STEEL = 0xb9c2ca;
const COPPER = 0xc9814f;
const FINGER_M = 0.012; // thickness of a plain finger
const LABEL_MS = 1000;
const SECTOR_DEG = 5; // of the workspace outline

// The frames of a chain, each one in the frame of the joint before it.
export class Chain {
  constructor(facts) {
    this.root = place(new THREE.Group(), facts.vehicle ? null : facts.base); // a vehicle drives away from there
    this.facts = facts;
    this.frames = [];
    this.movers = [];
    let above = this.root;
    for (const joint of facts.joints || []) {
      const fixed = place(new THREE.Group(), joint.origin);
      const moved = new THREE.Group();
      above.add(fixed);
      fixed.add(moved);
      this.frames.push(moved);
      if (joint.type !== "fixed") this.movers.push({ moved, axis: new THREE.Vector3(...joint.axis).normalize(), joint });
      above = moved;
    }
    this.flange = above;
    this.tcp = new THREE.Group();
    this.flange.add(this.tcp);
    this.q = [];
    this.useTool(facts.tool);
  }

  frameOf(link) {
    return link.joint < 0 ? this.root : this.frames[link.joint];
  }

  useTool(number) {
    const tool = (this.facts.tools || {})[String(number)];
    const rows = tool ? tool.tcp : null;
    this.tcp.matrix.identity();
    if (rows) this.tcp.matrix.copy(matrix(rows));
    this.tcp.matrix.decompose(this.tcp.position, this.tcp.quaternion, this.tcp.scale);
    return tool;
  }

  set(q) {
    this.q = q;
    this.movers.forEach(({ moved, axis, joint }, n) => {
      if (joint.type === "prismatic") moved.position.copy(axis).multiplyScalar(q[n] ?? 0);
      else moved.quaternion.setFromAxisAngle(axis, q[n] ?? 0);
    });
  }

  // The tool tip in the world: x y z in metres, then rx ry rz with R = Rz·Ry·Rx.
  tip() {
    this.root.updateWorldMatrix(true, true);
    const at = new THREE.Vector3();
    const turn = new THREE.Quaternion();
    this.tcp.matrixWorld.decompose(at, turn, new THREE.Vector3());
    const angles = new THREE.Euler().setFromQuaternion(turn, "ZYX");
    return [at.x, at.y, at.z, angles.x, angles.y, angles.z];
  }
}

export class Robot {
  constructor(name, facts, colors) {
    this.name = name;
    this.facts = facts;
    this.colors = colors;
    this.object = new THREE.Group();
    this.chain = new Chain(facts);
    this.ghost = new Chain(facts);
    this.object.add(this.chain.root, this.ghost.root);
    this.links = new Map(); // link name → its own material
    this.red = new Set();
    this.volumes = [];
    this.triads = [];
    this.workFrames = []; // as arrows
    this.tool = null;
    this.addBodies();
    this.showTool(facts.tool);
    this.ghost.root.visible = false;
    this.marker = new Marker(name, this.footRadius());
    this.marker.place(this.chain.root.matrix);
    this.raiseLabel(-Infinity);
    this.object.add(this.marker.object);
  }

  // Extends a box by the bodies of the robot in its present posture.
  expand(box) {
    this.chain.root.updateWorldMatrix(true, true);
    this.chain.root.traverseVisible((each) => {
      if (!each.isMesh || !each.userData.solid) return;
      if (!each.geometry.boundingBox) each.geometry.computeBoundingBox();
      box.union(each.geometry.boundingBox.clone().applyMatrix4(each.matrixWorld));
    });
    box.expandByPoint(this.chain.root.getWorldPosition(new THREE.Vector3()));
  }

  footRadius() {
    if (this.facts.vehicle) return Math.hypot(this.facts.vehicle.length, this.facts.vehicle.width) / 2;
    const shapes = (this.facts.links || [])[0]?.shapes || [];
    return Math.max(0.12, ...shapes.map(({ radius = 0, dimensions = [] }) => Math.max(radius, (dimensions[0] || 0) / 2))) * 1.5;
  }

  // Puts the name above the body in its present posture, at most once a second.
  raiseLabel(now = performance.now()) {
    if (now - (this.raised ?? -Infinity) < LABEL_MS) return;
    this.raised = now;
    const box = new THREE.Box3();
    this.expand(box);
    this.marker.raise(box.max.z);
  }

  showChosen(chosen) {
    this.marker.show(chosen);
  }

  get free() {
    return this.chain.movers.length === 0; // a pose without joints
  }

  get isArm() {
    return !this.bodiless && this.chain.movers.length > 2;
  }

  get isGantry() {
    return this.chain.movers.some(({ joint }) => joint.type === "prismatic");
  }

  // What cannot be drawn of it: [link, reason].
  get undrawn() {
    return (this.facts.links || []).flatMap((link) =>
      link.shapes.filter(({ problem }) => problem).map(({ problem }) => [link.name, problem]));
  }

  get bodiless() {
    return !(this.facts.links || []).length;
  }

  addBodies() {
    const transparent = ghost(this.colors.ghost_robot_color);
    const volume = new THREE.MeshBasicMaterial({ color: 0x6cc7ff, wireframe: true, transparent: true, opacity: 0.22 });
    const covers = this.covers();
    for (const [number, link] of (this.facts.links || []).entries()) {
      const color = this.colorOf(number);
      const shapes = drawable(link.shapes);
      const material = plain || shapes.some(meshColor) ? tinted() : paint(color);
      this.links.set(link.name, material);
      const parts = shapes.map((shape) => part(shape, meshColor(shape) ?? color));
      if (plain) parts.push(...(covers.get(this.chain.frameOf(link)) ?? []));
      if (plain) covers.delete(this.chain.frameOf(link));
      if (parts.length) this.chain.frameOf(link).add(solid(parts, material));
      if (link.joint >= 0) this.ghost.frameOf(link).add(body(link.shapes, transparent, { shadow: false }));
      const skin = body(link.collision || link.shapes, volume, { shadow: false });
      this.volumes.push(skin);
      this.chain.frameOf(link).add(skin);
    }
    for (const [frame, parts] of covers) frame.add(...parts.map((each) => solid([each], steel(each.color))));
    if (this.facts.vehicle) this.chain.flange.add(vehicle(this.facts.vehicle, this.colors.robot_color));
    else if (this.bodiless) this.chain.flange.add(pointer(this.colors.robot_color, this.isGantry), triad(0.16));
    for (const frame of [this.chain.root, ...this.chain.frames]) this.addTriad(frame, 0.14);
    this.addTriad(this.chain.tcp, 0.1);
  }

  addTriad(frame, size) {
    const arrows = triad(size);
    this.triads.push(arrows);
    frame.add(arrows);
  }

  // Base and wrist are dark, the other links have the robot's colour.
  colorOf(number) {
    const last = (this.facts.links || []).length;
    const dark = number === 0 || (last > 4 && number >= last - 3);
    return dark ? GRAPHITE : this.colors.robot_color;
  }

  // Joint covers: a ring if the axis is along the link, caps if it is across. → frame → parts
  covers() {
    const found = new Map();
    const before = new Map((this.facts.links || []).map((link) => [link.joint, link]));
    for (const { moved, axis, joint } of this.chain.movers) {
      const number = this.chain.frames.indexOf(moved);
      const shape = [before.get(number), before.get(number - 1)].flatMap((link) => link?.shapes || []).find((s) => s.radius);
      if (!shape || joint.type !== "revolute") continue;
      const along = Math.abs(direction(shape).dot(axis)) > 0.7;
      const r = shape.radius;
      const sizes = along
        ? [[r * 1.05, r * 0.3, COVER], [r * 1.07, r * 0.08, STEEL]]
        : [[r * 0.84, r * 2.1, COVER], [r * 0.5, r * 2.18, STEEL]];
      const turn = new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 0, 1), axis);
      found.set(moved, sizes.map(([radius, length, color]) => ({ geometry: roundedCylinder(radius, length).applyQuaternion(turn), color })));
    }
    return found;
  }

  showTool(number) {
    if (this.toolNumber === number) return;
    this.toolNumber = number;
    if (this.tool) dispose(this.tool);
    const facts = this.chain.useTool(number);
    this.ghost.useTool(number);
    this.tool = facts ? toolBody(facts, this.facts.fingers) : new THREE.Group();
    this.chain.flange.add(this.tool);
    this.showOpening(this.opening);
  }

  // Moves the fingers of the tool: `opening` in metres between them, null without a gripper.
  showOpening(opening) {
    this.opening = opening;
    if (opening == null || !this.facts.fingers) return;
    const inwards = (this.facts.fingers.widest - opening) / 2;
    for (const { object, home, side } of this.tool.userData.fingers || []) {
      object.position.copy(home).addScaledVector(side, -inwards);
    }
  }

  // Tools whose TCP may have been measured again.
  updateTools(tools) {
    if (JSON.stringify(tools) === JSON.stringify(this.facts.tools || {})) return;
    this.facts.tools = tools;
    const number = this.toolNumber;
    this.toolNumber = null;
    this.showTool(number);
  }

  // Work frames by name (G54 …), relative to the frame of the tool pose.
  showWorkFrames(frames) {
    this.workFrames.forEach(dispose);
    this.workFrames = Object.values(frames).map((rows) => place(triad(0.16), rows));
    if (this.workFrames.length) this.object.add(...this.workFrames);
  }

  show(q, tcp) {
    if (!this.free) return this.chain.set(q);
    this.chain.q = q;
    const [x, y, z, rx, ry, rz] = tcp;
    this.chain.flange.position.set(x, y, z);
    this.chain.flange.rotation.set(rx, ry, rz, "ZYX");
    if (this.facts.vehicle) this.marker.object.position.set(x, y, z);
  }

  showGhost(q) {
    const differs = q && this.chain.q.some((angle, n) => Math.abs(angle - q[n]) > 0.01);
    this.ghost.root.visible = Boolean(differs) && !this.free;
    if (this.ghost.root.visible) this.ghost.set(q);
  }

  // Names of the bodies that can collide: the links, then the shapes of the tool.
  bodies() {
    const tool = (this.facts.tools || {})[String(this.toolNumber)];
    return [...this.links.keys(), ...(tool?.shapes || []).map((shape) => `${tool.name}.${shape.name}`)];
  }

  showContacts(names, color) {
    this.red = names;
    for (const [name, material] of this.links) {
      material.emissive.set(names.has(name) ? color : 0x000000);
      material.emissiveIntensity = 0.85;
    }
    const touched = [...names].some((name) => !this.links.has(name));
    this.tool.traverse(({ material }) => material?.emissive?.set(touched ? color : 0x000000));
  }

  // Workspace outline in the plane of the arm: [r, z] for each direction from the shoulder.
  outline() {
    const bare = new Chain({ ...this.facts, base: null, tool: this.toolNumber });
    const [turn, ...others] = bare.movers;
    const ranges = [others[0], others[1], others[3]].map((each) => each && [each.joint.lower ?? -Math.PI, each.joint.upper ?? Math.PI]);
    const farthest = new Map();
    bare.tip();
    const shoulder = others[0].moved.getWorldPosition(new THREE.Vector3()).z;
    for (const [a, b, c] of grid(ranges)) {
      bare.set([0, a, b, 0, c, 0]);
      const [x, y, z] = bare.tip();
      const [r, h] = [Math.hypot(x, y), z - shoulder];
      const sector = Math.round((Math.atan2(h, r) * 180) / Math.PI / SECTOR_DEG);
      if (!(farthest.get(sector) >= Math.hypot(r, h))) farthest.set(sector, Math.hypot(r, h));
    }
    const sectors = [...farthest.keys()].sort((m, n) => m - n);
    const outline = sectors.map((sector) => {
      const angle = (sector * SECTOR_DEG * Math.PI) / 180;
      return [Math.cos(angle) * farthest.get(sector), shoulder + Math.sin(angle) * farthest.get(sector)];
    });
    return { outline, from: turn.joint.lower ?? -Math.PI, to: turn.joint.upper ?? Math.PI };
  }
}

function* grid([first, second, third]) {
  const steps = ([low, high], count) => Array.from({ length: count }, (_, n) => low + ((high - low) * n) / (count - 1));
  for (const a of steps(first, 41))
    for (const b of steps(second, 41))
      for (const c of third ? steps(third, 7) : [0]) yield [a, b, c];
}

function direction(shape) {
  return new THREE.Vector3(0, 0, 1).transformDirection(matrix(shape.origin));
}

// A robot without a model is drawn as a tool tip that points along its z, or downwards.
// A robot that drives: chassis, cover and a bar in front.
function vehicle({ length, width, height, ahead }, color) {
  const box = (x, z, sizes, tint) => part({ type: "box", dimensions: sizes, origin: [1, 0, 0, x, 0, 1, 0, 0, 0, 0, 1, z, 0, 0, 0, 1] }, tint);
  const parts = [
    box(ahead, 0.45 * height, [length, width, 0.7 * height], GRAPHITE),
    box(ahead, 0.9 * height, [0.92 * length, 0.92 * width, 0.2 * height], color),
    box(ahead + 0.49 * length, 0.5 * height, [0.04 * length, 0.7 * width, 0.25 * height], STEEL),
  ];
  return solid(parts, tinted());
}

function pointer(color, down) {
  const group = new THREE.Group();
  group.rotation.x = down ? Math.PI : 0;
  const cone = new THREE.Mesh(new THREE.ConeGeometry(0.03, 0.1, 32).rotateX(Math.PI / 2).translate(0, 0, -0.05), paint(color));
  const ball = new THREE.Mesh(new THREE.SphereGeometry(0.034, 32, 16).translate(0, 0, -0.11), steel(STEEL));
  for (const mesh of [cone, ball]) mesh.castShadow = true;
  group.add(cone, ball);
  return group;
}

// The shapes of a tool; a tool without shapes gets a body that fits its length. A tool with a shape
// `finger…`, or with grip in its name, has the moving fingers of the robot's gripper.
function toolBody(facts, fingers) {
  const named = (facts.shapes || []).filter(({ name }) => /^finger/i.test(name || ""));
  const still = fingers ? (facts.shapes || []).filter((shape) => !named.includes(shape)) : facts.shapes;
  const grips = named.length || /grip/i.test(facts.name || "");
  const tool = stillBody({ ...facts, shapes: still, name: grips ? "gripper" : facts.name }, Boolean(fingers));
  if (!fingers || !grips) return tool;
  const group = new THREE.Group();
  group.add(tool);
  group.userData.fingers = named.length ? shapedFingers(named, facts.tcp, fingers) : plainFingers(facts.tcp, fingers);
  group.add(...group.userData.fingers.map(({ object }) => object));
  return group;
}

// The axis along which the fingers move, seen from the flange.
function fingerAxis(tcp, { axis }) {
  return new THREE.Vector3(axis === "x" ? 1 : 0, axis === "y" ? 1 : 0, 0).transformDirection(matrix(tcp));
}

function shapedFingers(shapes, tcp, fingers) {
  const tip = new THREE.Vector3().setFromMatrixPosition(matrix(tcp));
  return shapes.map((shape) => {
    const object = body([shape], steel(STEEL));
    const middle = new THREE.Box3().setFromObject(object).getCenter(new THREE.Vector3());
    const axis = fingerAxis(tcp, fingers);
    const side = axis.multiplyScalar(middle.sub(tip).dot(axis) < 0 ? -1 : 1);
    return { object, home: object.position.clone(), side };
  });
}

// Two bars whose pads are at the tool point.
function plainFingers(tcp, fingers) {
  const { axis, widest, pad: [wide, high] } = fingers;
  const frame = matrix(tcp);
  const length = Math.max(high, Math.min(new THREE.Vector3().setFromMatrixPosition(frame).length() * 0.6, 0.1));
  return [-1, 1].map((sign) => {
    const [x, y] = axis === "x" ? [FINGER_M, wide] : [wide, FINGER_M];
    const object = new THREE.Mesh(new THREE.BoxGeometry(x, y, length), steel(STEEL));
    object.castShadow = object.receiveShadow = true;
    const side = fingerAxis(tcp, fingers).multiplyScalar(sign);
    const middle = new THREE.Vector3(0, 0, high / 2 - length / 2).applyMatrix4(frame);
    object.quaternion.setFromRotationMatrix(frame);
    object.position.copy(middle).addScaledVector(side, widest / 2 + FINGER_M / 2);
    return { object, home: object.position.clone(), side };
  });
}

function stillBody(facts, movingFingers) {
  if (facts.shapes && facts.shapes.length) return body(facts.shapes, steel(STEEL));
  const tip = new THREE.Vector3().setFromMatrixPosition(matrix(facts.tcp));
  const length = tip.length();
  const group = new THREE.Group();
  if (length < 0.01) return group;
  group.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), tip.normalize());
  const grips = /grip|suction|vacuum/i.test(facts.name || "");
  for (const mesh of grips ? gripper(length, movingFingers) : torch(length)) {
    mesh.castShadow = mesh.receiveShadow = true;
    group.add(mesh);
  }
  return group;
}

function torch(length) {
  const neck = new THREE.Mesh(roundedCylinder(0.021, length * 0.62), steel(0x3a424a));
  neck.position.z = length * 0.31;
  const nozzle = new THREE.Mesh(
    new THREE.CylinderGeometry(0.0085, 0.017, length * 0.3, 32).rotateX(Math.PI / 2), steel(COPPER));
  nozzle.position.z = length * 0.77;
  const wire = new THREE.Mesh(
    new THREE.CylinderGeometry(0.0018, 0.0018, length * 0.08, 12).rotateX(Math.PI / 2), steel(STEEL));
  wire.position.z = length * 0.96;
  return [neck, nozzle, wire];
}

function gripper(length, movingFingers) {
  const palm = new THREE.Mesh(new THREE.BoxGeometry(0.09, 0.05, length * 0.45), steel(0x3a424a));
  palm.position.z = length * 0.225;
  if (movingFingers) return [palm];
  const fingers = [-0.03, 0.03].map((x) => {
    const finger = new THREE.Mesh(new THREE.BoxGeometry(0.014, 0.026, length * 0.55), steel(STEEL));
    finger.position.set(x, 0, length * 0.72);
    return finger;
  });
  return [palm, ...fingers];
}
