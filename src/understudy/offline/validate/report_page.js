'use strict';
const {reports, things, figures} = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const canvas = $('canvas'), pen = canvas.getContext('2d');
let report, chosen = 0, frame = 0, bad = new Map(), playing = null;
let ever = new Set();  // bodies that touch something anywhere in the program
const RED = '#dc2626';
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
  $('findings').replaceChildren(...report.findings.map(finding));
  const count = report.notes.length, notes = $('notes');
  notes.hidden = !count;
  notes.querySelector('summary').textContent = `${count} note${count === 1 ? '' : 's'}`;
  notes.querySelector('ul').replaceChildren(...report.notes.map(note));
  ever = new Set(report.findings.flatMap(objects));
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
// The bodies that a finding is about.
function objects(f) {
  return [f, ...(f.also || [])].flatMap(contact => contact.objects || []);
}
// The bodies that touch something on a line.
function touching(line) {
  const there = report.findings.filter(f => f.line <= line && line <= (f.last_line || f.line));
  return new Set(there.flatMap(objects));
}
function cells(texts) {
  const tr = document.createElement('tr');
  for (const text of texts) tr.insertCell().textContent = text;
  return tr;
}
function row(line) {
  const mm = value => value === null ? '' : (Math.round(10 * value) / 10 + 0).toFixed(1);
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

// ── bodies: the environment, the links of the robot and its tool ──

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
const LIGHT = [0.36, -0.48, 0.8];
const still = things.filter(thing => thing.at).map(thing => ({shape: thing, corners: placed(thing)}));
function placed(shape) {
  const corners = [];
  for (let i = 0; i < shape.at.length; i += 3)
    corners.push([shape.at[i] / 1e4, shape.at[i + 1] / 1e4, shape.at[i + 2] / 1e4]);
  return corners;
}

// A picture with a depth for each pixel, so that near bodies hide far ones. It has at most
// MOST_PIXELS, and is stretched over the canvas.
const MOST_PIXELS = 1.5e6;
const sheet = document.createElement('canvas'), ink = sheet.getContext('2d');
let picture, pixels, deep, zoom = 1;
function clear() {
  zoom = Math.min(1, Math.sqrt(MOST_PIXELS / (canvas.width * canvas.height)));
  sheet.width = Math.max(1, Math.round(canvas.width * zoom));
  sheet.height = Math.max(1, Math.round(canvas.height * zoom));
  picture = ink.createImageData(sheet.width, sheet.height);
  pixels = new Uint32Array(picture.data.buffer);
  deep = new Float32Array(sheet.width * sheet.height).fill(Infinity);
}
function triangle(a, b, c, color) {
  const area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  if (!area) return;
  const left = Math.max(0, Math.floor(Math.min(a[0], b[0], c[0])));
  const right = Math.min(sheet.width - 1, Math.ceil(Math.max(a[0], b[0], c[0])));
  const top = Math.max(0, Math.floor(Math.min(a[1], b[1], c[1])));
  const bottom = Math.min(sheet.height - 1, Math.ceil(Math.max(a[1], b[1], c[1])));
  for (let y = top; y <= bottom; y++)
    for (let x = left; x <= right; x++) {
      const v = ((x - a[0]) * (c[1] - a[1]) - (y - a[1]) * (c[0] - a[0])) / area;
      const w = ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / area;
      if (v < 0 || w < 0 || v + w > 1) continue;
      const z = a[2] + v * (b[2] - a[2]) + w * (c[2] - a[2]), k = y * sheet.width + x;
      if (z >= deep[k]) continue;
      deep[k] = z;
      pixels[k] = color;
    }
}
function paint({shape, corners}, hex) {
  const flat = corners.map(corner => {
    const [x, y] = seen(corner);
    return [x * zoom, y * zoom, depth(corner)];
  });
  const base = [1, 3, 5].map(n => parseInt(hex.slice(n, n + 2), 16));
  for (let i = 0; i < shape.of.length; i += 3) {
    const [a, b, c] = [shape.of[i], shape.of[i + 1], shape.of[i + 2]];
    const u = corners[b].map((v, n) => v - corners[a][n]);
    const w = corners[c].map((v, n) => v - corners[a][n]);
    const normal = [u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]];
    const size = Math.hypot(...normal) || 1;
    const lit = 0.45 + 0.55 * Math.abs(normal.reduce((sum, v, n) => sum + v * LIGHT[n], 0)) / size;
    const [red, green, blue] = base.map(part => Math.round(part * lit));
    triangle(flat[a], flat[b], flat[c], (255 << 24 | blue << 16 | green << 8 | red) >>> 0);
  }
  return shape.of.length / 3;
}
// Paints the environment, if it is solid, and the robot; returns the number of triangles.
function bodies(k) {
  const now = touching(report.at[Math.round(k)]);
  let count = 0;
  clear();
  if ($('solid').checked)
    for (const each of still) count += paint(each, ever.has(each.shape.name) ? RED : each.shape.color);
  for (const each of solids(k)) count += paint(each, now.has(each.shape.name) ? RED : each.shape.color);
  ink.putImageData(picture, 0, 0);
  pen.drawImage(sheet, 0, 0, canvas.width, canvas.height);
  return count;
}
// Whether a body hides a point.
function hidden(point) {
  const [x, y] = seen(point), px = Math.round(x * zoom), py = Math.round(y * zoom);
  if (px < 0 || py < 0 || px >= sheet.width || py >= sheet.height) return false;
  return depth(point) > deep[py * sheet.width + px] + 0.004;
}
// A line whose hidden parts are faint, or left out.
function visible(points, color, width, dim = 0.25) {
  let run = [points[0]], was = null;
  for (let k = 1; k < points.length; k++) {
    const [p, q] = [points[k - 1], points[k]];
    const pieces = Math.min(40, Math.max(1, Math.round(
      Math.hypot(...seen(p).map((v, n) => v - seen(q)[n])) / 12 / devicePixelRatio)));
    for (let n = 1; n <= pieces; n++) {
      const at = share => p.map((v, i) => v + share * (q[i] - v));
      const is = hidden(at((n - 0.5) / pieces));
      if (was !== null && is !== was) { faint(run, color, width, was ? dim : 1); run = [run.at(-1)]; }
      run.push(at(n / pieces));
      was = is;
    }
  }
  faint(run, color, width, was ? dim : 1);
}
function faint(points, color, width, alpha) {
  pen.globalAlpha = alpha;
  stroke(points, color, width);
  pen.globalAlpha = 1;
}

function color(line) {
  const level = bad.get(line);
  return level === 'violation' ? RED : level ? '#d97706' : '#2563eb';
}
function draw() {
  const box = canvas.getBoundingClientRect();
  canvas.width = box.width * devicePixelRatio;
  canvas.height = box.height * devicePixelRatio;
  canvas.dataset.faces = report.tips.length ? bodies(frame) : 0;
  const arrow = 0.1 * eye.size;
  stroke([[0, 0, 0], [arrow, 0, 0]], '#ef4444', 1);
  stroke([[0, 0, 0], [0, arrow, 0]], '#22c55e', 1);
  stroke([[0, 0, 0], [0, 0, arrow]], '#3b82f6', 1);
  for (const thing of things)
    for (const line of thing.lines)
      if (thing.zone) visible(line, '#f59e0b', 1.5);
      else visible(line, ever.has(thing.name) ? RED : '#8a7f70', 1, 0);
  let run = [];
  for (let k = 0; k < report.tips.length; k++) {
    run.push(tip(k));
    const line = report.at[k], last = k + 1 === report.tips.length;
    if (last || report.at[k + 1] !== line) {
      visible(run, color(line), line === chosen ? 4 : 1.5);
      run = [tip(k)];
    }
  }
  for (const f of report.findings)
    for (const contact of [f, ...(f.also || [])])
      if (contact.point_mm) dot(contact.point_mm.map(v => v / 1000), RED);
  if (report.tips.length) {
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
$('solid').onchange = () => draw();
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
