// The last minute of a robot, drawn: asked for in pieces, and only while it can be seen.

import { echarts } from "nicegui-echart";
import { call, onceThere, save, whileSeen, words } from "./api.js";
import { offer } from "./offer.js";

const LOOK_MS = 150;
const MOST_ROWS = 2400;
const AXES = ["#6cc7ff", "#ffb454", "#5fe39a", "#ff7f9f", "#c9a6ff", "#f4e06d"];
const FIELDS = {
  positions: { of: (row) => row.joints_deg, unit: "°" },
  velocities: { of: (row) => row.velocities_deg_s, unit: "°/s" },
  torques: { of: (row) => row.torques_nm, unit: "Nm" },
  weld: { of: (row) => [row.current_amps, row.voltage_volts], unit: "", scales: 2, names: ["current", "voltage"], colors: ["#ffd700", "#8fd3ff"] },
};

class Plots {
  constructor(place) {
    this.place = place;
    this.charts = new Map();
    for (const box of place.querySelectorAll("[data-plot]")) this.add(box);
    this.look(60);
    this.turnTo(place.dataset.robot);
    new ResizeObserver(() => this.charts.forEach((chart) => chart.resize())).observe(place);
    whileSeen(LOOK_MS, () => this.hear());
  }

  add(box) {
    const chart = echarts.init(box, null, { renderer: "canvas" });
    const { unit, scales = 1 } = FIELDS[box.dataset.plot];
    const ink = { color: "#b4bfc9", fontSize: 14 };
    const line = { lineStyle: { color: "#323c46" } };
    chart.setOption({
      animation: false, color: AXES, textStyle: { fontFamily: "Roboto, sans-serif" },
      grid: { left: 58, right: scales > 1 ? 58 : 24, top: 36, bottom: 30 },
      legend: { top: 2, right: 12, textStyle: { color: "#f2f5f7", fontSize: 14 }, icon: "roundRect", itemWidth: 18, itemHeight: 6 },
      tooltip: { trigger: "axis", backgroundColor: "#1f262d", borderColor: "#323c46", textStyle: { color: "#f2f5f7" }, axisPointer: { label: { formatter: ({ value }) => `${value.toFixed(2)} s` } }, valueFormatter: (value) => (Number.isFinite(value) ? `${value.toFixed(2)} ${unit}` : "–") },
      xAxis: { type: "value", max: 0, axisLabel: { ...ink, formatter: (value) => (value ? `${value} s` : words("now")) }, splitLine: line, axisLine: { ...line, onZero: false } },
      yAxis: [...Array(scales).keys()].map((n) => ({ type: "value", scale: scales === 1, axisLabel: ink, splitLine: { ...line, show: n === 0 }, axisLine: { onZero: false } })),
      series: [],
    });
    this.charts.set(box.dataset.plot, chart);
  }

  turnTo(robot) {
    Object.assign(this, { robot, rows: [] });
    for (const chart of this.charts.values()) chart.setOption({ series: [] }, { replaceMerge: ["series"] });
  }

  look(seconds) {
    this.span = seconds;
    for (const button of this.place.querySelectorAll("[data-span]")) {
      button.classList.toggle("u-chosen", Number(button.dataset.span) === seconds);
    }
    if (this.rows) this.draw();
  }

  freeze() {
    this.frozen = !this.frozen;
    this.place.querySelector("[data-plots=freeze]").classList.toggle("u-chosen", this.frozen);
  }

  // Only what is new: the cell keeps the rest, and so do we.
  async hear() {
    if (this.frozen) return;
    const robot = this.robot;
    const last = this.rows[this.rows.length - 1]?.time_s;
    const asked = last === undefined ? { seconds_back: 120, count: MOST_ROWS } : { seconds_back: 5, count: 400 };
    const told = await call("sample", { robot, ...asked });
    if (robot !== this.robot) return;
    const newest = told.rows[told.rows.length - 1]?.time_s;
    if (newest < last) this.rows = []; // an earlier moment was brought back
    const fresh = told.rows.filter((row) => !this.rows.length || row.time_s > this.rows[this.rows.length - 1].time_s);
    if (!fresh.length) return;
    this.rows = [...this.rows, ...fresh].slice(-MOST_ROWS);
    this.draw();
  }

  draw() {
    this.place.classList.toggle("u-weightless", this.weightless);
    const until = this.rows[this.rows.length - 1]?.time_s ?? 0;
    const rows = this.rows.filter((row) => row.time_s >= until - this.span);
    for (const [plot, chart] of this.charts) {
      const { of, names, colors, scales = 1 } = FIELDS[plot];
      const width = rows.length ? of(rows[0]).length : 0;
      const series = [...Array(width).keys()].map((n) => ({
        id: n, name: names ? words(names[n]) : `J${n + 1}`, type: "line", showSymbol: false, lineStyle: { width: 2 },
        color: colors?.[n], yAxisIndex: n % scales, data: rows.map((row) => [row.time_s - until, of(row)[n] ?? null]),
      }));
      chart.setOption({ xAxis: { min: -this.span }, series }, { replaceMerge: ["series"] });
    }
  }

  // A cell that reckons no dynamics tells zeros: that is said, and not drawn.
  get weightless() {
    return this.rows.length > 0 && this.rows.every((row) => row.torques_nm.every((torque) => torque === 0));
  }

  download() {
    const names = ["time_s", ...Object.keys(FIELDS).flatMap((plot) => (FIELDS[plot].of(this.rows[0] || {}) || []).map((_, n) => `${plot}_${n + 1}`))];
    const lines = this.rows.map((row) => [row.time_s, ...Object.values(FIELDS).flatMap(({ of }) => of(row))].join(","));
    save([names.join(","), ...lines].join("\n"), `${this.robot}.csv`, "text/csv");
  }

  report() {
    const most = (data) => data.reduce((largest, [, value]) => Math.max(largest, Math.abs(value ?? 0)), 0);
    const series = (plot) => this.charts.get(plot).getOption().series.map(({ name, data }) => ({ name, count: data.length, most: most(data) }));
    return { robot: this.robot, rows: this.rows.length, span: this.span, frozen: Boolean(this.frozen), plots: Object.fromEntries([...this.charts.keys()].map((plot) => [plot, series(plot)])) };
  }
}

const take = offer("plots", ["look", "freeze", "download", "turnTo"], { report: () => null });
onceThere("#plots-page", (place) => take(new Plots(place)));
