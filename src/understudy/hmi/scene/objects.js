// What stands around the robots, or lies in their hands: a body with a name that can turn red.

import { THREE } from "./three/index.js";
import { matt, veil } from "./materials.js";
import { body, dispose } from "./shapes.js";

const GREY = 0x56616c;
const PART = 0xa9b4bd;
const ZONE = 0xffd23f;
const EDGE = { color: 0x11161b, transparent: true, opacity: 0.55 };
const FLOOR_TOP_M = 0.005;
const FLOOR_WIDTH_M = 1.5;

export class Thing {
  constructor(facts, { held = false } = {}) {
    this.name = facts.name;
    this.material = facts.zone ? veil(ZONE) : matt(held ? PART : GREY);
    this.object = body([facts], this.material, { shadow: !facts.zone });
    const box = new THREE.Box3().setFromObject(this.object);
    // The grid stands for the floor.
    this.ground = !held && box.max.z < FLOOR_TOP_M && box.max.x - box.min.x > FLOOR_WIDTH_M;
    if (this.ground) this.material.visible = false;
    else this.outline();
  }

  outline() {
    const ink = new THREE.LineBasicMaterial(EDGE);
    for (const mesh of this.object.children) {
      mesh.add(new THREE.LineSegments(new THREE.EdgesGeometry(mesh.geometry, 30), ink));
    }
  }

  redden(touched, color) {
    this.red = touched;
    this.material.emissive.set(touched ? color : 0x000000);
    this.material.visible = touched || !this.ground;
  }

  strike() {
    dispose(this.object);
  }
}
