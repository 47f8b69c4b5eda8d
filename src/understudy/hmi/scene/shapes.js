// Shapes of the cell's geometry → three.js geometries. Metres, z up, axes as the cell has them.

import { THREE } from "./three/index.js";

const ROUND = 48; // segments around

export function matrix(rows) {
  return new THREE.Matrix4().set(...rows);
}

// A cylinder along z with softened rims: what is turned on a lathe has no razor edges.
export function turned(radius, length, rim = Math.min(radius, length) * 0.12) {
  const [r, h, c] = [radius, length / 2, Math.min(rim, radius / 2, length / 4)];
  const profile = [[0, -h], [r - c, -h], [r - c * 0.3, -h + c * 0.3], [r, -h + c],
    [r, h - c], [r - c * 0.3, h - c * 0.3], [r - c, h], [0, h]];
  const points = profile.map(([x, y]) => new THREE.Vector2(Math.max(x, 1e-6), y));
  return new THREE.LatheGeometry(points, ROUND).rotateX(Math.PI / 2);
}

function solid(shape) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(shape.vertices.flat(), 3));
  if (shape.indices && shape.indices.length) geometry.setIndex(shape.indices.flat());
  const flat = geometry.index ? geometry.toNonIndexed() : geometry;
  flat.computeVertexNormals();
  return flat;
}

const GEOMETRIES = {
  box: (s) => new THREE.BoxGeometry(...s.dimensions),
  sphere: (s) => new THREE.SphereGeometry(s.radius, ROUND, ROUND / 2),
  cylinder: (s) => turned(s.radius, s.length || s.height, Math.min(s.radius, 0.008)),
  capsule: (s) =>
    new THREE.CapsuleGeometry(s.radius, s.length || s.height || 0, 16, ROUND).rotateX(Math.PI / 2),
  mesh: solid,
  convex: solid,
};

export function geometry(shape) {
  const make = GEOMETRIES[String(shape.type).toLowerCase()];
  if (!make) throw new Error(`no picture of a ${shape.type}`);
  return make(shape);
}

export function place(object, rows) {
  if (rows) object.applyMatrix4(matrix(rows));
  return object;
}

// A body of several shapes; `material` is shared, so that one change of colour changes all of it.
export function body(shapes, material, { shadow = true } = {}) {
  const group = new THREE.Group();
  for (const shape of shapes || []) {
    const mesh = new THREE.Mesh(geometry(shape), material);
    mesh.castShadow = mesh.receiveShadow = shadow;
    group.add(place(mesh, shape.origin || shape.transform));
  }
  return group;
}

export function dispose(object) {
  object.removeFromParent();
  object.traverse((each) => {
    each.geometry?.dispose();
    for (const material of [each.material].flat()) material?.dispose();
  });
}
