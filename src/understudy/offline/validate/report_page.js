'use strict';
const {reports, things} = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const canvas = $('canvas'), pen = canvas.getContext('2d');
let report, chosen = 0, frame = 0, bad = new Map();
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
  $('time').max = Math.max(report.points.length - 1, 0);
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
  for (const flat of report.points)
    flat.forEach((v, k) => {
      low[k % 3] = Math.min(low[k % 3], v);
      high[k % 3] = Math.max(high[k % 3], v);
    });
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
function stick(k) {
  const flat = report.points[k], out = [];
  for (let i = 0; i < flat.length; i += 3) out.push(flat.slice(i, i + 3));
  return out;
}
function tip(k) { return report.points[k].slice(-3); }
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
  for (let k = 0; k < report.points.length; k++) {
    run.push(tip(k));
    const line = report.at[k], last = k + 1 === report.points.length;
    if (last || report.at[k + 1] !== line) {
      stroke(run, color(line), line === chosen ? 4 : 1.5);
      run = [tip(k)];
    }
  }
  for (const f of report.findings)
    for (const contact of [f, ...(f.also || [])])
      if (contact.point_mm) dot(contact.point_mm.map(v => v / 1000), '#dc2626');
  if (report.points.length) {
    stroke(stick(frame), '#475569', 7);
    stroke(stick(frame), '#f8fafc', 3);
    dot(tip(frame), color(report.at[frame]));
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
$('time').oninput = () => { frame = Number($('time').value); draw(); };
reports.forEach((each, k) => $('program').add(new Option(each.program, k)));
$('program').onchange = () => show(Number($('program').value));
addEventListener('resize', draw);
show(0);
