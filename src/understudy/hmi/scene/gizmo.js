// Handles to move an object with the mouse: arrows along x, y and z, a plate for the plane of the
// floor, a ring about the vertical. (NiceGUI's bundle of three.js has no TransformControls.)

import { THREE } from "../three/index.js";

const AXES = { x: [0xff5a5a, [1, 0, 0]], y: [0x58e06f, [0, 1, 0]], z: [0x5c9dff, [0, 0, 1]] };
const RING = 0xffd23f;
const PLATE = 0xf2f5f7;
const SIZE = 0.13; // of the distance to the camera
const TURN_SNAP_DEG = 15;
const UP = new THREE.Vector3(0, 1, 0);

const flat = (color) => new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true, opacity: 0.95, side: THREE.DoubleSide });

function handle(name, shapes, color) {
  const group = new THREE.Group();
  for (const shape of shapes) group.add(Object.assign(new THREE.Mesh(shape, flat(color)), { renderOrder: 20 }));
  group.userData.handle = name;
  return group;
}

function arrow(name, [color, along]) {
  const rod = new THREE.CylinderGeometry(0.028, 0.028, 1, 8).translate(0, 0.5, 0);
  const tip = new THREE.ConeGeometry(0.1, 0.3, 16).translate(0, 1.1, 0);
  const grip = new THREE.Mesh(new THREE.CylinderGeometry(0.13, 0.13, 1.3, 6).translate(0, 0.7, 0), new THREE.MeshBasicMaterial({ visible: false }));
  const made = handle(name, [rod, tip], color);
  made.add(grip); // easier to hit than it is to see
  made.quaternion.setFromUnitVectors(UP, new THREE.Vector3(...along));
  return made;
}

export class Gizmo {
  // calls moved(offset, turn) while it is dragged, in metres and radians, and dropped(offset, turn)
  constructor(viewport, { moved, dropped }) {
    Object.assign(this, { viewport, moved, dropped, snap: 0, drag: null });
    this.object = new THREE.Group();
    for (const [name, facts] of Object.entries(AXES)) this.object.add(arrow(name, facts));
    this.object.add(handle("floor", [new THREE.PlaneGeometry(0.34, 0.34)], PLATE));
    this.object.add(handle("turn", [new THREE.TorusGeometry(0.8, 0.03, 8, 48)], RING));
    this.object.visible = false;
    viewport.scene.add(this.object);
    const canvas = viewport.renderer.domElement;
    canvas.addEventListener("pointerdown", (event) => this.press(event), true); // before the camera's
    canvas.addEventListener("pointermove", (event) => this.drag && this.follow(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.drag && this.release(event));
  }

  // `center`: metres; null hides it
  show(center) {
    this.object.visible = Boolean(center);
    if (center) this.object.position.set(...center);
    this.viewport.changed = true;
  }

  // Keeps its size on the screen.
  fit() {
    if (!this.object.visible) return;
    const size = SIZE * this.viewport.camera.position.distanceTo(this.object.position);
    if (Math.abs(size - this.object.scale.x) > 1e-4) {
      this.object.scale.setScalar(size);
      this.viewport.changed = true;
    }
  }

  press(event) {
    if (!this.object.visible || event.button) return;
    const [hit] = ray(this.viewport, event).intersectObject(this.object, true);
    if (!hit) return;
    event.stopImmediatePropagation();
    let group = hit.object;
    while (!group.userData.handle) group = group.parent;
    const center = this.object.position.clone();
    this.drag = { name: group.userData.handle, center, start: null, offset: new THREE.Vector3(), turn: 0 };
    this.drag.start = this.place(event);
    this.viewport.renderer.domElement.setPointerCapture(event.pointerId);
  }

  // → where the pointer is for the handle: along its axis, on the floor of the object, or an angle
  place(event) {
    const { name, center } = this.drag;
    const { origin, direction } = ray(this.viewport, event).ray;
    if (AXES[name]) {
      const axis = new THREE.Vector3(...AXES[name][1]);
      const to = origin.clone().sub(center);
      const slant = axis.dot(direction);
      const apart = 1 - slant * slant;
      return apart < 1e-4 ? null : (axis.dot(to) - slant * direction.dot(to)) / apart;
    }
    const point = new THREE.Ray(origin, direction).intersectPlane(new THREE.Plane(new THREE.Vector3(0, 0, 1), -center.z), new THREE.Vector3());
    if (!point) return null;
    return name === "turn" ? Math.atan2(point.y - center.y, point.x - center.x) : point;
  }

  follow(event) {
    const { drag } = this;
    const now = this.place(event);
    if (now === null || drag.start === null) return;
    if (drag.name === "turn") {
      const step = this.snap ? (TURN_SNAP_DEG * Math.PI) / 180 : Math.PI / 180;
      drag.turn = Math.round((now - drag.start) / step) * step;
    } else if (drag.name === "floor") drag.offset.copy(now).sub(drag.start).setZ(0);
    else drag.offset.set(...AXES[drag.name][1]).multiplyScalar(now - drag.start);
    if (drag.name !== "turn") this.snapTo(drag);
    this.object.position.copy(drag.center).add(drag.offset);
    this.viewport.changed = true;
    this.moved(drag.offset, drag.turn);
  }

  // The new place, not the way, is a multiple of the step.
  snapTo({ name, center, offset }) {
    const step = this.snap || 0.0001;
    for (const axis of name === "floor" ? ["x", "y"] : [name]) {
      offset[axis] = Math.round((center[axis] + offset[axis]) / step) * step - center[axis];
    }
  }

  release(event) {
    const { offset, turn } = this.drag;
    this.drag = null;
    this.viewport.renderer.domElement.releasePointerCapture(event.pointerId);
    if (offset.length() > 1e-6 || Math.abs(turn) > 1e-6) this.dropped(offset, turn);
  }
}

// → a raycaster through the pointer
export function ray(viewport, { clientX, clientY }) {
  const box = viewport.renderer.domElement.getBoundingClientRect();
  const at = new THREE.Vector2(((clientX - box.left) / box.width) * 2 - 1, 1 - ((clientY - box.top) / box.height) * 2);
  const found = new THREE.Raycaster();
  viewport.camera.updateMatrixWorld();
  found.setFromCamera(at, viewport.camera);
  return found;
}
