// Shapes of the cell's geometry as three.js geometries: metres, z up, axes as in the cell.

import { THREE } from "../three/index.js";
import { plain } from "./materials.js";

const SEGMENTS = plain ? 20 : 48; // around a cylinder or sphere
const CAP_SEGMENTS = plain ? 5 : 16;

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
    new THREE.CapsuleGeometry(s.radius, s.length || s.height || 0, CAP_SEGMENTS, SEGMENTS).rotateX(Math.PI / 2),
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

// One geometry of several parts {geometry, place, color}, since every mesh costs a call to the
// graphics library. The colours are those of the vertices.
export function merged(parts) {
  const found = { position: [], normal: [], color: [], index: [] };
  let first = 0;
  for (const { geometry: part, place: rows, color = 0xffffff } of parts) {
    if (rows) part.applyMatrix4(matrix(rows));
    const { position, normal } = part.attributes;
    const index = part.index?.array ?? Array.from({ length: position.count }, (_, n) => n);
    const tint = new THREE.Color(color).toArray();
    found.position.push(position.array);
    found.normal.push(normal.array);
    found.color.push(Float32Array.from({ length: 3 * position.count }, (_, n) => tint[n % 3]));
    found.index.push(Uint32Array.from(index, (n) => n + first));
    first += position.count;
    part.dispose();
  }
  const whole = new THREE.BufferGeometry();
  for (const name of ["position", "normal", "color"]) {
    whole.setAttribute(name, new THREE.BufferAttribute(joined(found[name], Float32Array), 3));
  }
  return whole.setIndex(new THREE.BufferAttribute(joined(found.index, Uint32Array), 1));
}

function joined(arrays, Kind) {
  const whole = new Kind(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    whole.set(array, at);
    at += array.length;
  }
  return whole;
}

// Shapes without a problem (a file that is missing or cannot be read).
export const drawable = (shapes) => (shapes ?? []).filter(({ problem }) => !problem);

// Colour of a mesh as its file or the robot description states it; undefined for other shapes.
export function meshColor(shape) {
  if (shape.type !== "mesh" || !shape.color) return undefined;
  const [r, g, b] = shape.color;
  return new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace).getHex();
}

export const part = (shape, color) => ({ geometry: geometry(shape), place: shape.origin || shape.transform, color });

export function solid(parts, material, { shadow = true } = {}) {
  const mesh = new THREE.Mesh(merged(parts), material);
  mesh.castShadow = mesh.receiveShadow = shadow;
  mesh.userData.solid = shadow;
  return mesh;
}

// A group with the shapes as one mesh of one material. A single shape keeps its place as that of
// the mesh.
export function body(shapes, material, options) {
  const group = new THREE.Group();
  const parts = drawable(shapes).map((shape) => part(shape));
  if (parts.length === 1) group.add(place(solid([{ geometry: parts[0].geometry }], material, options), parts[0].place));
  else if (parts.length) group.add(solid(parts, material, options));
  return group;
}

export function dispose(object) {
  object.removeFromParent();
  object.traverse((each) => {
    each.geometry?.dispose();
    for (const material of [each.material].flat()) material?.dispose();
  });
}
