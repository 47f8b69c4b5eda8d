// Plots of the last minutes of a robot, from the record that the cell keeps of them (query `sample`).
// New rows are requested only while the page is visible.

import { ask, call, expose, fixed, save, text, whenReady, whileVisible } from "../../frame/api.js";
import { chartOptions, curves, PLOTS, seriesOf } from "./curves.js";
import { csv, png, svg } from "./export.js";
import { echarts } from "nicegui-echart";

const POLL_MS = 150;
const ROWS_SHOWN = 1500; // of one span; the export has all rows
const ALL_ROWS = 12000;
const FIRST_SPAN_S = 60;

class Plots {
  constructor(element) {
    this.element = element;
    this.charts = new Map();
    for (const box of element.querySelectorAll("[data-plot]")) this.add(box);
    this.setSpan(FIRST_SPAN_S);
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
    chart.setOption(chartOptions());
    this.charts.set(box.dataset.plot, chart);
  }

  setRobot(robot) {
    Object.assign(this, { robot, answer: { axes: [], plots: [] } });
    this.restart();
  }

  setSpan(seconds) {
    this.span = seconds;
    for (const button of this.element.querySelectorAll("[data-span]")) {
      button.classList.toggle("u-chosen", Number(button.dataset.span) === seconds);
    }
    if (!this.frozen) this.restart();
    else this.draw();
  }

  // Requests all rows of the span again.
  restart() {
    this.rows = [];
    this.requests = (this.requests ?? 0) + 1;
    for (const chart of this.charts.values()) chart.setOption({ series: [] }, { replaceMerge: ["series"] });
  }

  freeze() {
    this.frozen = !this.frozen;
    this.element.querySelector("[data-plots=freeze]").classList.toggle("u-chosen", this.frozen);
    if (!this.frozen) this.restart();
  }

  // Requests the rows of the span, then only those since the last one.
  async poll() {
    if (this.frozen) return;
    const { robot, requests } = this;
    const last = this.rows[this.rows.length - 1]?.time_s;
    const wanted = last === undefined ? { seconds_back: this.span } : { after_s: last };
    const answer = await call("sample", { robot, count: ROWS_SHOWN, ...wanted });
    if (requests !== this.requests || this.frozen) return;
    if (answer.newest_s < last) return this.restart(); // a snapshot of an earlier moment was restored
    this.answer = answer;
    this.rows = [...this.rows, ...answer.rows];
    const newest = this.rows[this.rows.length - 1]?.time_s ?? 0;
    const first = this.rows.findIndex((row) => row.time_s >= newest - this.span);
    if (first > 1) this.rows.splice(0, first - 1); // the row before the span begins its first line
    if (answer.rows.length) this.draw();
  }

  draw() {
    this.element.classList.toggle("u-no-torques", this.hasNoTorques);
    const until = this.rows[this.rows.length - 1]?.time_s ?? 0;
    for (const [plot, chart] of this.charts) {
      const found = curves(plot, this.answer);
      this.show(chart, found.length > 0);
      const { series, axes } = seriesOf(found, this.rows, until);
      chart.setOption({ xAxis: { min: -this.span }, yAxis: axes, series }, { replaceMerge: ["series", "yAxis"] });
    }
  }

  // A robot without joints has no torques, and one without devices has no values of them.
  show(chart, has) {
    const section = chart.getDom().closest(".u-plot");
    if (section.hidden === !has) return;
    section.hidden = !has;
    this.charts.forEach((each) => each.resize());
  }

  // A cell without dynamics sends zeros: a hint is shown instead of them.
  get hasNoTorques() {
    return this.rows.length > 0 && this.rows.every((row) => row.torques_nm.every((torque) => torque === 0));
  }

  // ── export: what is shown, the values at the full rate of the record ──

  async download(kind) {
    const name = `${this.robot}_${fixed(this.rows[this.rows.length - 1]?.time_s ?? 0, 0)}s`;
    if (kind === "csv") return save(await this.table(), `${name}.csv`, "text/csv");
    const shown = [...this.charts].filter(([, chart]) => chart.getDom().checkVisibility());
    const titled = shown.map(([plot, chart]) => [text(plot), chart]);
    if (kind === "svg") return save(svg(echarts, titled), `${name}.svg`, "image/svg+xml");
    return save(await png(titled), `${name}.png`, "image/png");
  }

  async table() {
    const answer = this.frozen ? null : await ask("sample", { robot: this.robot, seconds_back: this.span, count: ALL_ROWS });
    return csv(Object.keys(PLOTS).flatMap((plot) => curves(plot, this.answer)), answer?.rows ?? this.rows);
  }

  report() {
    const values = (data) => data.map(([, value]) => value);
    const most = (data) => values(data).reduce((largest, value) => Math.max(largest, Math.abs(value ?? 0)), 0);
    const series = (plot) => this.charts.get(plot).getOption().series.map(({ name, data }) => ({
      name, count: data.length, most: most(data), gaps: values(data).filter((value) => value === null).length,
    }));
    return {
      robot: this.robot, rows: this.rows.length, span: this.span, frozen: Boolean(this.frozen), first: this.rows[0]?.time_s ?? null,
      plots: Object.fromEntries([...this.charts.keys()].map((plot) => [plot, series(plot)])),
    };
  }
}

const ready = expose("plots", ["setSpan", "freeze", "download", "setRobot"], { report: () => null });
whenReady("#plots-page", (element) => ready(new Plots(element)));
