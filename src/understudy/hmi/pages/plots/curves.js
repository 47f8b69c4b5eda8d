// The curves of each plot, with their units, and how a chart draws them.

import { fixed, text } from "../../frame/api.js";

const COLORS = ["#6cc7ff", "#ffb454", "#5fe39a", "#ff7f9f", "#c9a6ff", "#f4e06d", "#8ff0e8", "#ffffff"];
const POSE = [["X", "mm", 0], ["Y", "mm", 1], ["Z", "mm", 2]];
const ON_FLOOR = () => [POSE[0], POSE[1], [text("heading"), "°", 5]];
const perSecond = (unit) => `${unit}/s`;

// Plot → its curves for an answer of `sample`: {name, unit, value(row)}
export const PLOTS = {
  // of a robot without joints: the position of its tool; of a vehicle its place on the floor
  positions: ({ axes, vehicle }) => axes.length
    ? axes.map(({ name, unit }, n) => ({ name, unit, value: (row) => row.joints_deg[n] }))
    : (vehicle ? ON_FLOOR() : POSE).map(([name, unit, n]) => ({ name, unit, value: (row) => row.pose_mm_deg[n] })),
  velocities: ({ axes, vehicle }) => [
    ...axes.map(({ name, unit }, n) => ({ name, unit: perSecond(unit), value: (row) => row.velocities_deg_s[n] })),
    { name: text(vehicle ? "speed" : "tool"), key: "tool", unit: "mm/s", value: (row) => row.tool_speed_mm_s },
  ],
  torques: ({ axes }) => axes.map(({ name, unit }, n) => ({ name, unit: unit === "mm" ? "N" : "Nm", value: (row) => row.torques_nm[n] })),
  devices: ({ plots }) => plots.map(({ name, unit }) => ({ name: text(name), key: name, unit, value: (row) => row[name] })),
};

export const curves = (plot, answer) =>
  PLOTS[plot](answer).map((curve) => ({ ...curve, column: `${plot}_${curve.key ?? curve.name}_${curve.unit}` }));

// Time in seconds before `until`. A row after a gap is not joined with the row before it.
function points(rows, value, until) {
  const found = [];
  for (const row of rows) {
    const at = row.time_s - until;
    if (row.gap && found.length) found.push([at, null]);
    found.push([at, value(row) ?? null]);
  }
  return found;
}

const INK = { color: "#b4bfc9", fontSize: 14 };
const LINE = { lineStyle: { color: "#323c46" } };

// → the lines of the curves, and a scale for each of their units (the second one is on the right)
export function seriesOf(shown, rows, until) {
  const units = [...new Set(shown.map(({ unit }) => unit))];
  const series = shown.map(({ name, unit, value }, n) => ({
    id: n, name: units.length > 1 ? `${name} ${unit}` : name, type: "line", showSymbol: false, connectNulls: false, lineStyle: { width: 2 },
    color: COLORS[n % COLORS.length], yAxisIndex: Math.min(units.indexOf(unit), 1), data: points(rows, value, until),
  }));
  const axes = (units.length ? units.slice(0, 2) : [""]).map((unit, n) => ({
    id: n, type: "value", name: unit, nameTextStyle: INK, position: n ? "right" : "left",
    scale: units.length === 1, axisLabel: INK, splitLine: { ...LINE, show: n === 0 }, axisLine: { onZero: false },
  }));
  return { series, axes };
}

export const chartOptions = () => ({
  animation: false, textStyle: { fontFamily: "Roboto, sans-serif" },
  grid: { left: 58, right: 58, top: 62, bottom: 30 },
  legend: { type: "scroll", top: 0, left: 0, right: 0, padding: [6, 0], textStyle: { color: "#f2f5f7", fontSize: 13, lineHeight: 20 }, icon: "roundRect", itemWidth: 14, itemHeight: 6, itemGap: 8, pageTextStyle: { color: "#f2f5f7" }, pageIconColor: "#b4bfc9" },
  tooltip: {
    trigger: "axis", backgroundColor: "#1f262d", borderColor: "#323c46", textStyle: { color: "#f2f5f7" },
    axisPointer: { label: { formatter: ({ value }) => `${fixed(value, 2)} s` } },
    valueFormatter: (value) => (Number.isFinite(value) ? fixed(value, 2) : "–"),
  },
  xAxis: { type: "value", max: 0, axisLabel: { ...INK, formatter: (value) => (value ? `${value} s` : text("now")) }, splitLine: LINE, axisLine: { ...LINE, onZero: false } },
  yAxis: [{ type: "value", axisLabel: INK, splitLine: LINE }],
  series: [],
});
