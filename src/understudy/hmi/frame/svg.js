// Elements of an SVG drawing.

const SVG = "http://www.w3.org/2000/svg";

// → an element with these attributes; a `text` becomes its content
export function element(name, { text = null, ...attributes } = {}, children = []) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
}

export function drawing(width, height, attributes = {}) {
  return element("svg", { viewBox: `0 0 ${width} ${height}`, ...attributes });
}
