// An object of the environment, one that a robot holds, or a part; it turns red on contact.

import { THREE } from "../three/index.js";
import { matt, zone } from "./materials.js";
import { body, dispose } from "./shapes.js";

const GREY = 0x56616c;
const HELD = 0xa9b4bd;
const ZONE = 0xffd23f;
const EDGE = { color: 0x11161b, transparent: true, opacity: 0.55 };
const FLOOR_TOP_M = 0.005;
const FLOOR_WIDTH_M = 1.5;

export class SceneObject {
  constructor(facts, { held = false } = {}) {
    this.name = facts.name;
    this.material = facts.zone ? zone(ZONE) : matt(facts.color ?? (held ? HELD : GREY));
    this.object = body([facts], this.material, { shadow: !facts.zone });
    const box = new THREE.Box3().setFromObject(this.object);
    // A floor is not drawn: the grid is there instead.
    this.isFloor = !held && box.max.z < FLOOR_TOP_M && box.max.x - box.min.x > FLOOR_WIDTH_M;
    if (this.isFloor) this.material.visible = false;
    else this.addEdges();
  }

  addEdges() {
    const ink = new THREE.LineBasicMaterial(EDGE);
    for (const mesh of this.object.children) {
      mesh.add(new THREE.LineSegments(new THREE.EdgesGeometry(mesh.geometry, 30), ink));
    }
  }

  showContact(touched, color) {
    this.red = touched;
    this.material.emissive.set(touched ? color : 0x000000);
    this.material.visible = touched || !this.isFloor;
  }

  // → its middle in the cell: x, y, z
  position() {
    return new THREE.Box3().setFromObject(this.object).getCenter(new THREE.Vector3()).toArray();
  }

  remove() {
    dispose(this.object);
  }
}
