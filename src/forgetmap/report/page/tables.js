// Estimates of the payload, and tables of them that can be sorted and taken away.

const MOST_TABLE_ROWS = 300;
const NO_ESTIMATE = { value: null, low: null, high: null };
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

/** Which estimators can be chosen: those with a value. */
function estimatorsIn(rows) {
  return [...new Set(rows.estimator.filter((_, index) => rows.value[index] !== null))];
}

/** The levels that have groups, and the groups of one. */
function levelsOf(payload, comparison) {
  return Object.keys(LEVELS).filter((level) => groupsAt(payload, comparison, level).length);
}

function groupsAt(payload, comparison, level) {
  const result = payload.comparisons[comparison];
  const verdicts = payload.verdicts[comparison];
  if (level === "model") {
    return payload.kind === "many" ? payload.comparisons.map(({ total, after }, index) =>
      ({ ...total, name: after.name, shown: payload.verdicts[index].total[0] })) : [];
  }
  const groups = {
    stage: (result.stages ?? []).map((stage) => ({ ...stage.against_first, name: stage.name })),
    category: result.categories, task: result.tasks, tag: result.tags,
  }[level];
  const shown = verdicts[level === "stage" ? "since_first" : level];
  return groups.map((group, index) => ({ ...group, shown: shown[index] }));
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
      forgotten: group.forgotten,
      gained: group.gained,
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
    const { loss, gain, verdict, margin, shown } = group;
    return { ...record, estimator, scale, lost_at_least: clipped(loss.low), lost_at_most: loss.high, q: loss.q,
      gained_at_least: clipped(gain.low), gained_at_most: gain.high, verdict, margin, shown };
  });
}

const GROUP_COLUMNS = [
  { head: "items", sort: "items", show: (row) => counted(row.items) },
  { head: "before", sort: "accuracy_before", show: (row) => percent(row.accuracy_before) },
  { head: "after", sort: "accuracy_after", show: (row) => percent(row.accuracy_after) },
  { head: "change", sort: "accuracy_change", show: (row) => signedPercent(row.accuracy_change) },
  { head: "forgotten", sort: "forgetting", show: (row) => estimateCell(row, "forgetting") },
  { head: "gained", sort: "backward_transfer", show: (row) => estimateCell(row, "backward_transfer") },
  { head: "lost", sort: "lost_at_least", show: (row) => limitsOf({ low: row.lost_at_least, high: row.lost_at_most }) },
  { head: "verdict", sort: "verdict", text: true, show: verdictCell },
];

function verdictCell({ shown: { words, tone } }) {
  return make("span", { class: `verdict tone-${tone}` }, words);
}

function estimateCell(row, direction) {
  if (row[direction] === null) return "–";
  const limits = limitsOf({ low: row[`${direction}_low`], high: row[`${direction}_high`] });
  return [
    make("b", { class: `ink-${DIRECTIONS[direction]}` }, share(row[direction])),
    make("span", { class: "limits" }, limits),
  ];
}

/** By a column; what is unknown stands last. */
function sortedBy(records, name, down) {
  const { compare } = new Intl.Collator("en", { numeric: true });
  return [...records].sort((one, other) => {
    const [a, b] = [one[name], other[name]];
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
  // The largest proven losses first, then the most forgotten.
  const records = sortedBy(groupRecords(payload, find, state, level), "forgetting", true);
  const name = { head: LEVELS[level], sort: level, text: true, show: (row) => visibleName(row[level]) };
  const caption = `Forgotten, gained and lost by ${LEVELS[level]}`;
  const choices = levels.map((name) => [name, LEVELS[name]]);
  root.replaceChildren(
    make("h2", { id: "tables-title" }, "Groups"),
    make("div", { class: "bar" },
      chooser("by", "Rows", choices, level, (by) => goTo({ by })),
      make("span", { class: "push" }, tableDownloads(`groups-by-${level}`, () => records.map(({ shown, ...record }) => record)))),
    make("p", { class: "faint" }, `Forgotten and gained: ${labelFor(ESTIMATORS, state.estimator)}; ${
      labelFor(SCALES, state.scale)}; interval below. Lost: what is proven, at least and at most, of all items.`),
    tableRegion(caption, [name, ...GROUP_COLUMNS], records, { name: "lost_at_least", down: true }),
  );
}

function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
