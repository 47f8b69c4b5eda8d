// Shapes of the cell's geometry as three.js geometries: metres, z up, axes as in the cell.

import { THREE } from "../three/index.js";

const SEGMENTS = 48; // around a cylinder or sphere

export function matrix(rows) {
  return new THREE.Matrix4().set(...rows);
}

// A cylinder along z with rounded rims.
export function roundedCylinder(radius, length, rim = Math.min(radius, length) * 0.12) {
  const [r, h, c] = [radius, length / 2, Math.min(rim, radius / 2, length / 4)];
  const profile = [[0, -h], [r - c, -h], [r - c * 0.3, -h + c * 0.3], [r, -h + c],
    [r, h - c], [r - c * 0.3, h - c * 0.3], [r - c, h], [0, h]];
  const points = profile.map(([x, y]) => new THREE.Vector2(Math.max(x, 1e-6), y));
  return new THREE.LatheGeometry(points, SEGMENTS).rotateX(Math.PI / 2);
}

function triangles(shape) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(shape.vertices.flat(), 3));
  if (shape.indices && shape.indices.length) geometry.setIndex(shape.indices.flat());
  const flat = geometry.index ? geometry.toNonIndexed() : geometry;
  flat.computeVertexNormals();
  return flat;
}

const GEOMETRIES = {
  box: (s) => new THREE.BoxGeometry(...s.dimensions),
  sphere: (s) => new THREE.SphereGeometry(s.radius, SEGMENTS, SEGMENTS / 2),
  cylinder: (s) => roundedCylinder(s.radius, s.length || s.height, Math.min(s.radius, 0.008)),
  capsule: (s) =>
    new THREE.CapsuleGeometry(s.radius, s.length || s.height || 0, 16, SEGMENTS).rotateX(Math.PI / 2),
  mesh: triangles,
  convex: triangles,
};

export function geometry(shape) {
  const make = GEOMETRIES[String(shape.type).toLowerCase()];
  if (!make) throw new Error(`unknown shape: ${shape.type}`);
  return make(shape);
}

export function place(object, rows) {
  if (rows) object.applyMatrix4(matrix(rows));
  return object;
}

// A group of shapes that share a material, so that one change of colour changes all of them.
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
