// Export of plots: values as CSV, pictures as PNG or SVG.

const [GROUND, INK, TITLE_PX, GAP_PX, SCALE] = ["#151a1f", "#f2f5f7", 34, 12, 2];

// One line per row; `gap` is 1 in a row that is not joined with the row before it.
export function csv(curves, rows) {
  const names = ["time_s", "gap", ...curves.map(({ column }) => column)];
  const lines = rows.map((row) => [row.time_s, row.gap ? 1 : 0, ...curves.map(({ value }) => value(row) ?? "")].join(","));
  return [names.join(","), ...lines].join("\n");
}

// The charts below each other, each with its title: → [{title, chart, width, height, top}], width, height
function stacked(titled) {
  let top = 0;
  const placed = titled.map(([title, chart]) => {
    const place = { title, chart, width: chart.getWidth(), height: chart.getHeight(), top: top + TITLE_PX };
    top += TITLE_PX + place.height + GAP_PX;
    return place;
  });
  return [placed, Math.max(...placed.map(({ width }) => width)), top];
}

export function svg(echarts, titled) {
  const [placed, width, height] = stacked(titled);
  const parts = placed.map(({ title, chart, width: wide, height: high, top }) => {
    const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width: wide, height: high });
    drawn.setOption({ ...chart.getOption(), animation: false });
    const picture = drawn.renderToSVGString().replace(/^<svg /, `<svg y="${top}" `);
    drawn.dispose();
    return `<text x="12" y="${top - 10}" fill="${INK}" font-family="Roboto, sans-serif" font-size="17" font-weight="700">${escaped(title)}</text>${picture}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="${GROUND}"/>${parts.join("")}</svg>`;
}

const escaped = (title) => title.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

export async function png(titled) {
  const [placed, width, height] = stacked(titled);
  const canvas = Object.assign(document.createElement("canvas"), { width: width * SCALE, height: height * SCALE });
  const pen = canvas.getContext("2d");
  pen.scale(SCALE, SCALE);
  pen.fillStyle = GROUND;
  pen.fillRect(0, 0, width, height);
  for (const { title, chart, top } of placed) {
    pen.fillStyle = INK;
    pen.font = "700 17px Roboto, sans-serif";
    pen.fillText(title, 12, top - 10);
    const picture = chart.getRenderedCanvas({ pixelRatio: SCALE, backgroundColor: GROUND });
    pen.drawImage(picture, 0, top, chart.getWidth(), chart.getHeight());
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
