// Marks around the robots: paths, weld trails, workspace, reach clouds, frames, the arc.

import { THREE } from "../three/index.js";
import { glow } from "./materials.js";

const UP = new THREE.Vector3(0, 1, 0);

// A polyline with a thickness: one instanced cylinder for each segment.
export class Path {
  constructor({ radius, material, halo = null, limit = 20000, gap = Infinity }) {
    this.gap = gap; // metres; points further apart are not joined
    this.limit = limit;
    this.points = [];
    this.segments = 0;
    this.object = new THREE.Group();
    this.meshes = [this.pipe(radius, material)];
    if (halo) this.meshes.push(this.pipe(radius * 3.2, halo));
  }

  pipe(radius, material) {
    const shape = new THREE.CylinderGeometry(radius, radius, 1, 8, 1, true);
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
    for (const point of points) {
      const [last, next] = [this.points[this.points.length - 1], new THREE.Vector3(...point)];
      this.points.push(next);
      if (!last || last.distanceTo(next) > this.gap || this.segments >= this.limit) continue;
      this.segment(last, next);
    }
    for (const mesh of this.meshes) {
      mesh.count = this.segments;
      mesh.instanceMatrix.needsUpdate = true;
    }
  }

  segment(a, b) {
    const along = b.clone().sub(a);
    const length = along.length();
    if (length < 1e-6) return;
    const turn = new THREE.Quaternion().setFromUnitVectors(UP, along.divideScalar(length));
    const middle = a.clone().lerp(b, 0.5);
    const at = new THREE.Matrix4().compose(middle, turn, new THREE.Vector3(1, length * 1.04, 1));
    for (const mesh of this.meshes) mesh.setMatrixAt(this.segments, at);
    this.segments += 1;
  }

  clear() {
    this.points = [];
    this.segments = 0;
    for (const mesh of this.meshes) mesh.count = 0;
  }
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
    this.lamp = new THREE.PointLight(0xcfe6ff, 0, 0.9, 1.8);
    this.object.add(this.sprite, this.lamp);
    this.show(false);
  }

  show(on) {
    this.object.visible = on;
    const flicker = 0.75 + 0.25 * Math.random();
    this.lamp.intensity = on ? 0.32 * flicker : 0;
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
