// Map of one layer of a pallet: which places are filled, which is next, which are out of reach.

import { text } from "../../frame/api.js";
import { drawing, svg } from "../../frame/elements.js";

const MOST = 2500; // places that are drawn
const CELL = 40;
const GAP = 4;

export class PalletMap {
  constructor(place, line) {
    [this.place, this.line] = [place, line];
    this.cells = new Map(); // index → element
    this.layer = null;
    this.chosen = null; // the layer that the user looks at; null: the one that is next
  }

  choose(by, next) {
    const last = (this.layer?.layers ?? 1) - 1;
    const wanted = Math.min(Math.max((this.chosen ?? next) + by, 0), last);
    this.chosen = wanted === next ? null : wanted;
  }

  // `layer`: the answer to `pallet_layer`
  build(layer) {
    this.layer = layer;
    this.cells.clear();
    const { rows, columns, places } = layer;
    if (places.length > MOST) {
      this.place.textContent = text("many_places");
      return;
    }
    const root = drawing(columns * CELL, rows * CELL, { class: "u-map-drawing" });
    for (const [index, row, column] of places) root.append(this.cell(index, row, column));
    this.place.replaceChildren(root);
  }

  cell(index, row, column) {
    const [x, y, side] = [column * CELL + GAP / 2, row * CELL + GAP / 2, CELL - GAP];
    const made = svg("g", { class: "u-place", "data-place": index }, [
      svg("rect", { x, y, width: side, height: side, rx: 5 }),
      svg("text", { x: x + side / 2, y: y + side / 2 + 5, text: index + 1 }),
    ]);
    if (this.layer.unreachable.includes(index)) made.classList.add("u-place-far");
    this.cells.set(index, made);
    return made;
  }

  // `index`: places that are done
  fill({ index, total }) {
    if (!this.layer) return;
    const { layer, layers, depalletise } = this.layer;
    for (const [number, cell] of this.cells) {
      cell.classList.toggle("u-place-full", depalletise ? number >= index : number < index);
      cell.classList.toggle("u-place-next", number === index && index < total);
    }
    this.line.textContent = text("layer", { layer: layer + 1, layers });
  }

  report() {
    const having = (name) => [...this.cells].filter(([, cell]) => cell.classList.contains(name)).map(([index]) => index);
    return { layer: this.layer?.layer, places: this.cells.size, full: having("u-place-full").length, next: having("u-place-next") };
  }
}
