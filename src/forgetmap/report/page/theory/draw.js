// Small line charts as SVG.

const SVG = "http://www.w3.org/2000/svg";
const SIZE = { height: 260, left: 46, right: 24, top: 10, bottom: 38 };

function element(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

function scale(from, to, low, high) {
  return (value) => low + ((value - from) / (to - from || 1)) * (high - low);
}

function niceStep(span) {
  const raw = span / 8;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
}

function ticks(from, to) {
  const step = niceStep(to - from);
  const first = Math.ceil(from / step - 1e-9);
  const count = Math.floor((to - first * step) / step + 1e-9) + 1;
  return Array.from({ length: count }, (_, k) => Number(((first + k) * step).toPrecision(6)));
}

// A chart: lines are {points, kind}; `logarithmic` shows x as powers of ten.
function chart({ lines, x, y, label, width, logarithmic = false, mark = null }) {
  const svg = element("svg", { viewBox: `0 0 ${width} ${SIZE.height}`, role: "img", "aria-label": label });
  const right = width - SIZE.right;
  const bottom = SIZE.height - SIZE.bottom;
  const across = scale(x.from, x.to, SIZE.left, right);
  const up = scale(y.from, y.to, bottom, SIZE.top);
  for (const value of ticks(y.from, y.to)) {
    svg.append(element("line", { class: "axis", x1: SIZE.left, x2: right, y1: up(value), y2: up(value) }));
    const text = { x: SIZE.left - 6, y: up(value) + 4, "text-anchor": "end" };
    svg.append(element("text", text, String(value)));
  }
  for (const value of ticks(x.from, x.to).filter((tick) => !logarithmic || Number.isInteger(tick))) {
    const tickLabel = logarithmic ? String(Number((10 ** value).toPrecision(3))) : String(value);
    svg.append(element("text", { x: across(value), y: bottom + 16, "text-anchor": "middle" }, tickLabel));
  }
  const title = { x: (SIZE.left + right) / 2, y: SIZE.height - 2, "text-anchor": "middle" };
  svg.append(element("text", title, x.title));
  for (const { points, kind } of lines) {
    const path = points.map(([a, b]) => `${across(a).toFixed(2)},${up(b).toFixed(2)}`);
    if (kind === "target") path.push(`${right},${bottom}`, `${SIZE.left},${bottom}`);
    svg.append(element(kind === "target" ? "polygon" : "polyline", { class: kind, points: path.join(" ") }));
  }
  if (mark !== null) {
    const at = across(mark);
    svg.append(element("line", { class: "mark", x1: at, x2: at, y1: SIZE.top, y2: bottom }));
  }
  return svg;
}

function figure(svg, caption) {
  const node = document.createElement("figure");
  const words = document.createElement("figcaption");
  words.textContent = caption;
  node.append(svg, words);
  return node;
}
