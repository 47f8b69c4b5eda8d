// What belongs to the jobs of a robot: the field of view of its camera, and the places of pallets.

import { THREE } from "../three/index.js";
import { place } from "./shapes.js";

const DEPTH_M = 0.35; // of the drawn field of view
const CAMERA = 0x9be7ff;
const EMPTY = new THREE.Color(0x8796a3);
const FULL = new THREE.Color(0xd9822b);
const NEXT = new THREE.Color(0x6cc7ff);
const SIDES = [[-1, -1], [1, -1], [1, 1], [-1, 1]];

// The pyramid that a camera sees; `facts`: `camera` of the query `scene`.
export function fieldOfView({ at, corners }) {
  const tip = [0, 0, 0];
  const ends = corners.map(([x, y]) => [x * DEPTH_M, y * DEPTH_M, DEPTH_M]);
  const lines = ends.flatMap((end, n) => [tip, end, end, ends[(n + 1) % ends.length]]);
  const middle = ends[0].map((value, n) => (value + ends[1][n]) / 2);
  const upper = middle.map((value, n) => (n === 1 ? value * 1.15 : value));
  lines.push(ends[0], upper, upper, ends[1]); // the upper side of the picture
  const shape = new THREE.BufferGeometry().setFromPoints(lines.map((point) => new THREE.Vector3(...point)));
  const object = new THREE.LineSegments(shape, new THREE.LineBasicMaterial({ color: CAMERA, transparent: true, opacity: 0.8 }));
  return place(object, at);
}

// The outlines of the places of one pallet; the next one is blue, filled ones have the colour of parts.
export class Places {
  constructor({ places, half: [along, across], depalletise }) {
    [this.count, this.depalletise] = [places.length, depalletise];
    const corner = (at, [a, b]) => new THREE.Vector3(...at.map((value, n) => value + a * along[n] + b * across[n]));
    const points = places.flatMap((at) => SIDES.flatMap((side, n) => [corner(at, side), corner(at, SIDES[(n + 1) % 4])]));
    this.shape = new THREE.BufferGeometry().setFromPoints(points);
    this.shape.setAttribute("color", new THREE.BufferAttribute(new Float32Array(points.length * 3), 3));
    this.object = new THREE.LineSegments(this.shape, new THREE.LineBasicMaterial({ vertexColors: true }));
    this.fill(0);
  }

  // `index`: places that are done
  fill(index) {
    this.index = index;
    const colors = this.shape.getAttribute("color");
    for (let number = 0; number < this.count; number++) {
      const full = this.depalletise ? number >= index : number < index;
      const color = number === index ? NEXT : full ? FULL : EMPTY;
      for (let n = 0; n < 8; n++) colors.setXYZ(8 * number + n, color.r, color.g, color.b);
    }
    colors.needsUpdate = true;
  }
}
