// Estimates of the payload, and tables of them that can be sorted and taken away.

const MOST_TABLE_ROWS = 300;
const NO_ESTIMATE = { value: null, low: null, high: null };
const RANKED = " Sorted by the probability that the loss exceeds the margin.";
const UNSORTED = { name: "", down: false };

/** Finds the estimate of a group under the reader's choice. */
function estimateFinder(rows) {
  const indices = new Map();
  rows.value.forEach((_, index) => {
    const names = ["comparison", "level", "group", "estimator", "direction", "scale"];
    indices.set(estimateName(...names.map((name) => rows[name][index])), index);
  });
  return (state, level, group, direction) => {
    const { comparison, estimator, scale } = state;
    const index = indices.get(
      estimateName(comparison, level, group, estimator, direction, scale),
    );
    if (index === undefined) return NO_ESTIMATE;
    return { value: rows.value[index], low: rows.low[index], high: rows.high[index] };
  };
}

/** There is one total; whatever it is called, it is found. */
function estimateName(comparison, level, group, ...parts) {
  const only = level === "total" || level === "macro";
  return JSON.stringify([comparison, level, only ? "" : group, ...parts]);
}

/** Which estimators have anything to show. */
function estimatorsIn(rows) {
  const estimated = new Set();
  rows.estimator.forEach((name, index) => {
    if (rows.value[index] !== null || rows.low[index] !== null) estimated.add(name);
  });
  return [...new Set(rows.estimator)].filter((name) => name !== "noise_floor" && estimated.has(name));
}

/** The levels that have groups, and the groups of one. */
function levelsOf(payload, comparison) {
  return Object.keys(LEVELS).filter((level) => groupsAt(payload, comparison, level).length);
}

function groupsAt(payload, comparison, level) {
  const result = payload.comparisons[comparison];
  const groups = {
    model: () =>
      payload.kind === "many"
        ? payload.comparisons.map(({ total, after }) => ({ ...total, name: after.name }))
        : [],
    stage: () =>
      (result.stages ?? []).map((stage) => ({ ...stage.against_first, name: stage.name })),
    category: () => result.categories,
    task: () => result.tasks,
    tag: () => result.tags,
  };
  return groups[level]?.() ?? [];
}

/** One record per group: what the table shows and the downloads hold. */
function groupRecords(payload, find, state, level) {
  return groupsAt(payload, state.comparison, level).map((group, index) => {
    const record = {
      [level]: group.name,
      items: group.items,
      answers: group.n,
      accuracy_before: group.acc_before,
      accuracy_after: group.acc_after,
      accuracy_change: group.acc_before === null ? null : group.acc_after - group.acc_before,
      net_drop: group.conventional_forgetting,
    };
    const where = level === "model" ? [{ ...state, comparison: index }, "total"]
      : [state, level === "stage" ? "since_first" : level];
    for (const direction of Object.keys(DIRECTIONS)) {
      const { value, low, high } = find(...where, group.name, direction);
      Object.assign(record, {
        [direction]: value,
        [`${direction}_low`]: low,
        [`${direction}_high`]: high,
      });
    }
    const { estimator, scale } = state;
    return { ...record, estimator, scale, verdict: group.verdict, margin: group.margin,
      loss_exceeds_margin: group.loss_exceeds_margin, q_lost: group.q_lost };
  });
}

const GROUP_COLUMNS = [
  { head: "items", sort: "items", show: (row) => counted(row.items) },
  { head: "before", sort: "accuracy_before", show: (row) => percent(row.accuracy_before) },
  { head: "after", sort: "accuracy_after", show: (row) => percent(row.accuracy_after) },
  { head: "accuracy change", sort: "accuracy_change", show: (row) => signedPercent(row.accuracy_change) },
  { head: "forgetting", sort: "forgetting", show: (row) => estimateCell(row, "forgetting") },
  {
    head: "gained",
    sort: "backward_transfer",
    show: (row) => estimateCell(row, "backward_transfer"),
  },
  {
    head: "P(loss > margin)", sort: "loss_exceeds_margin", optional: true,
    show: (row) => percent(row.loss_exceeds_margin),
  },
  { head: "verdict", sort: "verdict", text: true, show: verdictCell },
];

function verdictCell({ verdict, margin }) {
  const { tone } = VERDICTS[verdict] ?? { tone: "open" };
  return make("span", { class: `verdict tone-${tone}` }, verdictWords(verdict, margin));
}

function estimateCell(row, direction) {
  const estimate = {
    value: row[direction],
    low: row[`${direction}_low`],
    high: row[`${direction}_high`],
  };
  if (estimate.value === null) return estimateWords(estimate).main;
  const look = DIRECTIONS[direction].look;
  return [
    make("b", { class: `ink-${look}` }, share(estimate.value)),
    make("span", { class: "limits" }, limitsOf(estimate)),
  ];
}

/** By a column; what is unknown stands last, a range by its upper limit. */
function sortedBy(records, name, down) {
  const value = (record) => record[name] ?? record[`${name}_high`];
  const { compare } = new Intl.Collator("en", { numeric: true });
  return [...records].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
    if (b === null || b === undefined) return -1;
    return (down ? -1 : 1) * (typeof a === "number" ? a - b : compare(a, b));
  });
}

/** A table whose heads sort it. */
function sortableTable(caption, columns, records, first = UNSORTED) {
  let sort = first;
  let most = MOST_TABLE_ROWS;
  const table = make("table", { class: "sheet" });
  const draw = () => {
    const sorted = sortedBy(records, sort.name, sort.down);
    const focused = document.activeElement?.dataset?.sort;
    table.replaceChildren(
      make("caption", { class: "aside" }, caption),
      make("thead", {}, make("tr", {}, columns.map((column) => headCell(column, sort, choose)))),
      make("tbody", {}, sorted.slice(0, most).map((record) => bodyRow(columns, record))),
    );
    if (sorted.length > most) table.append(moreRows(columns, sorted.length - most, showAll));
    if (focused) table.querySelector(`[data-sort="${CSS.escape(focused)}"]`)?.focus();
  };
  const choose = (column) => {
    const again = sort.name === column.sort;
    sort = { name: column.sort, down: again ? !sort.down : !column.text };
    draw();
  };
  const showAll = () => {
    most = Infinity;
    draw();
  };
  draw();
  // For whoever changes the records.
  table.redraw = draw;
  return table;
}

/** Such a table in a part of the page that scrolls by itself. */
function tableRegion(caption, columns, records, first = UNSORTED) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    sortableTable(caption, columns, records, first));
}

function headCell(column, sort, choose) {
  const current = sort.name === column.sort;
  const direction = sort.down ? "descending" : "ascending";
  return make(
    "th",
    { scope: "col", class: column.text ? "words" : "number", "aria-sort": current ? direction : "none" },
    button([column.head, make("span", { class: "arrow", "aria-hidden": "true" })], () =>
      choose(column), { "data-sort": column.sort, ...termHelp(column.head) },
    ),
  );
}

function bodyRow(columns, record) {
  return make("tr", {}, columns.map((column, index) => {
    const head = index === 0;
    const attributes = head ? { scope: "row" } : { class: column.text ? "words" : "number" };
    return make(head ? "th" : "td", attributes, column.show(record));
  }));
}

function moreRows(columns, count, showAll) {
  const label = `Show ${counted(count)} more`;
  return make("tfoot", {}, make("tr", {}, make("td", { colspan: columns.length },
    button(label, showAll))));
}

/** The section with the tables of categories, tasks, tags. */
function renderTables(root, payload, find, state) {
  const levels = levelsOf(payload, state.comparison);
  const level = levels.includes(state.by) ? state.by : levels[0];
  if (!level) return root.replaceChildren();
  const records = groupRecords(payload, find, state, level);
  const name = { head: LEVELS[level], sort: level, text: true, show: (row) => visibleName(row[level]) };
  const ranked = records.some((row) => typeof row.loss_exceeds_margin === "number");
  const columns = GROUP_COLUMNS.filter((column) => ranked || !column.optional);
  const caption = `Forgotten and gained by ${LEVELS[level]}`;
  const choices = levels.map((name) => [name, LEVELS[name]]);
  root.replaceChildren(
    make("h2", { id: "tables-title" }, "Groups"),
    make("div", { class: "bar" },
      chooser("by", "Rows", choices, level, (by) => goTo({ by })),
      make("span", { class: "push" }, tableDownloads(`groups-by-${level}`, () => records))),
    make("p", { class: "faint" }, `${sentence(estimatorLabel(state.estimator))}; ${
      labelFor(SCALES, state.scale)}; interval below, shown from 0% to 100%.${ranked ? RANKED : ""}`),
    tableRegion(caption, [name, ...columns], records, { name: ranked ? "loss_exceeds_margin" : "forgetting", down: true }),
  );
}

function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
