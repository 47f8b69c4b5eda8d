// Editor of the program: colours, the running line, violations and clearances beside lines, problems
// and words of the language, breakpoints. Search and completion are those of CodeMirror; its bundle
// exports no way to set diagnostics, so that problems are marks of our own.

import { html } from "../../frame/elements.js";
import * as CM from "nicegui-codemirror";

const WORDS = [
  ["comment", /\([^)]*\)?|;.*/y],
  ["rapid", /G0+(?![\d.])/iy],
  ["motion", /G0*[123](?![\d.])/iy],
  ["code", /G\d+(\.\d+)?/iy],
  ["process", /[MT]\s*\d+/iy],
  ["number", /[NO]\d+|%/iy],
  ["axis", /[XYZABCUVWIJKR]\s*[-+]?[\d.]*/iy],
  ["figure", /[FSPQELDH]\s*[-+]?[\d.]*/iy],
];
const MARKS = Object.fromEntries(WORDS.map(([name]) => [name, CM.Decoration.mark({ class: `g-${name}` })]));

// → [[from, to, kind], …] of one line
export function tokens(line) {
  const found = [];
  for (let at = 0; at < line.length; ) {
    const hit = WORDS.map(([name, word]) => [name, matched(word, line, at)]).find(([, length]) => length);
    if (hit) found.push([at, at + hit[1], hit[0]]);
    at += hit ? hit[1] : 1;
  }
  return found;
}

function matched(word, line, at) {
  word.lastIndex = at;
  return word.exec(line)?.[0].length || 0;
}

function colours(view) {
  const marks = new CM.RangeSetBuilder();
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to; ) {
      const line = view.state.doc.lineAt(at);
      for (const [a, b, kind] of tokens(line.text)) marks.add(line.from + a, line.from + b, MARKS[kind]);
      at = line.to + 1;
    }
  }
  return marks.finish();
}

class Colours {
  constructor(view) {
    this.decorations = colours(view);
  }

  update(change) {
    if (change.docChanged || change.viewportChanged) this.decorations = colours(change.view);
  }
}

// ── marks of lines ──

const setMarks = CM.StateEffect.define(); // {running, failed, chosen, violations: Map line → message, clearances: Map line → {mm, proven}}
const NO_MARKS = { running: 0, failed: 0, chosen: 0, violations: new Map(), clearances: new Map() };

const marked = CM.StateField.define({
  create: () => NO_MARKS,
  update(value, change) {
    for (const effect of change.effects) if (effect.is(setMarks)) value = { ...value, ...effect.value };
    return value;
  },
  provide: (field) => CM.EditorView.decorations.compute([field, "doc"], (state) => lineMarks(state, state.field(field))),
});

function lineMarks(state, { running, failed, chosen, violations }) {
  const kinds = new Map();
  const add = (line, kind) => line >= 1 && line <= state.doc.lines && kinds.set(line, `${kinds.get(line) || ""} ${kind}`);
  for (const line of violations.keys()) add(line, "u-bad-line");
  add(chosen, "u-chosen-line");
  add(failed, "u-failed-line");
  add(running, "u-running-line");
  const lines = [...kinds].sort(([a], [b]) => a - b);
  return CM.RangeSet.of(lines.map(([line, kind]) => CM.Decoration.line({ class: kind.trim() }).range(state.doc.line(line).from)));
}

class Clearance extends CM.GutterMarker {
  constructor(text, kind) {
    super();
    Object.assign(this, { text, kind });
  }

  eq(other) {
    return other.text === this.text && other.kind === this.kind;
  }

  toDOM() {
    return html("span", `u-clearance ${this.kind}`, this.text);
  }
}

const clearanceGutter = CM.gutter({
  class: "u-clearances",
  lineMarker(view, block) {
    const number = view.state.doc.lineAt(block.from).number;
    const { violations, clearances } = view.state.field(marked);
    if (violations.has(number)) return new Clearance("✕", "u-violated");
    const known = clearances.get(number);
    return known ? new Clearance(known.text, known.kind) : null;
  },
  lineMarkerChange: (change) => change.transactions.some((each) => each.effects.some((effect) => effect.is(setMarks))),
});

// ── breakpoints ──

const setBreakpoints = CM.StateEffect.define(); // line numbers

class Breakpoint extends CM.GutterMarker {
  eq() {
    return true;
  }

  toDOM() {
    return html("span", "u-breakpoint");
  }
}

const BREAKPOINT = new Breakpoint();

// They move with their lines.
const breakpoints = CM.StateField.define({
  create: () => CM.RangeSet.empty,
  update(value, change) {
    value = value.map(change.changes);
    for (const effect of change.effects) {
      if (effect.is(setBreakpoints)) value = atLines(change.state.doc, effect.value);
    }
    return value;
  },
});

function atLines(doc, lines) {
  const known = [...new Set(lines)].filter((line) => line >= 1 && line <= doc.lines).sort((a, b) => a - b);
  return CM.RangeSet.of(known.map((line) => BREAKPOINT.range(doc.line(line).from)));
}

// ── problems and words ──

const setProblems = CM.StateEffect.define(); // [{line, column, message}, …]
const WORD = /[A-Za-z][A-Za-z_]*\s*[-+]?[\d.]*/g;
const COMMENT = /\([^)]*\)?|[;#].*/g;
const PROBLEM = CM.Decoration.mark({ class: "u-problem" });
const PROBLEM_LINE = CM.Decoration.line({ class: "u-problem-line" });

// {marks, found: [{from, to, message}, …]}
const problems = CM.StateField.define({
  create: () => ({ marks: CM.RangeSet.empty, found: [] }),
  update(value, change) {
    if (change.docChanged) {
      const moved = (each) => ({ ...each, from: change.changes.mapPos(each.from, 1), to: change.changes.mapPos(each.to, -1) });
      value = { marks: value.marks.map(change.changes), found: value.found.map(moved) };
    }
    for (const effect of change.effects) if (effect.is(setProblems)) value = located(change.state.doc, effect.value);
    return value;
  },
  provide: (field) => CM.EditorView.decorations.from(field, ({ marks }) => marks),
});

function located(doc, list) {
  const found = list.filter(({ line }) => line <= doc.lines).map(({ line, column, message }) => {
    const { from, to, text } = doc.line(line);
    const begin = from + Math.min(characters(text, column), text.length);
    const word = text.slice(begin - from).match(/^\S+/);
    return { from: column ? begin : from, to: column && word ? begin + word[0].length : to, message };
  });
  const marks = found.flatMap(({ from, to }) => [
    PROBLEM_LINE.range(doc.lineAt(from).from), ...(to > from ? [PROBLEM.range(from, to)] : []),
  ]);
  return { marks: CM.Decoration.set(marks, true), found };
}

// → characters before a column, which counts bytes from 1 on
function characters(text, column) {
  return new TextDecoder().decode(new TextEncoder().encode(text).slice(0, Math.max(0, column - 1))).length;
}

// `G01 ` → `G1`, `move_abs` → `MOVE_ABS`
function normalized(word) {
  const [, letters, number] = word.toUpperCase().match(/^([A-Z_]+)\s*([-+]?[\d.]*)/);
  return number && Number.isFinite(Number(number)) ? letters + Number(number) : letters;
}

const inComment = (text, at) => [...text.matchAll(COMMENT)].some((hit) => hit.index < at && at <= hit.index + hit[0].length);

function wordAt(line, at) {
  if (inComment(line.text, at - line.from)) return null;
  const hit = [...line.text.matchAll(WORD)].find(({ index, 0: word }) => line.from + index <= at && at < line.from + index + word.trimEnd().length);
  return hit ? { name: normalized(hit[0]), from: line.from + hit.index, to: line.from + hit.index + hit[0].trimEnd().length } : null;
}

function tooltip(from, to, rows) {
  const create = () => {
    const dom = html("div", "u-word-tip");
    for (const [kind, words] of rows) if (words) dom.append(html("div", kind, words));
    return { dom };
  };
  return { pos: from, end: to, above: true, create };
}

export class Editor {
  // calls changed() after every edit by the user, clicked(line) when a line is clicked,
  // breakpointsChanged() when the user sets or removes one; `phrases`: CodeMirror's own words
  constructor(element, { changed, clicked, breakpointsChanged, phrases = {} }) {
    this.editable = new CM.Compartment();
    this.words = new Map(); // of the language: name → {word, meaning, parameters}
    this.breakpointsChanged = breakpointsChanged;
    const onUpdate = CM.EditorView.updateListener.of((change) => {
      const byUser = change.transactions.some((each) => each.isUserEvent("input") || each.isUserEvent("delete") || each.isUserEvent("undo") || each.isUserEvent("redo"));
      if (change.docChanged && byUser) changed();
    });
    const onClick = CM.EditorView.domEventHandlers({
      mouseup: (event, view) => {
        const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
        if (at !== null && view.state.selection.main.empty) clicked(view.state.doc.lineAt(at).number);
      },
    });
    // one function for all states: CodeMirror compares sources of completions
    const language = { autocomplete: (context) => this.completions(context), closeBrackets: { brackets: ["("] } };
    this.view = new CM.EditorView({
      parent: element,
      extensions: [
        this.breakpointGutter(),
        CM.Prec.high(CM.keymap.of([
          { key: "Mod-Shift-b", run: () => this.toggleBreakpoint() },
          { key: "Mod-Shift-m", run: () => this.nextProblem() },
        ])),
        CM.basicSetup, clearanceGutter, marked, breakpoints, problems,
        CM.ViewPlugin.fromClass(Colours, { decorations: (colours) => colours.decorations }),
        CM.EditorState.languageData.of(() => [language]),
        CM.hoverTooltip((view, at) => this.explained(view, at)),
        CM.EditorState.phrases.of(phrases),
        this.editable.of([]), onUpdate, onClick,
        CM.EditorView.theme({}, { dark: true }),
      ],
    });
  }

  // ── words of the language ──

  setWords(words) {
    this.words = new Map(words.map((each) => [each.word, each]));
  }

  // A word that is complete already offers nothing: Enter ends its line.
  completions(context) {
    const before = context.matchBefore(/[A-Za-z][\w.]*/);
    const line = context.state.doc.lineAt(context.pos);
    if (!before || inComment(line.text, context.pos - line.from)) return null;
    if (!context.explicit && this.words.has(normalized(before.text))) return null;
    const options = [...this.words.values()].map(({ word, meaning, parameters }) => ({
      label: word, detail: meaning, info: parameters || undefined, type: "keyword",
    }));
    return { from: before.from, options, validFor: /^[A-Za-z][\w.]*$/ };
  }

  // The problem there, or the meaning of the word.
  explained(view, at) {
    const problem = view.state.field(problems).found.find(({ from, to }) => from <= at && at <= to);
    if (problem) return tooltip(problem.from, problem.to, [["u-tip-problem", problem.message]]);
    const hit = wordAt(view.state.doc.lineAt(at), at);
    const known = hit && this.words.get(hit.name);
    if (!known) return null;
    return tooltip(hit.from, hit.to, [["u-tip-word", `${known.word}  ${known.meaning}`], ["u-tip-parameters", known.parameters]]);
  }

  setProblems(list) {
    this.view.dispatch({ effects: setProblems.of(list) });
  }

  get problems() {
    return this.view.state.field(problems).found;
  }

  // Sets the cursor to the next problem after it, from the last one to the first.
  nextProblem() {
    const { head } = this.view.state.selection.main;
    const next = this.problems.find(({ from }) => from > head) ?? this.problems[0];
    if (!next) return false;
    this.view.dispatch({ selection: { anchor: next.from }, effects: CM.EditorView.scrollIntoView(next.from, { y: "center" }) });
    this.view.focus();
    return true;
  }

  // Opens CodeMirror's search, as its key does.
  search() {
    this.view.focus();
    const mac = /Mac/.test(navigator.platform);
    CM.runScopeHandlers(this.view, new KeyboardEvent("keydown", { key: "f", ctrlKey: !mac, metaKey: mac }), "editor");
  }

  // ── breakpoints ──

  breakpointGutter() {
    return CM.gutter({
      class: "u-breakpoints", renderEmptyElements: true,
      markers: (view) => view.state.field(breakpoints),
      initialSpacer: () => BREAKPOINT,
      domEventHandlers: {
        mousedown: (view, block) => {
          this.toggleBreakpoint(view.state.doc.lineAt(block.from).number);
          return true;
        },
      },
    });
  }

  get breakpoints() {
    const { doc } = this.view.state;
    const lines = [];
    this.view.state.field(breakpoints).between(0, doc.length, (from) => void lines.push(doc.lineAt(from).number));
    return [...new Set(lines)];
  }

  set breakpoints(lines) {
    if (String(lines) !== String(this.breakpoints)) this.view.dispatch({ effects: setBreakpoints.of(lines) });
  }

  toggleBreakpoint(line = this.line) {
    const now = this.breakpoints;
    this.breakpoints = now.includes(line) ? now.filter((each) => each !== line) : [...now, line];
    this.breakpointsChanged();
    return true;
  }

  get text() {
    return this.view.state.doc.toString();
  }

  set text(text) {
    const effects = setBreakpoints.of([]);
    if (text !== this.text) this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, effects });
  }

  get line() {
    return this.view.state.doc.lineAt(this.view.state.selection.main.head).number;
  }

  get lines() {
    return this.view.state.doc.lines;
  }

  mark(marks) {
    this.view.dispatch({ effects: setMarks.of(marks) });
  }

  lock(locked) {
    if (locked === this.locked) return;
    this.locked = locked;
    const closed = [CM.EditorState.readOnly.of(true), CM.EditorView.editable.of(false), CM.EditorView.editorAttributes.of({ class: "u-locked" })];
    this.view.dispatch({ effects: this.editable.reconfigure(locked ? closed : []) });
  }

  show(line) {
    if (line < 1 || line > this.lines) return;
    this.view.dispatch({ effects: CM.EditorView.scrollIntoView(this.view.state.doc.line(line).from, { y: "center" }) });
  }

  // Sets the cursor to a line and scrolls there.
  goTo(line) {
    if (line < 1 || line > this.lines) return;
    const { from } = this.view.state.doc.line(line);
    this.view.dispatch({ selection: { anchor: from }, effects: CM.EditorView.scrollIntoView(from, { y: "center" }) });
  }

  // Inserts a line below the cursor's line, and sets the cursor to its end.
  insertBelow(text) {
    const { doc, selection } = this.view.state;
    const line = doc.lineAt(selection.main.head);
    const empty = line.text.trim() === "";
    const insert = empty ? text : `\n${text}`;
    const from = empty ? line.from : line.to;
    this.view.dispatch({ changes: { from, to: line.to, insert }, selection: { anchor: from + insert.length }, userEvent: "input" });
  }
}
