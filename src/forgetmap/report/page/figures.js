// The figures: drawn by Vega where there is one, shown as pictures where there is none.

const GROUND = { light: "#ffffff", dark: "#15181c" };
const INK = { light: "#24292f", dark: "#e6e6e6" };
const SWITCHES = ["estimator", "scale", "comparison", "capability", "dark"];
const VEGA_SCHEMA = "https://vega.github.io/schema/vega/v6.json";
const LONGEST_DRAWING = 20_000;

/**
 * @typedef {{name: string, title: string, caption: string, alt: string, spec: object | null,
 *   svg: string | null, table: Record<string, unknown[]>, page: string}} Figure
 */

/**
 * Cards for all figures; they are drawn one after the other, so that the page stays responsive.
 * @param {HTMLElement} root
 * @param {Figure[]} figures
 * @param {Record<string, unknown[]>} rows
 * @param {string} [title]  stands above them; none where it is empty
 * @returns {(state: State) => Promise<void>}  draws them, or draws them anew
 */
function renderFigures(root, figures, rows, title = "Figures") {
  if (!figures.length) return async () => {};
  const records = asRecords(rows);
  const drawings = figures.map((figure) => figureCard(figure, records));
  root.replaceChildren(
    ...(title ? [make("h2", {}, title)] : []),
    make("div", { class: "figures" }, drawings.map(({ card }) => card)),
  );
  let lastRequest = 0;
  return async (state) => {
    const request = (lastRequest += 1);
    for (const drawing of drawings) {
      await nextTurn();
      if (request !== lastRequest) return;
      await drawing.draw(state);
    }
    closeGap(root);
    document.body.dataset.figures = "drawn";
  };
}

/** A last figure that would stand alone beside nothing takes the whole width. */
function closeGap(root) {
  const cards = [...root.querySelectorAll(".figures > figure:not([hidden])")];
  for (const card of cards) card.classList.remove("whole");
  const last = cards.at(-1);
  const grid = last?.parentElement;
  if (!last || getComputedStyle(grid).gridTemplateColumns.split(" ").length < 2) return;
  const isAlone = !cards.some((card) => card !== last && card.offsetTop === last.offsetTop);
  if (isAlone && last.offsetWidth < 0.7 * grid.offsetWidth) last.classList.add("whole");
}

/** Lets the browser answer the reader first. */
function nextTurn() {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** Column -> values as one record per row. */
function asRecords(columns) {
  const names = Object.keys(columns);
  return (columns[names[0]] ?? []).map((_, index) =>
    Object.fromEntries(names.map((name) => [name, columns[name][index]])));
}

function figureCard(figure, records) {
  const frame = make("div", { class: "picture" });
  new ResizeObserver(() => letScroll(frame)).observe(frame);
  const numbers = make("div", { class: "scroll" });
  const table = asRecords(figure.table ?? {});
  const drawing = { view: null, svg: null, problems: [], rows: table };
  const drawNow = async (state) => {
    drawing.rows = table.filter((record) => isCurrent(figure, record, state));
    // Of a capability, not every figure has something to show.
    card.hidden = figure.page === "capability" && !drawing.rows.length;
    if (card.hidden) return;
    if (details.open) showNumbers(numbers, figure, drawing.rows);
    if (figure.svg) return showPicture(drawing, figure, frame, state);
    if (!globalThis.vegaEmbed) throw new Error("Vega is not in this report: pip install vl-convert-python");
    await withTimeout(drawVega(drawing, figure, frame, records, state), LONGEST_DRAWING);
  };
  // One after the other: two drawings at once would fight for the frame.
  let busy = Promise.resolve();
  const draw = (state) => (busy = busy.then(() => drawNow(state)).then(
    () => (card.dataset.drawn = "yes"), (problem) => fail(problem, state)));
  const details = make("details", { ontoggle: () => showNumbers(numbers, figure, drawing.rows) },
    make("summary", {}, "Numbers"), numbers);
  const card = make("figure", { class: "card", id: `figure-${fileName(figure.name)}` },
    make("h3", {}, figure.title), frame,
    make("figcaption", {}, figure.caption),
    make("div", { class: "bar" }, pictureDownloads(figure, drawing),
      tableDownloads(figure.name, () => drawing.rows)),
    table.length > 0 && details);
  const fail = (problem, state) => {
    console.error(problem);
    card.dataset.drawn = "no";
    drawing.view?.finalize();
    drawing.view = null;
    frame.removeAttribute("role");
    frame.replaceChildren(make("p", { class: "faint", role: "alert" },
      `This figure cannot be drawn here: ${problem.message ?? problem}. `,
      button("Try again", () => draw(state), { class: "quiet" })));
  };
  return { card, draw };
}

/** What is not done after a while has failed. */
function withTimeout(promise, most) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("it took too long")), most);
    promise.then(resolve, reject).finally(() => clearTimeout(late));
  });
}

/** Whether a row of numbers belongs to what the reader chose. */
function isCurrent(figure, record, state) {
  const followed = figure.page === "capability" ? ["scale", "comparison", "capability"] : ["estimator", "scale"];
  return followed.every((name) => !(name in record) || record[name] === state[name]);
}

function isDark(state) {
  return state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

async function drawVega(drawing, figure, frame, records, state) {
  const values = { ...state, dark: isDark(state) };
  const ground = GROUND[values.dark ? "dark" : "light"];
  if (!drawing.view) {
    const spec = withRows(withSwitches(figure.spec, values), records);
    drawing.problems = [];
    const options = { ...VEGA_OPTIONS, viewClass: await collectingView(drawing.problems) };
    drawing.view = (await globalThis.vegaEmbed(frame, { ...spec, background: ground }, options)).view;
    drawing.view.addEventListener("click", (_event, item) => openCapability(item?.datum?.capability));
    frame.setAttribute("role", "img");
    frame.setAttribute("aria-label", visible(figure.alt));
    // The words above stand for all of it; Vega names parts that nobody can read.
    frame.querySelector("svg")?.setAttribute("aria-hidden", "true");
  } else {
    for (const { name } of figure.spec.signals ?? []) {
      if (SWITCHES.includes(name)) drawing.view.signal(name, values[name]);
    }
    await drawing.view.background(ground).runAsync();
  }
  if (drawing.problems.length) throw drawing.problems[0];
  letScroll(frame);
}

/** What is wider than its card scrolls, with the keyboard too. */
function letScroll(frame) {
  if (frame.scrollWidth > frame.clientWidth) frame.setAttribute("tabindex", "0");
  else frame.removeAttribute("tabindex");
}

async function refuseToLoad() {
  throw new Error("a report loads no external data");
}

/** Nothing is evaluated, nothing is loaded, no link is followed, no style is put into the page. */
const VEGA_OPTIONS = {
  ast: true,
  actions: false,
  renderer: "svg",
  logLevel: 0,
  defaultStyle: false,
  tooltip: showTooltip,
  loader: { load: refuseToLoad, sanitize: refuseToLoad, http: refuseToLoad, file: refuseToLoad },
};

/** A view that keeps what goes wrong; by itself Vega writes it to the console and goes on. */
async function collectingView(problems) {
  // The bundle has no name for the class, but every view knows it.
  const { view } = await globalThis.vegaEmbed(make("div"), { $schema: VEGA_SCHEMA }, VEGA_OPTIONS);
  view.finalize();
  const quiet = () => logger;
  const logger = { level: quiet, warn: quiet, info: quiet, debug: quiet,
    error: (problem) => problems.push(problem) };
  return class extends view.constructor {
    constructor(runtime, options) {
      super(runtime, options);
      this.logger(logger);
    }
  };
}

function withSwitches(spec, values) {
  const set = (signal) =>
    SWITCHES.includes(signal.name) ? { ...signal, value: values[signal.name] } : signal;
  return { ...spec, signals: (spec.signals ?? []).map(set) };
}

function withRows(spec, rows) {
  const set = (data) => (data.name === "rows" ? { ...data, values: rows } : data);
  return { ...spec, data: (spec.data ?? []).map(set) };
}

function showTooltip(_handler, event, _item, value) {
  const box = document.getElementById("tooltip");
  box.hidden = value === null || value === undefined || value === "";
  if (box.hidden) return;
  const parts = typeof value === "object" ? Object.entries(value) : [["", value]];
  box.replaceChildren(...parts.map(([name, part]) =>
    make("div", {}, name && make("span", { class: "faint" }, `${name} `), String(part))));
  box.style.left = `${Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 12, innerHeight - box.offsetHeight - 8)}px`;
}

/** A picture made beforehand; its words take the colour of the theme. */
async function showPicture(drawing, figure, frame, state) {
  const picture = new DOMParser().parseFromString(figure.svg, "image/svg+xml").documentElement;
  picture.setAttribute("color", INK[isDark(state) ? "dark" : "light"]);
  drawing.svg = new XMLSerializer().serializeToString(picture);
  const image = make("img", { src: svgAddress(drawing.svg), alt: figure.alt });
  frame.replaceChildren(image);
  // Only a picture that is there has a width.
  await image.decode();
  letScroll(frame);
}

function pictureDownloads(figure, drawing) {
  const svg = async () => {
    const picture = drawing.view ? await drawing.view.toSVG() : drawing.svg;
    if (picture) download(`${figure.name}.svg`, "image/svg+xml", picture);
  };
  const png = async () => {
    const address = drawing.view
      ? await drawing.view.toImageURL("png", 2)
      : drawing.svg && (await svgAsPng(drawing.svg));
    if (address) downloadFrom(`${figure.name}.png`, address);
  };
  return [
    button("SVG", svg, { "aria-label": `Download ${figure.name} as SVG` }),
    button("PNG", png, { "aria-label": `Download ${figure.name} as PNG` }),
  ];
}

function showNumbers(root, figure, records) {
  const columns = Object.keys(records[0] ?? {}).map((name) => ({
    head: name.replaceAll("_", " "),
    sort: name,
    text: typeof records[0][name] !== "number",
    show: (record) => plainCell(record[name]),
  }));
  if (!columns.length) return root.replaceChildren(make("p", {}, "No numbers for this selection."));
  root.replaceChildren(sortableTable(figure.title, columns, records));
}

function plainCell(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" && !Number.isInteger(value) ? value.toFixed(4) : String(value);
}
