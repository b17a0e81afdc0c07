// The page of one capability: its metrics, form against ability, distances, and what stands beside.

function openCapability(id) {
  if (id) goTo({ capability: id, ...FIRST_FILTERS, page: 0 }, true);
}

function closeCapability() {
  goTo({ capability: "", ...FIRST_FILTERS, page: 0 });
}

/**
 * The section; what changes is drawn anew, the figures stay.
 * @param {HTMLElement} root
 * @returns {(state: State) => void}
 */
function capabilityPage(root, payload, find) {
  const [head, figures, body] = [make("div"), make("div", { class: "pictures" }), make("div")];
  root.replaceChildren(head, figures, body);
  return (state) => {
    if (!state.capability) return;
    head.replaceChildren(...capabilityHead(payload, find, state));
    body.replaceChildren(...capabilityTables(payload, find, state).filter(Boolean));
  };
}

/** Where the reader lands: on the page that was opened, or on the link it was opened from. */
function landOn(root, before, state) {
  if (state.item) return;
  if (state.capability) {
    root.querySelector("h1")?.focus();
    scrollTo(0, 0);
  } else if (before?.capability) {
    const link = document.querySelector(`#tables a[data-capability="${CSS.escape(before.capability)}"]`);
    link?.focus();
    link?.scrollIntoView({ block: "center" });
  }
}

function capabilityHead(payload, find, state) {
  const { result, said: sentences } = payload.capabilities;
  const model = result.models[state.comparison];
  const all = result.capabilities.filter((cell) => cell.model === model);
  const index = all.findIndex((cell) => cell.id === state.capability);
  const row = find(state, "capability", state.capability);
  const group = find(state, "group", all[index].group);
  const step = (by) => [() => openCapability(all[index + by].id), { disabled: !all[index + by] }];
  return [
    make("nav", { class: "bar", "aria-label": "Capability" },
      button("← Back", closeCapability), button("Previous", ...step(-1)), button("Next", ...step(1)),
      make("span", { class: "push" }, linkCopier())),
    make("p", { class: "names" }, `${comparedNames(result, state.comparison)} · ${group.name}`),
    make("h1", { tabindex: "-1" }, row.name),
    make("p", { class: "lead" }, sentences[state.comparison][state.capability]),
    make("p", { class: "faint" }, DIRECTION_WORDS[row.direction]),
  ];
}

function capabilityTables(payload, find, state) {
  const { result } = payload.capabilities;
  const model = result.models[state.comparison];
  const cells = result.metrics.filter((cell) => cell.model === model && cell.capability === state.capability);
  const ids = new Set(cells.map((cell) => cell.id));
  const own = (caution) => caution.model === model && ids.has(caution.metric);
  return [
    metricTable(cells, state),
    formTable(cells),
    distanceTable(cells),
    deepDiveTable(result.deep_dive.filter((cell) => cell.model === model && cell.capability === state.capability)),
    make("div", { class: "cards" }, result.cautions.some(own) && cautionsCard(payload, own), targetCard(payload, find, state)),
  ];
}

/** A table with its title and its files; nothing where there are no rows. */
function titledTable(title, about, columns, records) {
  if (!records.length) return null;
  const file = () => records.map((record) =>
    Object.fromEntries(columns.flatMap(({ file: names }) => names ?? []).map((name) => [name, record[name]])));
  return make("div", { class: "part" },
    make("div", { class: "bar" }, make("h2", {}, title),
      make("span", { class: "push" }, tableDownloads(fileName(title.toLowerCase()), file))),
    make("p", { class: "faint" }, about),
    tableRegion(title, columns, records));
}

/** A mean in the unit of its metric. */
function meanOf(value, { scale }) {
  if (value === null) return "–";
  return scale === "binary" || scale === "share" ? percent(value) : value.toFixed(2);
}

const METRIC_NAME = {
  head: "metric", sort: "id", text: true, file: ["id", "name", "task"],
  show: (cell) => [cell.name, make("span", { class: "limits" }, cell.id)],
};

function withLimits(value, digits, limits, unit = "") {
  return [make("b", {}, signedNumber(value, digits, unit)),
    make("span", { class: "limits" }, driftLimits(limits, digits))];
}

function metricTable(cells, state) {
  const flips = (transition, count, cell) => (!count ? plainCell(count) : button(
    counted(Math.round(10 * count) / 10), () => listItems({ metric: cell.id, transition }),
    { class: "quiet", title: "List these items" }));
  const ability = ({ polarity }) => polarity === "up";
  const columns = [
    METRIC_NAME,
    { head: "items", sort: "n", file: ["n"], show: (cell) => (cell.n ? counted(cell.n) : "–") },
    { head: "before", sort: "before", file: ["before"], show: (cell) => meanOf(cell.before, cell) },
    { head: "after", sort: "after", file: ["after"], show: (cell) => meanOf(cell.after, cell) },
    { head: "change", sort: "points", file: ["points", "points_low", "points_high"],
      show: (cell) => (cell.value === null ? make("span", { class: "drift drift-none" }, "no data")
        : withLimits(cell.points, 1, { low: cell.points_low, high: cell.points_high })) },
    { head: "relative", sort: "relative", file: ["relative"], show: (cell) => signedNumber(cell.relative, 1, "%") },
    { head: "drift", sort: "value", file: ["value", "low", "high", "p", "q", "within_noise"],
      show: (cell) => (cell.value === null ? "–" : withLimits(cell.value, 2, cell)) },
    { head: "1 → 0", sort: "forgotten", file: ["forgotten"],
      show: (cell) => flips(ability(cell) ? "forgotten" : "less", cell.forgotten, cell) },
    { head: "0 → 1", sort: "gained", file: ["gained"],
      show: (cell) => flips(ability(cell) ? "gained" : "more", cell.gained, cell) },
    { head: "McNemar p", sort: "mcnemar_p", file: ["mcnemar_p"], show: (cell) => chanceWords(cell.mcnemar_p) },
    { head: "no answer found", sort: "failed_after", file: ["failed_before", "failed_after"],
      show: (cell) => (cell.failed_before === null ? "–" : `${percent(cell.failed_before)} → ${percent(cell.failed_after)}`) },
    { head: "notes", sort: "note", text: true, file: ["polarity", "scale", "needs", "weight", "scorer", "note"],
      show: metricNotes },
  ];
  return titledTable("Metrics", "Means and change are in units of the metric (percentage points for shares); drift is an effect: positive is better, or more where any change is drift.", columns, cells);
}

/** What explains a capability and counts in no average. */
function deepDiveTable(cells) {
  return titledTable("Deep dive", "Metrics that explain the capability; they do not count in any average.", [
    METRIC_NAME,
    { head: "before", sort: "before", file: ["before"], show: (cell) => meanOf(cell.before, cell) },
    { head: "after", sort: "after", file: ["after"], show: (cell) => meanOf(cell.after, cell) },
    { head: "drift", sort: "value", file: ["value", "low", "high", "p", "q"],
      show: (cell) => (cell.value === null ? make("span", { class: "drift drift-none" }, "no data") : withLimits(cell.value, 2, cell)) },
    { head: "notes", sort: "note", text: true, file: ["polarity", "scale", "needs", "scorer", "note"],
      show: metricNotes },
  ], cells);
}

function chanceWords(p) {
  if (p === null || p === undefined) return "–";
  return p < 0.001 ? "<0.001" : p.toFixed(3);
}

function metricNotes(cell) {
  const notes = [cell.note, { down: "less is better", both: "any change is drift" }[cell.polarity],
    cell.weight === 0 && "does not count", cell.within_noise && "within noise"];
  return notes.filter(Boolean).join("; ");
}

function formTable(cells) {
  const records = cells.filter((cell) => cell.form).map((cell) => ({
    ...cell, strict_before: cell.form.before, strict_after: cell.form.after,
    form_points: cell.form.points, form_low: cell.form.low, form_high: cell.form.high }));
  const change = (head, names) => ({ head, sort: names[1], file: names,
    show: (cell) => `${percent(cell[names[0]])} → ${percent(cell[names[1]])}` });
  return titledTable("Format and ability",
    "Strict counts only answers in the requested format. Format is the change of the strict minus the change of the lenient share, in percentage points: below 0, answers are still right but no longer in the requested format.",
    [METRIC_NAME, change("right in any format", ["before", "after"]),
      change("right as requested", ["strict_before", "strict_after"]),
      { head: "form", sort: "form_points", file: ["form_points", "form_low", "form_high"],
        show: (cell) => withLimits(cell.form_points, 1, { low: cell.form_low, high: cell.form_high }) }],
    records);
}

function distanceTable(cells) {
  const records = cells.filter((cell) => cell.distance).map((cell) => ({
    ...cell, ...Object.fromEntries(Object.entries(cell.distance).map(([name, value]) => [`distance_${name}`, value])) }));
  return titledTable("Distance between distributions",
    "Wasserstein: mean distance between the values before and after in the best matching, for counts in log(1 + count), for ratings in shares of their range. By chance: its value if before and after are swapped at random.",
    [METRIC_NAME,
      { head: "distance", sort: "distance_value", file: ["distance_value", "distance_low", "distance_high"],
        show: (cell) => [make("b", {}, cell.distance_value.toFixed(3)), make("span", { class: "limits" },
          `${cell.distance_low.toFixed(3)} to ${cell.distance_high.toFixed(3)}`)] },
      { head: "by chance", sort: "distance_noise", file: ["distance_noise"], show: (cell) => cell.distance_noise.toFixed(3) },
      { head: "p", sort: "distance_p", file: ["distance_p"], show: (cell) => chanceWords(cell.distance_p) }],
    records);
}

/** What the model was trained for, so that a loss stands beside what it bought. */
function targetCard({ capabilities: { result } }, find, state) {
  const model = result.models[state.comparison];
  const targets = result.capabilities.filter((cell) => cell.model === model && cell.group === "TARGET");
  if (!targets.length) return null;
  return make("section", { class: "card", "aria-label": "Target tasks" },
    make("h2", {}, "For comparison: the tasks the model was trained for"),
    make("dl", { class: "counts" }, targets.map((cell) => {
      const row = find(state, "capability", cell.id);
      return [make("dt", {}, cell.name), make("dd", {}, driftCell(row))];
    })));
}
