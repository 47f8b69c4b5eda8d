// Viewport of the scene: renderer, lights, floor and camera. It knows nothing of the cell.

import { OrbitControls, THREE } from "../three/index.js";
import { plain } from "./materials.js";

THREE.Object3D.DEFAULT_UP.set(0, 0, 1);

const SLOW_MS = 48; // mean time between two images above which the resolution is reduced
const PAUSE_MS = 250; // after a longer time nothing had to be drawn
const IMAGES_MEASURED = 12;
const MIN_PERIOD_MS = plain ? 30 : 0; // between two images: leaves time on the processor
const BACKGROUND = 0x1a2129;
const MIN_RESOLUTION = 0.6; // pixels drawn per screen pixel, along a side
const VIEW_MS = 500;
const FARTHEST = 20; // metres; more in a cell that needs it
const FILLED = 0.94; // of the free area
const LEAST_HEIGHT = 0.42; // of the scene, for the robots
const WARM_UP_IMAGES = 20; // shaders are compiled
export const VIEWS = {
  iso: [1, -1, 0.62],
  front: [1, 0, 0.12],
  side: [0.02, -1, 0.12],
  top: [0.001, 0, 1],
};

export class Viewport {
  // calls moved(text) when the user has turned, moved or zoomed the camera, and drawn() before every
  // image, when the camera is where it will be
  constructor(element, moved, drawn) {
    this.element = element;
    this.beforeImage = drawn;
    this.scene = new THREE.Scene();
    this.renderer = new THREE.WebGLRenderer({ antialias: true, alpha: !plain, powerPreference: "high-performance" });
    if (plain) this.renderer.setClearColor(BACKGROUND); // opaque: the browser need not blend the page
    this.renderer.toneMapping = plain ? THREE.NoToneMapping : THREE.NeutralToneMapping;
    this.renderer.toneMappingExposure = 1.05;
    this.renderer.shadowMap.enabled = !plain;
    this.renderer.shadowMap.type = THREE.PCFSoftShadowMap;
    this.resolution = plain ? 0.75 : Math.min(window.devicePixelRatio, 2);
    element.append(this.renderer.domElement);

    this.camera = new THREE.PerspectiveCamera(38, 1, 0.02, 60);
    this.controls = new OrbitControls(this.camera, this.renderer.domElement);
    this.controls.enableDamping = true;
    this.controls.maxPolarAngle = Math.PI * 0.54;
    this.controls.minDistance = 0.15;
    this.controls.maxDistance = FARTHEST;
    this.controls.addEventListener("start", () => (this.flight = null));
    this.controls.addEventListener("end", () => moved(this.look()));
    this.controls.addEventListener("change", () => (this.changed = true));

    this.center = new THREE.Vector3(0.3, 0, 0.5);
    this.box = new THREE.Box3(new THREE.Vector3(-0.3, -0.6, 0), new THREE.Vector3(0.9, 0.6, 1.2));
    this.followed = null;
    light(this.scene, this.renderer);
    this.scene.add(...(plain ? [plainGrid()] : floor()));
    this.changed = true; // something must be drawn
    this.times = [];
    this.drawn = -Infinity;
    new ResizeObserver(() => this.fit()).observe(element);
    this.fit();
    this.view("iso", { at: 0 });
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    this.renderer.setPixelRatio(this.resolution);
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    const { x, y } = this.freeArea();
    this.camera.setViewOffset(width, height, width / 2 - x, height / 2 - y, width, height);
    this.changed = true;
    if (!this.unsized) return;
    this.unsized = false; // the view was set while the scene was hidden
    this.view(this.name, { follow: this.followed });
  }

  // The part of the scene beside the buttons and figures over it: its middle and half its size, in
  // pixels. An element over the scene says with `data-covers` which side it covers.
  freeArea() {
    const area = this.element.getBoundingClientRect();
    const free = { left: 0, right: area.width, top: 0, bottom: area.height };
    const tops = [0];
    for (const over of this.element.closest(".u-scene-area")?.querySelectorAll("[data-covers]") ?? []) {
      const box = over.getBoundingClientRect();
      if (!box.width || !box.height) continue;
      if (over.dataset.covers === "left") free.left = Math.max(free.left, box.right - area.left);
      if (over.dataset.covers === "right") free.right = Math.min(free.right, box.left - area.left);
      if (over.dataset.covers === "top") tops.push(box.bottom - area.top);
      if (over.dataset.covers === "bottom") free.bottom = Math.min(free.bottom, box.top - area.top);
    }
    // better behind the buttons than tiny
    if (free.right - free.left < area.width / 2) free.right = area.width;
    if (free.right - free.left < area.width / 3) free.left = 0;
    const leaveEnough = tops.filter((top) => free.bottom - top >= area.height * LEAST_HEIGHT);
    free.top = Math.max(0, ...leaveEnough);
    const [wide, high] = [(free.right - free.left) / 2, (free.bottom - free.top) / 2];
    return { x: free.left + wide, y: free.top + high, wide, high };
  }

  // → where an object is on the screen: x to the right and y up, from -1 to 1
  onScreen(object) {
    const { x, y } = object.getWorldPosition(new THREE.Vector3()).project(this.camera);
    return [x, y];
  }

  // Sets the box that all views show completely.
  frameOn(box) {
    if (box.isEmpty()) return;
    box.getCenter(this.center);
    this.box = box.clone();
  }

  // → distance from the centre at which all corners of the box are in the free area
  distance(direction) {
    const { wide, high } = this.freeArea();
    this.unsized = !wide || !high; // no page shows the scene yet
    if (this.unsized) return this.camera.position.length();
    const focus = this.element.clientHeight / 2 / Math.tan(((this.camera.fov / 2) * Math.PI) / 180);
    const look = new THREE.Matrix4().lookAt(direction, new THREE.Vector3(), this.camera.up);
    const [right, up, toward] = [0, 1, 2].map((n) => new THREE.Vector3().setFromMatrixColumn(look, n));
    let needed = this.controls.minDistance;
    for (const corner of corners(this.box)) {
      const from = corner.sub(this.center);
      const near = from.dot(toward);
      needed = Math.max(needed, near + (focus * Math.abs(from.dot(right))) / (wide * FILLED), near + (focus * Math.abs(from.dot(up))) / (high * FILLED));
    }
    this.controls.maxDistance = Math.max(FARTHEST, 1.5 * needed);
    this.camera.far = 3 * this.controls.maxDistance;
    return needed;
  }

  // → place and aim of the camera in mm, as text
  look() {
    const mm = [...this.camera.position.toArray(), ...this.controls.target.toArray()];
    return mm.map((metres) => Math.round(1000 * metres)).join(",");
  }

  // The camera as `look` has written it; nothing for any other text.
  lookAs(text) {
    const numbers = text.split(",").map((mm) => Number(mm) / 1000);
    if (numbers.length !== 6 || !numbers.every(Number.isFinite)) return;
    this.flight = null;
    this.camera.position.set(...numbers.slice(0, 3));
    this.controls.target.set(...numbers.slice(3));
    this.changed = true;
  }

  view(name, { at = VIEW_MS, follow = null } = {}) {
    this.name = name;
    this.followed = follow;
    if (follow) return;
    this.fit();
    const direction = new THREE.Vector3(...VIEWS[name]).normalize();
    const to = direction.clone().multiplyScalar(this.distance(direction)).add(this.center);
    this.flight = {
      from: this.camera.position.clone(), to, since: performance.now(), lasts: at,
      aim: this.controls.target.clone(),
    };
    this.changed = true;
  }

  moveCamera() {
    if (this.followed) {
      const goal = this.followed.getWorldPosition(new THREE.Vector3());
      const shift = goal.sub(this.controls.target).multiplyScalar(0.12);
      this.controls.target.add(shift);
      this.camera.position.add(shift);
      const away = this.camera.position.clone().sub(this.controls.target);
      if (away.length() > 0.9) this.camera.position.addScaledVector(away, -0.04);
      this.changed ||= shift.lengthSq() > 1e-12;
    } else if (this.flight) {
      const { from, to, aim, since, lasts } = this.flight;
      const part = lasts ? Math.min(1, (performance.now() - since) / lasts) : 1;
      const eased = part * part * (3 - 2 * part);
      this.camera.position.lerpVectors(from, to, eased);
      this.controls.target.lerpVectors(aim, this.center, eased);
      this.changed = true; // the controls report no step of less than a millimetre
      if (part === 1) this.flight = null;
    }
  }

  // Draws only after a change: an idle page uses no processor time.
  draw() {
    this.moveCamera();
    this.controls.update();
    const now = performance.now();
    if (!this.changed || now - this.drawn < MIN_PERIOD_MS) return;
    this.changed = false;
    this.adapt(now - this.drawn);
    this.drawn = now;
    this.beforeImage();
    this.renderer.render(this.scene, this.camera);
  }

  // A slow machine draws fewer pixels, not fewer images. The time between images counts: the graphics
  // library works after `render` has returned.
  adapt(milliseconds) {
    this.images = (this.images ?? 0) + 1;
    if (milliseconds > PAUSE_MS || this.images < WARM_UP_IMAGES) return;
    this.times.push(milliseconds);
    if (this.times.length < IMAGES_MEASURED) return;
    const mean = this.times.reduce((sum, each) => sum + each, 0) / this.times.length;
    this.times = [];
    if (mean < SLOW_MS || this.resolution <= MIN_RESOLUTION) return;
    this.resolution = Math.max(MIN_RESOLUTION, this.resolution * 0.75);
    this.fit();
  }
}

function corners({ min, max }) {
  const [x, y, z] = [[min.x, max.x], [min.y, max.y], [min.z, max.z]];
  return x.flatMap((a) => y.flatMap((b) => z.map((c) => new THREE.Vector3(a, b, c))));
}

function light(scene, renderer) {
  if (!plain) scene.environment = studio(renderer);
  scene.environmentIntensity = 0.55;
  scene.add(new THREE.HemisphereLight(0xdfeaf5, 0x2a2622, plain ? 1.5 : 0.7));
  const key = new THREE.DirectionalLight(0xfff4e6, 2.4);
  key.position.set(2.2, -2.6, 4.2);
  key.castShadow = !plain;
  key.shadow.mapSize.set(2048, 2048);
  key.shadow.bias = -0.0004;
  key.shadow.normalBias = 0.012;
  key.shadow.radius = 5;
  Object.assign(key.shadow.camera, { left: -2.2, right: 2.2, top: 2.2, bottom: -2.2, near: 0.5, far: 11 });
  const rim = new THREE.DirectionalLight(0x9cc8ff, 1.1);
  rim.position.set(-3, 2.5, 2);
  scene.add(key, rim);
}

// Environment map of light boxes, which paint and steel reflect.
function studio(renderer) {
  const room = new THREE.Scene();
  const walls = new THREE.Mesh(
    new THREE.BoxGeometry(10, 10, 10),
    new THREE.MeshBasicMaterial({ color: 0x20262c, side: THREE.BackSide }),
  );
  room.add(walls);
  for (const [x, y, z, wide, high, strength] of [
    [0, 0, 4.9, 5, 5, 6], [4.9, 0, 1, 0.1, 4, 3], [-4.9, 1, 1, 0.1, 3, 2], [0, -4.9, 1, 4, 0.1, 2.5],
  ]) {
    const lamp = new THREE.Mesh(
      new THREE.BoxGeometry(wide, high, z > 4 ? 0.1 : 3),
      new THREE.MeshBasicMaterial({ color: new THREE.Color(strength, strength, strength) }),
    );
    lamp.position.set(x, y, z);
    room.add(lamp);
  }
  const generator = new THREE.PMREMGenerator(renderer);
  const { texture } = generator.fromScene(room, 0.03);
  generator.dispose();
  return texture;
}

function plainGrid() {
  const grid = new THREE.GridHelper(6, 24, 0x5c6b78, 0x2b343c).rotateX(Math.PI / 2);
  grid.position.z = -0.002;
  return grid;
}

function floor() {
  const grid = new THREE.Mesh(new THREE.PlaneGeometry(24, 24), new THREE.ShaderMaterial({
    transparent: true,
    depthWrite: false,
    vertexShader: `varying vec2 at; void main() { at = position.xy;
      gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }`,
    fragmentShader: `varying vec2 at;
      float lines(float step) { vec2 p = at / step; vec2 w = fwidth(p);
        vec2 d = abs(fract(p - 0.5) - 0.5) / w; return 1.0 - min(min(d.x, d.y), 1.0); }
      void main() {
        float fade = 1.0 - smoothstep(2.0, 7.0, length(at));
        float fine = lines(0.1) * 0.16, coarse = lines(0.5) * 0.42;
        vec3 color = mix(vec3(0.085, 0.105, 0.125), vec3(0.42, 0.50, 0.58), max(fine, coarse));
        gl_FragColor = vec4(color, fade); }`,
  }));
  grid.position.z = -0.002;
  grid.renderOrder = -2;
  const shade = new THREE.Mesh(new THREE.PlaneGeometry(12, 12), new THREE.ShadowMaterial({ opacity: 0.55 }));
  shade.receiveShadow = true;
  shade.position.z = -0.001;
  shade.renderOrder = -1;
  return [grid, shade];
}
