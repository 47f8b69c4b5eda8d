// The picture of a camera with a drawing over it. Without a picture there is a plain field of its size.

import { drawing, svg } from "./elements.js";

export class Picture {
  // calls draw() when the size of the element changes
  constructor(place, draw) {
    this.place = place;
    this.observer = new ResizeObserver(draw);
    this.observer.observe(place);
  }

  close() {
    this.observer.disconnect();
  }

  // → pixels of a picture of this size in a pixel of the screen
  scale({ width, height }) {
    return Math.max(width / Math.max(this.place.clientWidth, 1), height / Math.max(this.place.clientHeight, 1));
  }

  // `image`: its format and its data in base64, or null; `over`: elements that are drawn over it
  show({ width, height }, image, over) {
    const root = drawing(width, height, { class: "u-eye-drawing" });
    root.append(svg("rect", { width, height, class: "u-eye-field" }));
    if (image) root.append(svg("image", { href: `data:image/${image.format};base64,${image.data}`, width, height, preserveAspectRatio: "none" }));
    root.append(...over);
    this.place.replaceChildren(root);
  }
}
