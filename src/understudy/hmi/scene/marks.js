// Marks around the robots: paths, weld trails, workspace, reach clouds, frames, the arc.

import { THREE } from "../three/index.js";
import { glow, plain } from "./materials.js";

const UP = new THREE.Vector3(0, 1, 0);
const SIDES = plain ? 5 : 8; // of a pipe
const STRAIGHT_M = 2e-4; // a point that is off the line of the last segment by less extends that segment

// A polyline with a thickness: one instanced cylinder for each straight segment.
export class Path {
  constructor({ radius, material, halo = null, limit = 20000, gap = Infinity }) {
    this.gap = gap; // metres; points further apart are not joined
    this.limit = limit;
    this.points = [];
    this.segments = 0;
    this.object = new THREE.Group();
    this.meshes = [this.pipe(radius, material)];
    if (halo && !plain) this.meshes.push(this.pipe(radius * 3.2, halo));
  }

  pipe(radius, material) {
    const shape = new THREE.CylinderGeometry(radius, radius, 1, SIDES, 1, true);
    const mesh = new THREE.InstancedMesh(shape, material, this.limit);
    mesh.count = 0;
    mesh.frustumCulled = false;
    this.object.add(mesh);
    return mesh;
  }

  get length() {
    return this.points.length;
  }

  add(points) {
    const first = Math.max(this.segments - 1, 0);
    for (const point of points) {
      const [last, next] = [this.points[this.points.length - 1], new THREE.Vector3(...point)];
      this.points.push(next);
      if (!last || last.distanceTo(next) > this.gap) this.begin = null;
      else if (this.segments < this.limit) this.join(last, next);
    }
    for (const mesh of this.meshes) {
      mesh.count = this.segments;
      mesh.instanceMatrix.addUpdateRange(16 * first, 16 * (this.segments - first)); // not the whole buffer
      mesh.instanceMatrix.needsUpdate = true;
    }
  }

  // Extends the last segment if the next point is on its line, else begins a segment.
  join(last, next) {
    const straight = this.begin && offLine(last, this.begin, next) < STRAIGHT_M;
    if (straight) this.segments -= 1;
    else this.begin = last;
    this.segment(this.begin, next);
  }

  segment(a, b) {
    const along = b.clone().sub(a);
    const length = along.length();
    if (length < 1e-6) {
      this.begin = null;
      return;
    }
    const turn = new THREE.Quaternion().setFromUnitVectors(UP, along.divideScalar(length));
    const middle = a.clone().lerp(b, 0.5);
    const at = new THREE.Matrix4().compose(middle, turn, new THREE.Vector3(1, length * 1.04, 1));
    for (const mesh of this.meshes) mesh.setMatrixAt(this.segments, at);
    this.segments += 1;
  }

  clear() {
    this.points = [];
    this.segments = 0;
    this.begin = null;
    for (const mesh of this.meshes) mesh.count = 0;
  }
}

// How far a point is off the line from `a` to `b`; infinite if it is not between them.
function offLine(point, a, b) {
  const along = b.clone().sub(a);
  const length = along.length();
  const [to, part] = [point.clone().sub(a), point.clone().sub(a).dot(along)];
  if (length < 1e-9 || part < 0 || part > length * length) return Infinity;
  return to.addScaledVector(along, -part / (length * length)).length();
}

export function weldTrail(color) {
  const bead = new THREE.MeshLambertMaterial({ color, emissive: color, emissiveIntensity: 0.8 });
  return new Path({ radius: 0.0042, material: bead, halo: glow(color, 0.16), gap: 0.03 });
}

export function preview(color) {
  return new Path({ radius: 0.0017, material: new THREE.MeshBasicMaterial({ color }), halo: glow(color, 0.1) });
}

// The arc: a flickering light at the tool tip.
export class Arc {
  constructor() {
    const material = new THREE.SpriteMaterial({
      map: star(), blending: THREE.AdditiveBlending, depthTest: false, transparent: true,
    });
    this.object = new THREE.Group();
    this.sprite = new THREE.Sprite(material);
    this.object.add(this.sprite);
    // Always visible: three.js compiles its shaders again when the number of lights changes.
    this.lamp = plain ? null : new THREE.PointLight(0xcfe6ff, 0, 0.9, 1.8);
    if (this.lamp) this.object.add(this.lamp);
    this.show(false);
  }

  show(on) {
    this.sprite.visible = on;
    const flicker = 0.75 + 0.25 * Math.random();
    if (this.lamp) this.lamp.intensity = on ? 0.32 * flicker : 0;
    this.sprite.scale.setScalar(0.12 * flicker);
  }
}

function star() {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 128;
  const context = canvas.getContext("2d");
  const fade = context.createRadialGradient(64, 64, 0, 64, 64, 64);
  const steps = [[0, "#ffffff"], [0.1, "#f4faff"], [0.28, "rgba(150,200,255,0.5)"], [1, "rgba(0,0,0,0)"]];
  for (const [at, color] of steps) fade.addColorStop(at, color);
  context.fillStyle = fade;
  context.fillRect(0, 0, 128, 128);
  return new THREE.CanvasTexture(canvas);
}

// Name of a robot above it; the chosen robot has a ring around its foot as well.
export class Marker {
  constructor(name, radius) {
    this.object = new THREE.Group();
    this.ring = new THREE.Mesh(
      new THREE.RingGeometry(radius, radius * 1.12, 48),
      new THREE.MeshBasicMaterial({ color: CHOSEN, side: THREE.DoubleSide, transparent: true, opacity: 0.9 }),
    );
    const labels = [false, true].map((chosen) => {
      const label = new THREE.Sprite(new THREE.SpriteMaterial({ map: plate(name, chosen), depthTest: false, sizeAttenuation: false, transparent: true }));
      const { width, height } = label.material.map.image;
      label.scale.set((LABEL_HEIGHT * width) / height, LABEL_HEIGHT, 1);
      label.center.set(0.5, 0);
      label.renderOrder = 10;
      return label;
    });
    this.labels = { false: labels[0], true: labels[1] };
    this.object.add(this.ring, ...labels);
    this.show(false);
  }

  // `base`: of the robot; the ring lies just above its foot.
  place(base) {
    this.ring.position.z = 0.003;
    this.ring.applyMatrix4(base);
    for (const label of Object.values(this.labels)) label.position.setFromMatrixPosition(base);
  }

  raise(top) {
    for (const label of Object.values(this.labels)) label.position.z = top + 0.06;
  }

  show(chosen) {
    this.ring.visible = chosen;
    for (const [of, label] of Object.entries(this.labels)) label.visible = of === String(chosen);
  }
}

// Puts names that would cover each other on the screen above each other: that of the chosen robot
// stays at its place, then the lowest one does. → where they are, in the order of the robots
export function separateNames(camera, markers) {
  const { elements } = camera.projectionMatrix;
  const names = [];
  for (const { labels, object } of markers) {
    const label = Object.values(labels).find(({ visible }) => visible);
    if (!label || !object.visible) continue;
    const { x, y, z } = label.getWorldPosition(new THREE.Vector3()).project(camera);
    const [half, high] = [(label.scale.x * elements[0]) / 2, label.scale.y * elements[5]];
    names.push({ label, x, at: y, z, half, high, chosen: label === labels.true });
  }
  const placed = [];
  for (const name of [...names].sort((one, other) => other.chosen - one.chosen || one.at - other.at)) {
    const { x, at, z, half, high } = name;
    const covers = (y) => placed.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.at - y) < high);
    let steps = 0;
    while (z < 1 && steps < MOST_STEPS && covers(at + steps * high)) steps++;
    name.label.center.set(0.5, -steps);
    name.at = at + steps * high;
    placed.push(name);
  }
  return names.map(({ x, at, half, high }) => ({ x, at, half, high }));
}

const MOST_STEPS = 12;
const CHOSEN = 0x6cc7ff;
const LABEL_HEIGHT = 0.028; // part of the image's height, about
const LABEL_PX = 44;

function plate(name, chosen) {
  const canvas = document.createElement("canvas");
  const font = `600 ${LABEL_PX * 0.62}px Roboto, "Noto Sans", sans-serif`;
  const measure = canvas.getContext("2d");
  measure.font = font;
  canvas.width = Math.ceil(measure.measureText(name).width + LABEL_PX * 0.8);
  canvas.height = LABEL_PX;
  const pen = canvas.getContext("2d");
  pen.fillStyle = chosen ? "#6cc7ff" : "rgba(16,21,26,0.85)";
  pen.beginPath();
  pen.roundRect(0, 0, canvas.width, canvas.height, LABEL_PX / 4);
  pen.fill();
  Object.assign(pen, { font, fillStyle: chosen ? "#000" : "#f2f5f7", textAlign: "center", textBaseline: "middle" });
  pen.fillText(name, canvas.width / 2, LABEL_PX / 2 + 1);
  const texture = new THREE.CanvasTexture(canvas);
  texture.colorSpace = THREE.SRGBColorSpace;
  return texture;
}

// A frame as three arrows: red x, green y, blue z.
export function triad(size = 0.12) {
  const group = new THREE.Group();
  const shape = new THREE.CylinderGeometry(size * 0.03, size * 0.03, size, 10).translate(0, size / 2, 0);
  const tip = new THREE.ConeGeometry(size * 0.08, size * 0.22, 14).translate(0, size * 1.1, 0);
  for (const [color, turn] of [[0xff5a5a, [0, 0, -Math.PI / 2]], [0x58e06f, [0, 0, 0]], [0x5c9dff, [Math.PI / 2, 0, 0]]]) {
    const material = new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true });
    for (const each of [shape, tip]) {
      const mesh = new THREE.Mesh(each, material);
      mesh.rotation.set(...turn);
      mesh.renderOrder = 5;
      group.add(mesh);
    }
  }
  return group;
}

// Reach cloud: green where many orientations are reached, red where few are.
export function cloud(points, shares) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(points.flat(), 3));
  const color = new THREE.Color();
  const colors = shares.flatMap((share) => color.setHSL(0.02 + 0.36 * Math.min(1, share), 0.85, 0.5).toArray());
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(colors, 3));
  const material = new THREE.PointsMaterial({
    size: 0.014, vertexColors: true, transparent: true, opacity: 0.75, depthWrite: false,
  });
  return new THREE.Points(geometry, material);
}

// Workspace: an outline in the plane of the arm, rotated about the first axis.
export function boundary(outline, from, to, color = 0x6cc7ff) {
  const profile = outline.map(([r, z]) => new THREE.Vector2(Math.max(r, 0), z));
  const shell = new THREE.LatheGeometry(profile, 48, from + Math.PI / 2, to - from).rotateX(Math.PI / 2);
  const group = new THREE.Group();
  const skin = { color, transparent: true, depthWrite: false, side: THREE.DoubleSide };
  group.add(new THREE.Mesh(shell, new THREE.MeshBasicMaterial({ ...skin, opacity: 0.06 })));
  group.add(new THREE.Mesh(shell, new THREE.MeshBasicMaterial({ ...skin, opacity: 0.1, wireframe: true })));
  return group;
}
