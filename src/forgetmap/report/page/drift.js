// A drift: the first screen, and all capabilities of all models as a table.

const MOST_MODELS_LISTED = 8;
const MOST_IDS = 12;
const STATES = {
  sure: "significant", open: "may be chance", noise: "within the noise of the model before",
  off: "no value on this scale", none: "no data",
};
const DIRECTION_WORDS = {
  better: "Positive is better.",
  more: "Any change is drift: positive is more.",
  mixed: "Positive is better in some metrics, more in others.",
};

/** Finds the row of a cell under the reader's choice. */
function driftFinder(rows) {
  const indices = new Map(rows.id.map((id, index) =>
    [driftName(rows.comparison[index], rows.level[index], id, rows.scale[index]), index]));
  return ({ comparison, scale }, level, id) =>
    recordAt(rows, indices.get(driftName(comparison, level, id, scale)));
}

function driftName(...parts) {
  return JSON.stringify(parts);
}

/** A number as a change; a dash where there is none. */
function signedNumber(value, digits = 2, unit = "") {
  if (value === null || value === undefined) return "–";
  const amount = Math.abs(value).toFixed(digits);
  const sign = Number(amount) === 0 ? "" : value < 0 ? "−" : "+";
  return `${sign}${amount}${unit}`;
}

function driftLimits({ low, high }, digits = 2) {
  return low === null || high === null || low === undefined ? ""
    : `${signedNumber(low, digits)} to ${signedNumber(high, digits)}`;
}

/** How a cell looks: the direction where there is one, else why there is none. */
function driftLook({ state, value }) {
  if (state === "none" || state === "off" || state === "noise") return state;
  return value < 0 ? "down" : "up";
}

function isCapability({ capabilities }, id) {
  return Boolean(capabilities?.result.capabilities.some((cell) => cell.id === id));
}

/** @param {HTMLElement} root */
function renderDrift(root, payload, find, state) {
  const { result, headlines, leads, compared } = payload.capabilities;
  const model = result.models[state.comparison];
  const groups = result.groups.filter((cell) => cell.model === model);
  const rows = groups.map((cell) => find(state, "group", cell.id));
  root.replaceChildren(...[
    make("p", { class: "names" }, `${comparedNames(result, state.comparison)} · ${result.taxonomy}`),
    make("h1", { id: "headline" }, headlines[state.comparison]),
    make("p", { class: "lead" }, leads[state.comparison]),
    make("div", { class: "cards narrow" }, groups.map((cell, index) => groupCard(rows[index], cell, state))),
    make("div", { class: "cards" }, ...measuredCards(payload, rows, model)),
    compared && make("p", { class: "lead", id: "compared" }, compared),
    rankingTable(result),
    modelList(payload, state),
    undoneTable(result),
  ].filter(Boolean));
}

/** What is compared: the step of a chain says so itself. */
function comparedNames({ models, bases, before }, index) {
  const model = models[index];
  return model.startsWith(`${bases[index]} → `) ? model : `${bases[index] ?? before} → ${model}`;
}

/** Of several models how far each drifted in all, and how likely it drifted most. */
function rankingTable({ ranking }) {
  if (!ranking) return null;
  return titledTable("Total size of drift",
    "Root mean square of the drift of capabilities, in either direction, minus noise; and the probability that no other model drifted as far.", [
      { head: "model", sort: "model", text: true, file: ["model"], show: ({ model }) => model },
      { head: "size", sort: "size", file: ["size"], show: ({ size }) => make("b", {}, size.toFixed(2)) },
      { head: "95% interval", sort: "low", file: ["low", "high"], show: ({ low, high }) => `${low.toFixed(2)} to ${high.toFixed(2)}` },
      { head: "probability of being largest", sort: "largest", file: ["largest"], show: ({ largest }) => largest.toFixed(2) },
    ], ranking.models);
}

/** Of a chain what its later steps did to the drift so far. */
function undoneTable({ recoveries }) {
  const share = (value) => signedNumber(100 * value, 0, "%");
  const records = recoveries.map((entry) => ({ ...entry, step: `${entry.between} → ${entry.model}` }));
  return titledTable("What later steps undid",
    "Share of the drift from the first model that a step undid, over capabilities that had drifted: 100% is a complete return, below 0 the step drifted further.", [
      { head: "step", sort: "step", text: true, file: ["step"], show: ({ step }) => step },
      { head: "capability", sort: "id", text: true, file: ["id", "name"], show: ({ id, name }) => `${name} [${id}]` },
      { head: "drift before", sort: "drift", file: ["drift"], show: ({ drift }) => signedNumber(drift) },
      { head: "drift after", sort: "left", file: ["left"], show: ({ left }) => signedNumber(left) },
      { head: "undone", sort: "undone", file: ["undone"], show: ({ undone }) => make("b", {}, share(undone)) },
      { head: "95% interval", sort: "low", file: ["low", "high"], show: ({ low, high }) => `${share(low)} to ${share(high)}` },
    ], records);
}

/** Of several models what came out of each, and the way there. */
function modelList({ capabilities: { headlines } }, state) {
  if (headlines.length < 2) return null;
  const list = make("ul", { class: "each", "aria-label": "All models" }, headlines.map((words, index) =>
    make("li", {}, comparisonLink(state, index, words))));
  return headlines.length <= MOST_MODELS_LISTED ? list
    : make("details", {}, make("summary", {}, `All ${counted(headlines.length)} models in a sentence each`), list);
}

function groupCard(row, cell, state) {
  const edge = { down: "edge-forgotten", up: "edge-gained" }[driftLook(row)] ?? "";
  const limits = driftLimits(row, state.scale === "effect" ? 2 : 1);
  return make("section", { class: `card measure ${edge}`, "aria-label": row.name },
    make("h2", {}, row.name),
    make("p", { class: "figure", "data-group": cell.id }, row.shown.replace(/[*~]$/, "")),
    make("p", { class: "faint" }, [limits && `95% interval ${limits}`, surenessOf(row)].filter(Boolean).join("; "), "."),
    make("p", { class: "faint" }, `${row.coverage} metrics${cell.n ? `, ${counted(cell.n)} items` : ""}. ${
      cell.size === null || state.scale !== "effect" ? "" : `Moved by ${cell.size.toFixed(2)} either way. `}${
      DIRECTION_WORDS[row.direction]}`));
}

/** How sure a cell is; an effect without limits says nothing about chance. */
function surenessOf({ state, scale, value, low }) {
  const unknown = state === "open" && value !== null && low === null && (scale === "effect" || scale === "published");
  return unknown ? "no interval, so the uncertainty is unknown" : STATES[state];
}

/** Cautions stand first; where there are none, a line says so. */
function measuredCards(payload, rows, model) {
  const own = (caution) => caution.model === model;
  const isCalm = !payload.capabilities.result.cautions.some(own);
  return [...(isCalm ? [] : [cautionsCard(payload, own)]), withheldCard(payload, rows, model, isCalm)];
}

function cautionsCard({ capabilities }, concerns) {
  const list = noticeLines(capabilities.result.cautions.filter(concerns));
  const few = list.slice(0, 5);
  const more = list.slice(5);
  return make("section", { class: "card warned", "aria-label": "Before you act" },
    make("h2", {}, `Before you act (${list.length})`),
    make("ul", { class: "warnings" }, few),
    more.length > 0 && make("details", {}, make("summary", {}, `${counted(more.length)} more`),
      make("ul", { class: "warnings" }, more)));
}

/** What has no value, and why. */
function withheldCard({ capabilities }, rows, model, isCalm) {
  const here = capabilities.withheld.filter(({ models }) => models.includes(model));
  return make("section", { class: "card", "aria-label": "Coverage" },
    make("h2", {}, "What was measured"),
    make("p", {}, `Metrics with a value: ${rows.map((row) => `${row.id} ${row.coverage}`).join(", ")}.`,
      here.length ? " The others are left empty:" : ""),
    here.length > 0 && make("ul", { class: "warnings" }, here.map(withheldLine)),
    isCalm && make("p", { class: "faint" }, "No cautions."));
}

function withheldLine({ note, ids }) {
  const listed = make("span", { class: "faint" }, ids.join(", "));
  if (ids.length <= MOST_IDS) return make("li", {}, `${sentence(note)}: `, listed);
  return make("li", {}, make("details", {},
    make("summary", {}, `${sentence(note)}: ${counted(ids.length)} metrics`), listed));
}

/** The cells of each level; a deep dive is there only where it was asked for. */
function driftCells({ groups, capabilities, metrics, deep_dive: deepDive }) {
  return { capability: capabilities, metric: metrics, group: groups, ...(deepDive.length ? { deep_dive: deepDive } : {}) };
}

/** One record per line, one column per model. */
function driftRecords({ capabilities: { result } }, find, state, level) {
  return driftCells(result)[level].filter((cell) => cell.model === result.models[0]).map((cell) => {
    const rows = result.models.map((_, comparison) => find({ ...state, comparison }, level, cell.id));
    return { id: cell.id, name: rows[0].name, capability: rows[0].capability, scale: state.scale, rows };
  });
}

/** The same, flat, for files: value, limits and state of every model. */
function driftFile(records, models) {
  return records.flatMap(({ id, name, scale, rows }) => rows.map((row, index) => ({
    id, name, model: models[index], scale, value: row.value, low: row.low, high: row.high,
    state: row.state, items: row.n, metrics: row.coverage, note: row.note })));
}

function renderDriftTables(root, payload, find, state) {
  const { result } = payload.capabilities;
  const { models } = result;
  const levels = Object.keys(driftCells(result));
  const level = levels.includes(state.by) ? state.by : "capability";
  const records = driftRecords(payload, find, state, level)
    .map((record) => ({ ...record, ...Object.fromEntries(record.rows.map((row, index) => [`model ${index}`, row.value])) }));
  const columns = models.map((name, index) => ({
    head: name, sort: `model ${index}`, show: ({ rows }) => driftCell(rows[index]) }));
  const first = { head: DRIFT_LEVELS[level], sort: "name", text: true, show: (record) => driftLink(record, state) };
  const caption = `Drift by ${DRIFT_LEVELS[level]}`;
  root.replaceChildren(
    make("h2", {}, "All numbers"),
    make("div", { class: "bar" },
      chooser("by", "Rows", levels.map((name) => [name, DRIFT_LEVELS[name]]), level, (by) => goTo({ by })),
      make("span", { class: "push" }, tableDownloads(`drift-by-${level}`, () => driftFile(records, models)))),
    make("p", { class: "faint" }, `${sentence(wordsOfScale(payload, state))}; 95% interval below; * significant, ~ within the noise of the model before.`),
    tableRegion(caption, [first, ...columns], records));
}

function wordsOfScale(payload, state) {
  return scalesOf(payload).find(([name]) => name === state.scale)[1];
}

function driftLink(record, state) {
  if (!record.capability) return make("b", {}, record.name);
  return make("a", { href: hashOf({ ...state, ...FIRST_FILTERS, page: 0, capability: record.capability }),
    "data-capability": record.capability }, record.name);
}

function driftCell(row) {
  return [make("span", { class: `drift drift-${driftLook(row)}`, title: row.note ?? surenessOf(row) }, row.shown),
    make("span", { class: "limits" }, driftLimits(row, row.scale === "effect" ? 2 : 1))];
}
