// Plots of the last minutes of a robot; new rows are requested only while the page is visible.

import { echarts } from "nicegui-echart";
import { call, save, text, whenReady, whileVisible } from "../../frame/api.js";
import { expose } from "../../frame/expose.js";

const POLL_MS = 150;
const ROWS_KEPT = 2400;
const AXES = ["#6cc7ff", "#ffb454", "#5fe39a", "#ff7f9f", "#c9a6ff", "#f4e06d"];
const DEVICE_COLORS = ["#ffd700", "#8fd3ff", "#5fe39a", "#ff7f9f", "#c9a6ff", "#ffb454"];
const numbered = (values) => Object.fromEntries((values || []).map((value, n) => [`J${n + 1}`, value]));
// A row has lists for the joints; every other number in it, but the time, is a value of a device.
const deviceValues = (row) => Object.fromEntries(Object.entries(row).filter(([key, value]) => key !== "time_s" && typeof value === "number"));
// Plot → its values in a row, by name
const PLOTS = {
  positions: { of: (row) => numbered(row.joints_deg), unit: "°" },
  velocities: { of: (row) => numbered(row.velocities_deg_s), unit: "°/s" },
  torques: { of: (row) => numbered(row.torques_nm), unit: "Nm" },
  devices: { of: deviceValues, unit: "", scales: 2, colors: DEVICE_COLORS },
};

class Plots {
  constructor(element) {
    this.element = element;
    this.charts = new Map();
    for (const box of element.querySelectorAll("[data-plot]")) this.add(box);
    this.setSpan(60);
    this.setRobot(element.dataset.robot);
    this.resizing = new ResizeObserver(() => this.charts.forEach((chart) => chart.resize()));
    this.resizing.observe(element);
    this.endPolls = whileVisible(POLL_MS, () => this.poll());
  }

  close() {
    this.endPolls();
    this.resizing.disconnect();
    this.charts.forEach((chart) => chart.dispose());
    this.charts.clear();
  }

  add(box) {
    const chart = echarts.init(box, null, { renderer: "canvas" });
    const { unit, scales = 1 } = PLOTS[box.dataset.plot];
    const ink = { color: "#b4bfc9", fontSize: 14 };
    const line = { lineStyle: { color: "#323c46" } };
    chart.setOption({
      animation: false, color: AXES, textStyle: { fontFamily: "Roboto, sans-serif" },
      grid: { left: 58, right: scales > 1 ? 58 : 24, top: 36, bottom: 30 },
      legend: { top: 2, right: 12, textStyle: { color: "#f2f5f7", fontSize: 14 }, icon: "roundRect", itemWidth: 18, itemHeight: 6 },
      tooltip: { trigger: "axis", backgroundColor: "#1f262d", borderColor: "#323c46", textStyle: { color: "#f2f5f7" }, axisPointer: { label: { formatter: ({ value }) => `${value.toFixed(2)} s` } }, valueFormatter: (value) => (Number.isFinite(value) ? `${value.toFixed(2)} ${unit}` : "–") },
      xAxis: { type: "value", max: 0, axisLabel: { ...ink, formatter: (value) => (value ? `${value} s` : text("now")) }, splitLine: line, axisLine: { ...line, onZero: false } },
      yAxis: [...Array(scales).keys()].map((n) => ({ type: "value", scale: scales === 1, axisLabel: ink, splitLine: { ...line, show: n === 0 }, axisLine: { onZero: false } })),
      series: [],
    });
    this.charts.set(box.dataset.plot, chart);
  }

  setRobot(robot) {
    Object.assign(this, { robot, rows: [] });
    for (const chart of this.charts.values()) chart.setOption({ series: [] }, { replaceMerge: ["series"] });
  }

  setSpan(seconds) {
    this.span = seconds;
    for (const button of this.element.querySelectorAll("[data-span]")) {
      button.classList.toggle("u-chosen", Number(button.dataset.span) === seconds);
    }
    if (this.rows) this.draw();
  }

  freeze() {
    this.frozen = !this.frozen;
    this.element.querySelector("[data-plots=freeze]").classList.toggle("u-chosen", this.frozen);
  }

  // Requests only the rows since the last one.
  async poll() {
    if (this.frozen) return;
    const robot = this.robot;
    const last = this.rows[this.rows.length - 1]?.time_s;
    const wanted = last === undefined ? { seconds_back: 120, count: ROWS_KEPT } : { seconds_back: 5, count: 400 };
    const answer = await call("sample", { robot, ...wanted });
    if (robot !== this.robot) return;
    const newest = answer.rows[answer.rows.length - 1]?.time_s;
    if (newest < last) this.rows = []; // a snapshot of an earlier moment was restored
    const fresh = answer.rows.filter((row) => !this.rows.length || row.time_s > this.rows[this.rows.length - 1].time_s);
    if (!fresh.length) return;
    this.rows = [...this.rows, ...fresh].slice(-ROWS_KEPT);
    this.draw();
  }

  draw() {
    this.element.classList.toggle("u-no-torques", this.hasNoTorques);
    const until = this.rows[this.rows.length - 1]?.time_s ?? 0;
    const rows = this.rows.filter((row) => row.time_s >= until - this.span);
    for (const [plot, chart] of this.charts) {
      const { of, colors, scales = 1 } = PLOTS[plot];
      const names = Object.keys(rows.length ? of(rows[0]) : {});
      const series = names.map((name, n) => ({
        id: n, name: text(name), type: "line", showSymbol: false, lineStyle: { width: 2 },
        color: colors?.[n % colors.length], yAxisIndex: n % scales, data: rows.map((row) => [row.time_s - until, of(row)[name] ?? null]),
      }));
      chart.setOption({ xAxis: { min: -this.span }, series }, { replaceMerge: ["series"] });
    }
  }

  // A cell without dynamics sends zeros: a hint is shown instead of them.
  get hasNoTorques() {
    return this.rows.length > 0 && this.rows.every((row) => row.torques_nm.every((torque) => torque === 0));
  }

  download() {
    const columns = Object.entries(PLOTS).flatMap(([plot, { of }]) => Object.keys(of(this.rows[0] || {})).map((name) => `${plot}_${name}`));
    const names = ["time_s", ...columns];
    const lines = this.rows.map((row) => [row.time_s, ...Object.values(PLOTS).flatMap(({ of }) => Object.values(of(row)))].join(","));
    save([names.join(","), ...lines].join("\n"), `${this.robot}.csv`, "text/csv");
  }

  report() {
    const most = (data) => data.reduce((largest, [, value]) => Math.max(largest, Math.abs(value ?? 0)), 0);
    const series = (plot) => this.charts.get(plot).getOption().series.map(({ name, data }) => ({ name, count: data.length, most: most(data) }));
    return { robot: this.robot, rows: this.rows.length, span: this.span, frozen: Boolean(this.frozen), plots: Object.fromEntries([...this.charts.keys()].map((plot) => [plot, series(plot)])) };
  }
}

const ready = expose("plots", ["setSpan", "freeze", "download", "setRobot"], { report: () => null });
whenReady("#plots-page", (element) => ready(new Plots(element)));
