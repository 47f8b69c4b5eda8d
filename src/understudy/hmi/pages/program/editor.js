// Editor of the program: G-code colours, the running line, violations and clearances beside lines.

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

export class Editor {
  // calls changed() after every edit by the user, clicked(line) when a line is clicked
  constructor(element, { changed, clicked }) {
    this.editable = new CM.Compartment();
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
    this.view = new CM.EditorView({
      parent: element,
      extensions: [
        CM.lineNumbers(), clearanceGutter, marked, CM.history(), CM.drawSelection(), CM.highlightActiveLineGutter(),
        CM.ViewPlugin.fromClass(Colours, { decorations: (colours) => colours.decorations }),
        CM.keymap.of([...CM.defaultKeymap, ...CM.historyKeymap]),
        this.editable.of([]), onUpdate, onClick, CM.EditorView.lineWrapping,
        CM.EditorView.theme({}, { dark: true }),
      ],
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  set text(text) {
    if (text !== this.text) this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
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
