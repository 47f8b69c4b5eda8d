// Elements that scripts make: of the page, and of SVG drawings.

const SVG = "http://www.w3.org/2000/svg";

// → an element with this text; `data`: its data-… attributes
export function html(tag, className = "", textContent = "", data = {}) {
  const made = Object.assign(document.createElement(tag), { className, textContent });
  Object.assign(made.dataset, data);
  return made;
}

// The same, as the last child of another element.
export const add = (parent, ...element) => parent.appendChild(html(...element));

// → a button that calls `press`
export function button(className, textContent, data, press) {
  const made = html("button", className, textContent, data);
  made.addEventListener("click", press);
  return made;
}

// → an element of a drawing with these attributes; a `text` becomes its content
export function svg(name, { text = null, ...attributes } = {}, children = []) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
}

export function drawing(width, height, attributes = {}) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, ...attributes });
}
