// How far the poses turn the flange in each direction; directions that are missing are marked.

import { fixed } from "../../frame/figures.js";

const FULL_DEG = 40; // a bar of full length

// `rows`: `coverage` of `hand_eye_status`
export function coverage(place, rows) {
  place.replaceChildren(...rows.map(bar));
}

function bar({ direction, turned_deg: turned, missing }) {
  const made = document.createElement("div");
  made.className = missing ? "u-calib-turn u-missing-turn" : "u-calib-turn";
  made.dataset.direction = direction;
  const [name, track, fill, value] = ["span", "span", "i", "b"].map((kind) => document.createElement(kind));
  name.textContent = direction;
  fill.style.width = `${Math.min(100, (100 * turned) / FULL_DEG)}%`;
  value.textContent = `${fixed(turned, 0)}° ${missing ? "✗" : "✓"}`;
  track.append(fill);
  made.append(name, track, value);
  return made;
}
