'use strict';
const {reports, things, figures} = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const canvas = $('canvas'), pen = canvas.getContext('2d');
let report, chosen = 0, frame = 0, bad = new Map(), playing = null;
const eye = {turn: -0.9, tilt: 0.5, size: 2.2, x: 0.3, y: 0, z: 0.4};

function show(index) {
  report = reports[index];
  bad = new Map();
  for (const f of report.findings)
    for (let n = f.line; n <= (f.last_line || f.line); n++)
      if (bad.get(n) !== 'violation') bad.set(n, f.level);
  $('verdict').textContent = report.verdict;
  $('verdict').className = report.verdict;
  $('facts').textContent = `${report.cell} · ${report.robot} · ${times(report.cycle_time)}`;
  $('findings').replaceChildren(...report.findings.map(finding), ...report.notes.map(note));
  $('lines').replaceChildren(...report.lines.map(row));
  if (report.omitted) $('lines').append(cells(['', '', '', `… ${report.omitted} more lines`]));
  $('time').max = Math.max(report.tips.length - 1, 0);
  fit();
  choose(0);
  if (report.findings.length) {
    choose(report.findings[0].line);
    at(report.findings[0].time_s);
  }
}
function times(cycle) {
  const parts = ['motion', 'process', 'dwell', 'io'].filter(name => cycle[`${name}_s`] > 0);
  const shares = parts.map(name => `${name} ${cycle[`${name}_s`].toFixed(3)}`).join(', ');
  return `${cycle.total_s.toFixed(3)} s${parts.length > 1 ? ` (${shares})` : ''}`;
}
function fit() {
  // Fit the view to the whole path and the robot's base.
  const low = [0, 0, 0], high = [0, 0, 0];
  const reach = point => point.forEach((v, k) => {
    low[k] = Math.min(low[k], v);
    high[k] = Math.max(high[k], v);
  });
  report.tips.forEach(reach);
  for (const {corners} of solids(0)) corners.forEach(reach);
  [eye.x, eye.y, eye.z] = low.map((v, k) => (v + high[k]) / 2);
  eye.size = 1.4 * Math.max(0.02, Math.hypot(...high.map((v, k) => v - low[k])));
}
function finding(f) {
  const item = document.createElement('li');
  item.className = f.level;
  item.textContent = `${f.kind}: ${f.message}`;
  item.onclick = () => { choose(f.line); at(f.time_s); };
  return item;
}
function note(text) {
  const item = document.createElement('li');
  item.className = 'note';
  item.textContent = text;
  return item;
}
function cells(texts) {
  const tr = document.createElement('tr');
  for (const text of texts) tr.insertCell().textContent = text;
  return tr;
}
function row(line) {
  const mm = value => value === null ? '' : value.toFixed(1);
  const tr = cells([
    line.line, line.start_s.toFixed(2), mm(line.clearance_mm), mm(line.seen_mm), line.text,
  ]);
  tr.id = `line${line.line}`;
  tr.className = `${bad.get(line.line) || ''} ${line.proven ? '' : 'unproven'}`;
  if (!line.proven) tr.title = 'not proven';
  tr.onclick = () => { choose(line.line); at(line.start_s); };
  return tr;
}
function choose(line) {
  pause();
  document.querySelectorAll('tr.chosen').forEach(tr => tr.classList.remove('chosen'));
  const tr = $(`line${line}`);
  if (tr) { tr.classList.add('chosen'); tr.scrollIntoView({block: 'nearest'}); }
  chosen = line;
  const first = report.at.indexOf(line);
  frame = Math.max(first, 0);
  $('time').value = frame;
  draw();
}
function at(seconds) {
  pause();
  const next = report.times.findIndex(t => t >= seconds);
  frame = Math.max(next < 0 ? report.times.length - 1 : next, 0);
  $('time').value = frame;
  draw();
}

function seen([x, y, z]) {
  const c = Math.cos(eye.turn), s = Math.sin(eye.turn);
  const u = (x - eye.x) * c - (y - eye.y) * s, v = (x - eye.x) * s + (y - eye.y) * c;
  const scale = Math.min(canvas.width, canvas.height) / eye.size;
  const up = (z - eye.z) * Math.cos(eye.tilt) + v * Math.sin(eye.tilt);
  return [canvas.width / 2 + u * scale, canvas.height / 2 - up * scale];
}
function stroke(points, color, width) {
  pen.strokeStyle = color;
  pen.lineWidth = width * devicePixelRatio;
  pen.beginPath();
  points.forEach((p, k) => { const [x, y] = seen(p); k ? pen.lineTo(x, y) : pen.moveTo(x, y); });
  pen.stroke();
}
function tip(k) { return report.tips[k]; }

// ── bodies: links of the robot and its tool, drawn from far to near ──

function times4(a, b) {
  const out = new Array(16).fill(0);
  for (let i = 0; i < 4; i++)
    for (let j = 0; j < 4; j++)
      for (let k = 0; k < 4; k++) out[4 * i + j] += a[4 * i + k] * b[4 * k + j];
  return out;
}
function about([x, y, z], angle) {
  const n = Math.hypot(x, y, z), c = Math.cos(angle), s = Math.sin(angle), v = 1 - c;
  [x, y, z] = [x / n, y / n, z / n];
  return [
    c + v * x * x, v * x * y - s * z, v * x * z + s * y, 0,
    v * x * y + s * z, c + v * y * y, v * y * z - s * x, 0,
    v * x * z - s * y, v * y * z + s * x, c + v * z * z, 0, 0, 0, 0, 1];
}
function along([x, y, z], way) {
  return [1, 0, 0, x * way, 0, 1, 0, y * way, 0, 0, 1, z * way, 0, 0, 0, 1];
}
// The frame of every joint, the base last.
function frames(figure, q) {
  let at = figure.base, next = 0;
  const found = figure.joints.map(joint => {
    at = times4(at, joint.origin);
    if (joint.kind === 'prismatic') at = times4(at, along(joint.axis, q[next++]));
    else if (joint.kind !== 'fixed') at = times4(at, about(joint.axis, q[next++]));
    return at;
  });
  found[-1] = figure.base;
  return found;
}
// Shapes with their corners in the cell, at sample k (which may lie between two samples).
function solids(k) {
  const low = Math.floor(k), high = Math.min(low + 1, report.tips.length - 1), part = k - low;
  const figure = figures[`${report.robot}/${report.tools[low]}`];
  if (!figure) return [];
  const q = report.joints[low].map((v, n) => v + part * (report.joints[high][n] - v));
  const at = frames(figure, q);
  return figure.shapes.map(shape => {
    const T = at[shape.joint], corners = [];
    for (let i = 0; i < shape.at.length; i += 3) {
      const x = shape.at[i] / 1e4, y = shape.at[i + 1] / 1e4, z = shape.at[i + 2] / 1e4;
      corners.push([
        T[0] * x + T[1] * y + T[2] * z + T[3],
        T[4] * x + T[5] * y + T[6] * z + T[7],
        T[8] * x + T[9] * y + T[10] * z + T[11]]);
    }
    return {shape, corners};
  });
}
function depth([x, y, z]) {
  const v = (x - eye.x) * Math.sin(eye.turn) + (y - eye.y) * Math.cos(eye.turn);
  return v * Math.cos(eye.tilt) - (z - eye.z) * Math.sin(eye.tilt);
}
function shade(hex, share) {
  const part = n => Math.round(parseInt(hex.slice(n, n + 2), 16) * share);
  return `rgb(${part(1)},${part(3)},${part(5)})`;
}
const LIGHT = [0.36, -0.48, 0.8];
function body(k) {
  const faces = [];
  for (const {shape, corners} of solids(k)) {
    const flat = corners.map(seen), deep = corners.map(depth);
    for (let i = 0; i < shape.of.length; i += 3) {
      const [a, b, c] = [shape.of[i], shape.of[i + 1], shape.of[i + 2]];
      const u = corners[b].map((v, n) => v - corners[a][n]);
      const w = corners[c].map((v, n) => v - corners[a][n]);
      const normal = [u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]];
      const size = Math.hypot(...normal) || 1;
      const lit = Math.abs(normal.reduce((sum, v, n) => sum + v * LIGHT[n], 0)) / size;
      faces.push([deep[a] + deep[b] + deep[c], [flat[a], flat[b], flat[c]], shade(shape.color, 0.45 + 0.55 * lit)]);
    }
  }
  faces.sort((one, other) => other[0] - one[0]);
  pen.lineWidth = 0.6 * devicePixelRatio;
  for (const [, [a, b, c], fill] of faces) {
    pen.fillStyle = pen.strokeStyle = fill;
    pen.beginPath();
    pen.moveTo(...a); pen.lineTo(...b); pen.lineTo(...c);
    pen.closePath();
    pen.fill(); pen.stroke();
  }
  return faces.length;
}

function color(line) {
  const level = bad.get(line);
  return level === 'violation' ? '#dc2626' : level ? '#d97706' : '#2563eb';
}
function draw() {
  const box = canvas.getBoundingClientRect();
  canvas.width = box.width * devicePixelRatio;
  canvas.height = box.height * devicePixelRatio;
  const arrow = 0.1 * eye.size;
  stroke([[0, 0, 0], [arrow, 0, 0]], '#ef4444', 1);
  stroke([[0, 0, 0], [0, arrow, 0]], '#22c55e', 1);
  stroke([[0, 0, 0], [0, 0, arrow]], '#3b82f6', 1);
  for (const thing of things)
    for (const line of thing.lines) stroke(line, thing.zone ? '#f59e0b' : '#94a3b8', 1);
  let run = [];
  for (let k = 0; k < report.tips.length; k++) {
    run.push(tip(k));
    const line = report.at[k], last = k + 1 === report.tips.length;
    if (last || report.at[k + 1] !== line) {
      stroke(run, color(line), line === chosen ? 4 : 1.5);
      run = [tip(k)];
    }
  }
  for (const f of report.findings)
    for (const contact of [f, ...(f.also || [])])
      if (contact.point_mm) dot(contact.point_mm.map(v => v / 1000), '#dc2626');
  if (report.tips.length) {
    canvas.dataset.faces = body(frame);
    const now = Math.round(frame);
    dot(tip(now), color(report.at[now]));
    $('clock').textContent = `${report.times[now].toFixed(2)} s · line ${report.at[now]}`;
  }
}
function dot(point, fill) {
  const [x, y] = seen(point);
  pen.fillStyle = fill;
  pen.beginPath();
  pen.arc(x, y, 5 * devicePixelRatio, 0, 7);
  pen.fill();
}

let held = null;
canvas.onpointerdown = e => {
  held = [e.clientX, e.clientY];
  canvas.setPointerCapture(e.pointerId);
};
canvas.onpointerup = () => { held = null; };
canvas.onpointermove = e => {
  if (!held) return;
  eye.turn += (e.clientX - held[0]) * 0.01;
  eye.tilt = Math.min(1.57, Math.max(-0.3, eye.tilt + (e.clientY - held[1]) * 0.01));
  held = [e.clientX, e.clientY];
  draw();
};
canvas.onwheel = e => { e.preventDefault(); eye.size *= Math.exp(e.deltaY * 0.001); draw(); };
$('time').oninput = () => { pause(); frame = Number($('time').value); draw(); };

// ── playing in real time ──

function pause() {
  if (playing !== null) cancelAnimationFrame(playing.request);
  playing = null;
  $('play').textContent = '▶';
}
function play() {
  if (frame >= report.tips.length - 1) frame = 0;
  playing = {since: performance.now(), from: timeOf(frame)};
  $('play').textContent = '⏸';
  playing.request = requestAnimationFrame(tick);
}
function timeOf(k) {
  const low = Math.floor(k), high = Math.min(low + 1, report.times.length - 1);
  return report.times[low] + (k - low) * (report.times[high] - report.times[low]);
}
function tick(now) {
  const time = playing.from + Math.max(now - playing.since, 0) / 1000;
  const high = report.times.findIndex(t => t > time);
  if (high < 0) { frame = report.tips.length - 1; pause(); }
  else {
    const low = Math.max(high - 1, 0), gap = report.times[high] - report.times[low];
    frame = low + (gap > 0 ? Math.max(time - report.times[low], 0) / gap : 0);
    playing.request = requestAnimationFrame(tick);
  }
  $('time').value = Math.round(frame);
  draw();
}
$('play').onclick = () => { if (playing) pause(); else if (report.tips.length) play(); };
reports.forEach((each, k) => $('program').add(new Option(each.program, k)));
$('program').onchange = () => show(Number($('program').value));
addEventListener('resize', draw);
show(0);
