// One robot in detail. A part with buttons is made anew only when other buttons are needed, so that
// no click is lost; figures change in place.

import { ask, fixed, text } from "../../frame/api.js";
import { add, button } from "../../frame/elements.js";

const DEG = 180 / Math.PI;

export class Details {
  constructor(element, { operator }) {
    Object.assign(this, { element, operator, parts: new Map(), name: null });
  }

  clear() {
    this.name = null;
    this.parts.clear();
    this.element.replaceChildren();
    add(this.element, "p", "u-quiet", text("no_robot"));
  }

  // `row`: the robot in the table, whose state is shown here, too
  show(robot, row) {
    if (this.name !== robot.name) {
      this.parts.clear();
      this.element.replaceChildren();
      this.name = robot.name;
    }
    this.part("figures", "", figures(robot, row));
    this.part("faults", "faults", faults(robot), "u-fleet-faults");
    this.part("tasks", "tasks", tasks(robot));
    this.part("queue", "queue", queue(robot));
    this.part("motors", "motors", motors(robot));
    this.part("inputs", "inputs", inputs(robot));
    this.part("outputs", "outputs", signals(robot.outputs));
    this.part("devices", "devices", signals(robot.devices));
    if (this.operator && robot.true_pose) this.part("inject", "inject", injections(robot));
  }

  // `rows`: { key, label, value, state, button: { label, run } }
  part(name, title, rows, className = "") {
    const key = rows.map((row) => row.key).join("\n");
    let part = this.parts.get(name);
    if (part?.key !== key) part = this.build(part, name, title, rows, key, className);
    rows.forEach((row, n) => {
      const value = part.values[n];
      if (value.textContent !== row.value) value.textContent = row.value;
      value.className = `u-part-value u-is-${row.state ?? "none"}`;
      part.runs[n] = row.button?.run;
    });
  }

  build(before, name, title, rows, key, className) {
    const element = before?.element ?? add(this.element, "section", `u-part ${className}`);
    element.replaceChildren();
    element.dataset.part = name;
    element.hidden = !rows.length;
    const part = { element, key, values: [], runs: [] };
    if (title) add(element, "h3", "u-part-title", text(title));
    rows.forEach((row, n) => {
      const line = add(element, "div", "u-part-row", "", { row: row.key });
      add(line, "span", "u-part-label", row.label);
      part.values.push(add(line, "span", "u-part-value"));
      if (row.button && this.operator) {
        line.append(button("u-part-button", row.button.label, { does: row.button.name }, () => part.runs[n]()));
      }
    });
    this.parts.set(name, part);
    return part;
  }
}

const figure = (key, value, state) => ({ key, label: text(key), value, state });
const place = ([x, y, yaw]) => `${fixed(x, 2)}  ${fixed(y, 2)} m  ${fixed(yaw * DEG, 0)}°`;
const metres = (value) => (value === null ? text("none") : `${fixed(value, 2)} m`);

function figures(robot, row) {
  const { hold } = robot;
  const rows = [
    figure("state", row.shown, row.severity),
    figure("position", place(robot.true_pose ?? robot.pose)),
    figure("velocity", `${fixed(robot.velocity[0], 2)} m/s  ${fixed(robot.velocity[1] * DEG, 0)} °/s`),
    figure("charge", `${fixed(robot.battery, 1)} %`, robot.battery < 15 ? "alarm" : "none"),
    figure("localization", robot.localization, robot.localization === "OK" ? "none" : "warn"),
    figure("nearest", metres(robot.nearest)),
    figure("braking", metres(robot.braking_distance)),
    figure("limit", hold.max_speed === null ? text("none") : `${fixed(hold.max_speed, 2)} m/s`, hold.max_speed === null ? "none" : "held"),
  ];
  if (robot.true_pose) rows.splice(2, 0, figure("believed", place(robot.pose)));
  if (hold.standing) rows.push(figure("hold", text("by_traffic"), "held"));
  const node = hold.node && text(hold.active ? "held_at" : "hold_pending", { node: hold.node });
  if (node || hold.at_node) rows.push(figure("node", node || hold.at_node, node ? "held" : "none"));
  return rows;
}

const faults = (robot) => robot.faults.map((fault) => ({ key: fault, label: "", value: fault, state: "alarm" }));

function tasks(robot) {
  return robot.tasks.map((task) => ({
    key: task.task,
    label: task.x === null ? task.task : `→ ${fixed(task.x, 2)}  ${fixed(task.y, 2)} m`,
    value: task.running ? text("steps", task) : text("waits"),
    state: task.running ? "busy" : "none",
    button: { name: "cancel", label: text("cancel"), run: () => ask("fleet_cancel_task", { robot: robot.name, task: task.task }) },
  }));
}

function queue(robot) {
  return robot.queue.map(({ command, parameters, running }, n) => ({
    key: `${n} ${command} ${Object.values(parameters)}`,
    label: command,
    value: `${parametersText(parameters)} ${text(running ? "running" : "waits")}`,
    state: running ? "busy" : "none",
  }));
}

const parametersText = (parameters) => Object.entries(parameters).map(([name, value]) => `${name} ${typeof value === "number" ? +fixed(value, 2) : value}`).join(", ");

function motors(robot) {
  return robot.motors.map(({ id, mode, position, velocity, fault, connected }) => ({
    key: fault ? `${id} !` : id,
    label: id,
    value: fault || (connected ? `${mode}  ${fixed(position, 3)}  ${fixed(velocity, 2)} /s` : text("not_connected")),
    state: fault || !connected ? "alarm" : mode === "MOVING" ? "busy" : "none",
    button: fault ? { name: "reset-motor", label: text("reset_motor"), run: () => ask("fleet_command", { robot: robot.name, command: "RESET_MOTOR", parameters: { motorId: id } }) } : null,
  }));
}

const signals = (list) =>
  list.map(({ id, role, on, connected }) => ({
    key: id,
    label: role === "GENERAL" ? id : `${id} · ${role}`,
    value: connected ? (on ? "●" : "○") : text("not_connected"),
    state: connected ? (on ? "calm" : "none") : "alarm",
  }));

function inputs(robot) {
  const rows = signals(robot.inputs);
  if (robot.true_pose === null) return rows;
  robot.inputs.forEach(({ id, on, role }, n) => {
    if (role === "ESTOP") return;
    rows[n].button = { name: "set-input", label: text("toggle"), run: () => ask("fleet_input", { robot: robot.name, input: id, on: !rows[n].on }) };
    rows[n].on = on;
  });
  return rows;
}

function injections(robot) {
  const inject = (fault, parameters = {}) => () => ask("inject", { fault, on: robot.name, parameters });
  const rows = [{ key: "drive_fault", label: text("drive_fault"), value: "", button: { name: "drive_fault", label: text("inject"), run: inject("drive_fault") } }];
  const sensor = robot.devices.find(({ connected }) => connected);
  if (sensor) rows.push({ key: `lost ${sensor.id}`, label: `${text("lidar_lost")}: ${sensor.id}`, value: "", button: { name: "device_disconnected", label: text("inject"), run: inject("device_disconnected", { device: sensor.id }) } });
  return rows;
}
