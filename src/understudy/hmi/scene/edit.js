// Editing the environment in the scene: select, move, resize, add, remove, measure, undo, save. Every
// change is a command of the cell; what the scene shows afterwards is what the cell answers.

import { THREE } from "../three/index.js";
import { ask, call, filled, fixed, notice, NotDone, ofCell, whenReady } from "../frame/api.js";
import { question } from "../frame/dialog.js";
import { button } from "../frame/elements.js";
import { Gizmo, ray } from "./gizmo.js";

const CLICK_PX = 4;
const LARGEST_BYTES = 5.5 * 1024 * 1024; // of all files together: they are sent as base64
const MESHES = /\.(stl|obj|ply|dae|glb)$/i;
const URDF = /\.(urdf|xml)$/i;
const DEG = Math.PI / 180;
const SIZES = { box: ["dx", "dy", "dz"], cylinder: ["radius", "height"], capsule: ["radius", "height"], sphere: ["radius"] };
const NEW = {
  box: { type: "box", dimensions_mm: [200, 200, 200] },
  cylinder: { type: "cylinder", radius_mm: 100, height_mm: 200 },
};
const SAVE_AS = "environment.yaml";

class SceneEdit {
  constructor(element) {
    this.element = element;
    this.texts = JSON.parse(element.dataset.words);
    this.scene = window.understudy.scene;
    this.viewport = this.scene.viewport;
    this.part = (name) => element.querySelector(`[data-edit=${name}]`);
    this.rows = new Map(); // name → {kind, name, type, position_mm, rotation_deg, …}
    this.chosen = "";
    this.points = [];
    this.line = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0xffd23f, depthTest: false }));
    Object.assign(this.line, { visible: false, frustumCulled: false, renderOrder: 21 });
    this.gizmo = new Gizmo(this.viewport, { moved: (...way) => this.show(...way), dropped: (...way) => this.drop(...way) });
    this.viewport.scene.add(this.line);
    this.ends = new AbortController();
    const on = (target, name, react) => target.addEventListener(name, react, { signal: this.ends.signal });
    const canvas = this.viewport.renderer.domElement;
    on(canvas, "pointerdown", ({ clientX, clientY }) => (this.pressed = [clientX, clientY]));
    on(canvas, "pointerup", (event) => this.click(event));
    this.values = {}; // of the choices: snap and unit of meshes, in mm
    for (const each of element.querySelectorAll("[data-options]")) {
      const options = JSON.parse(each.dataset.options);
      let at = -1;
      const next = () => {
        at = (at + 1) % options.length;
        each.querySelector(".block").textContent = options[at][0];
        this.values[each.dataset.edit] = options[at][1];
        this.gizmo.snap = this.values.snap / 1000;
      };
      next();
      on(each, "click", next);
    }
    for (const field of element.querySelectorAll("[data-field]")) on(field, "change", () => this.typed());
    this.file = Object.assign(document.createElement("input"), { type: "file", multiple: true, accept: ".stl,.obj,.ply,.dae,.glb,.urdf,.xml" });
    on(this.file, "change", () => this.addFiles([...this.file.files]));
    const area = element.closest(".u-scene-area");
    on(area, "dragover", (event) => this.open && event.preventDefault());
    on(area, "drop", (event) => {
      if (!this.open) return;
      event.preventDefault();
      this.addFiles([...event.dataTransfer.files], this.onFloor(event));
    });
    this.scene.changed = () => this.load();
    this.timer = setInterval(() => this.gizmo.fit(), 50);
  }

  close() {
    clearInterval(this.timer);
    this.ends.abort();
    this.scene.changed = null;
    this.line.removeFromParent();
    this.gizmo.show(null);
    this.gizmo.object.removeFromParent();
    this.viewport.changed = true;
  }

  get open() {
    return !this.element.hidden;
  }

  toggle() {
    this.element.hidden = this.open;
    this.element.closest(".u-scene-area").classList.toggle("u-editing", this.open);
    document.querySelector("[data-mark=scene-edit]").classList.toggle("u-chosen", this.open);
    if (!this.open) this.measure(false);
    this.viewport.fit();
    this.load();
  }

  // ── what there is ──

  async load() {
    if (!this.open) return this.gizmo.show(null);
    const number = (this.loads = (this.loads || 0) + 1);
    const answers = await Promise.all([call("environment"), call("parts")]).catch((problem) => {
      if (!(problem instanceof NotDone)) throw problem;
    });
    if (!answers || number < (this.applied || 0)) return; // a later request was answered before
    this.applied = number;
    const [{ objects, undo, redo }, { parts }] = answers;
    this.rows = new Map(objects.map((each) => [each.name, { ...each, kind: "object" }]));
    for (const each of parts) this.rows.set(each.name, { ...each, kind: "part" });
    for (const [name, what] of [["undo", undo], ["redo", redo]]) {
      const button = document.querySelector(`[data-mark=edit-${name}]`);
      button.disabled = !what;
      button.classList.toggle("disabled", !what);
      button.title = what;
    }
    this.list();
    this.choose(this.rows.has(this.chosen) ? this.chosen : "");
  }

  list() {
    const row = (name) => button("u-edit-name", name, { object: name }, () => this.choose(name));
    this.part("object").replaceChildren(...[...this.rows.keys()].map(row));
    if (!this.rows.size) this.part("object").textContent = this.texts.none;
  }

  // ── selection ──

  choose(name) {
    this.chosen = name;
    const row = this.rows.get(name);
    for (const each of this.part("object").querySelectorAll("[data-object]")) {
      each.classList.toggle("u-chosen", each.dataset.object === name);
      each.setAttribute("aria-pressed", each.dataset.object === name);
      if (each.dataset.object === name) each.scrollIntoView({ block: "nearest" });
    }
    this.part("fields").hidden = !row;
    document.querySelector("[data-mark=edit-remove]").disabled = !row;
    this.gizmo.show(row && row.state !== "HELD" ? row.position_mm.map((value) => value / 1000) : null);
    if (row) this.fill(row);
    this.say();
  }

  fill(row) {
    const sizes = row.kind === "object" ? SIZES[row.type] || [] : [];
    const values = { ...place(row), ...sizesOf(row) };
    for (const field of this.element.querySelectorAll("[data-field]")) {
      const name = field.dataset.field;
      field.closest("label").hidden = !(name in place(row)) && !sizes.includes(name);
      if (field !== document.activeElement) field.value = trimmed(values[name] ?? 0);
    }
  }

  click(event) {
    if (!this.open || !this.pressed || this.gizmo.drag) return;
    const [x, y] = this.pressed;
    this.pressed = null;
    if (Math.hypot(event.clientX - x, event.clientY - y) > CLICK_PX) return;
    if (this.measuring) return this.addPoint(event);
    const shown = this.scene.shownObjects().filter(({ isFloor }) => !isFloor);
    const hits = ray(this.viewport, event).intersectObjects(shown.map(({ object }) => object), true);
    const hit = hits.find(({ object }) => object.isMesh && isShown(object));
    const found = hit && shown.find(({ object }) => contains(object, hit.object));
    this.choose(this.rows.has(found?.name) ? found.name : "");
  }

  // ── moving ──

  show(offset, turn) {
    const object = this.shownObject()?.object;
    const row = this.rows.get(this.chosen);
    if (!object || !row) return;
    const center = new THREE.Vector3(...row.position_mm).divideScalar(1000);
    object.rotation.z = turn;
    object.position.copy(center).applyAxisAngle(new THREE.Vector3(0, 0, 1), turn).negate().add(center).add(offset);
    this.fill({ ...row, ...moved(row, offset, turn) });
    this.viewport.changed = true;
  }

  async drop(offset, turn) {
    const row = this.rows.get(this.chosen);
    if (row) await this.put(row, moved(row, offset, turn));
  }

  async typed() {
    const row = this.rows.get(this.chosen);
    const value = (name) => Number(this.element.querySelector(`[data-field=${name}]`).value);
    if (!row) return;
    const given = { position_mm: ["x", "y", "z"].map(value), rotation_deg: ["rx", "ry", "rz"].map(value) };
    if (row.kind === "object" && row.type === "box") given.dimensions_mm = SIZES.box.map(value);
    if (row.kind === "object" && SIZES[row.type]?.includes("radius")) given.radius_mm = value("radius");
    if (row.kind === "object" && SIZES[row.type]?.includes("height")) given.height_mm = value("height");
    await this.put(row, given);
  }

  put(row, given) {
    const command = row.kind === "part" ? "place_part" : "move_object";
    return this.change(command, { name: row.name, ...given });
  }

  // A refused change is taken back in the scene.
  async change(command, parameters = {}) {
    const answer = await ask(command, parameters);
    if (!answer) {
      const object = this.shownObject()?.object;
      object?.position.set(0, 0, 0);
      object?.rotation.set(0, 0, 0);
    }
    await Promise.all([this.scene.load(), this.load()]);
    this.viewport.changed = true;
    return answer;
  }

  shownObject() {
    return this.scene.shownObjects().find(({ name }) => name === this.chosen);
  }

  // ── adding and removing ──

  async add(kind) {
    const { x, y } = this.viewport.controls.target;
    const config = { ...NEW[kind], name: this.freeName(this.texts[kind]) };
    const high = (config.height_mm ?? config.dimensions_mm[2]) / 2;
    await this.adding("add_object", { object: { ...config, position_mm: [round10(x), round10(y), high] } }, config.name);
  }

  async adding(command, parameters, name) {
    if (await this.change(command, parameters)) this.choose([...this.rows.keys()].find((each) => each === name || each.startsWith(`${name}.`)) ?? "");
  }

  freeName(word) {
    for (let number = 1; ; number++) if (!this.rows.has(`${word} ${number}`)) return `${word} ${number}`;
  }

  files() {
    this.file.value = "";
    this.file.click();
  }

  // A mesh becomes an object; a URDF with its meshes a fixture.
  async addFiles(files, at = [0, 0]) {
    if (!files.length) return;
    if (files.reduce((sum, { size }) => sum + size, 0) > LARGEST_BYTES) return notice(this.texts.too_large);
    const urdf = files.find(({ name }) => URDF.test(name));
    const meshes = files.filter(({ name }) => MESHES.test(name));
    if (!urdf && !meshes.length) return notice(this.texts.no_model);
    const content = Object.fromEntries(await Promise.all(files.map(async (file) => [file.name, await base64(file)])));
    const position_mm = [...at, 0];
    if (urdf) {
      const name = this.freeName(stem(urdf.name));
      return this.adding("add_fixture", { fixture: { name, urdf: urdf.name, position_mm }, files: content }, name);
    }
    const scale_mm = this.values.unit;
    for (const { name: mesh } of meshes) {
      const name = this.freeName(stem(mesh));
      await this.adding("add_object", { object: { name, type: "mesh", mesh, scale_mm, position_mm }, meshes: { [mesh]: content[mesh] } }, name);
    }
  }

  remove() {
    const row = this.rows.get(this.chosen);
    if (row) return this.change(row.kind === "part" ? "remove_part" : "remove_object", { name: row.name });
  }

  undo() {
    return this.change("undo_change");
  }

  redo() {
    return this.change("redo_change");
  }

  // ── saving ──

  async save(file = null) {
    try {
      this.saved(await call("save_environment", { file }));
    } catch (problem) {
      if (!(problem instanceof NotDone)) throw problem;
      if (file || !problem.message.includes("shipped cell")) return notice(ofCell(problem.message));
      const choices = [[SAVE_AS, filled(this.texts.save_as, { file: SAVE_AS }), "u-go"], ["", this.texts.cancel]];
      const answer = await question({ title: this.texts.shipped, details: this.texts.shipped_details, choices, mark: "save-as" });
      if (answer) await this.save(answer);
    }
  }

  saved({ files, lost, notes }) {
    const words = files.length ? filled(this.texts.saved, { files: files.join(", ") }) : this.texts.unchanged;
    const comments = lost.length ? [filled(this.texts.lost, { comments: lost.join(" · ") })] : [];
    notice([words, ...comments, ...notes.map(ofCell)].join("\n"), lost.length || notes.length ? "warning" : "positive");
  }

  // ── measuring ──

  measure(on = !this.measuring) {
    this.measuring = on;
    this.points = [];
    this.line.visible = false;
    document.querySelector("[data-mark=edit-measure]").classList.toggle("u-chosen", on);
    this.viewport.changed = true;
    this.say();
  }

  addPoint(event) {
    const robots = [...this.scene.robots.values()].map(({ object }) => object);
    const all = [...robots, ...this.scene.shownObjects().map(({ object }) => object)];
    const hit = ray(this.viewport, event).intersectObjects(all, true).find(({ object }) => object.isMesh && isShown(object));
    const point = hit?.point ?? ray(this.viewport, event).ray.intersectPlane(new THREE.Plane(new THREE.Vector3(0, 0, 1), 0), new THREE.Vector3());
    if (!point) return;
    this.points = this.points.length === 1 ? [...this.points, point] : [point];
    this.line.geometry.dispose();
    this.line.geometry = new THREE.BufferGeometry().setFromPoints(this.points.length > 1 ? this.points : [point, point.clone().setZ(point.z + 0.05)]);
    this.line.visible = true;
    this.viewport.changed = true;
    this.say();
  }

  // The measured distance, or that of the selected object's middle from the tool.
  say() {
    const [from, to] = this.points;
    const tip = this.scene.robots.get(this.scene.chosen)?.chain.tip();
    const row = this.rows.get(this.chosen);
    let words = this.measuring ? this.texts.pick : "";
    if (to) words = distance(this.texts.distance, from, to);
    else if (!this.measuring && row && tip) words = distance(this.texts.to_tool, new THREE.Vector3(...row.position_mm).divideScalar(1000), new THREE.Vector3(...tip));
    this.part("said").textContent = words;
  }

  onFloor(event) {
    const point = ray(this.viewport, event).ray.intersectPlane(new THREE.Plane(new THREE.Vector3(0, 0, 1), 0), new THREE.Vector3());
    return point ? [round10(point.x), round10(point.y)] : [0, 0];
  }

  // ── state for tests and scripts ──

  report() {
    const canvas = this.viewport.renderer.domElement.getBoundingClientRect();
    const onPage = (point) => {
      const { x, y } = point.clone().project(this.viewport.camera);
      return [canvas.left + ((x + 1) / 2) * canvas.width, canvas.top + ((1 - y) / 2) * canvas.height];
    };
    const at = this.gizmo.object.position;
    const arm = (x, y, z) => onPage(at.clone().add(new THREE.Vector3(x, y, z).multiplyScalar(this.gizmo.object.scale.x)));
    return {
      open: this.open, chosen: this.chosen, names: [...this.rows.keys()], said: this.part("said").textContent,
      handles: this.gizmo.object.visible ? { x: arm(1, 0, 0), y: arm(0, 1, 0), z: arm(0, 0, 1) } : null,
    };
  }
}

const place = ({ position_mm: [x, y, z], rotation_deg: [rx, ry, rz] }) => ({ x, y, z, rx, ry, rz });
const sizesOf = ({ dimensions_mm: [dx, dy, dz] = [], radius_mm: radius, height_mm: height }) => ({ dx, dy, dz, radius, height });
const moved = ({ position_mm, rotation_deg: [rx, ry, rz] }, { x, y, z }, turn) => ({
  position_mm: position_mm.map((value, n) => tidy(value + 1000 * [x, y, z][n])), rotation_deg: [rx, ry, tidy(rz + turn / DEG)],
});
const tidy = (value) => Math.round(value * 1000) / 1000;
const trimmed = (value) => Number(fixed(value, 3));
const round10 = (metres) => Math.round(metres * 100) * 10;
const stem = (name) => name.replace(/\.[^.]*$/, "");

function distance(words, from, to) {
  const way = to.clone().sub(from).multiplyScalar(1000);
  const [dx, dy, dz] = way.toArray().map((value) => fixed(value, 1));
  return filled(words, { mm: fixed(way.length(), 1), dx, dy, dz });
}

function isShown(object) {
  for (let each = object; each; each = each.parent) if (!each.visible) return false;
  return true;
}

function contains(group, object) {
  for (let each = object; each; each = each.parent) if (each === group) return true;
  return false;
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.split(",")[1] ?? ""));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

whenReady("#scene-edit", (element) => {
  window.sceneEdit = new SceneEdit(element);
  return () => window.sceneEdit.close();
});
