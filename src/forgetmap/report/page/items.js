// Where the items come from. The page only knows ItemSource; here is the one that has them all.

/**
 * @typedef {Record<string, string | number | string[] | null>} Item  what `Items` of the payload has
 * @typedef {{comparison: number, filters: Record<string, string>, sort: string}} Selection
 *   filters: task, category, metric, capability, transition, reason (equal), q (part of any text); "" is any.
 *   sort: a name of SORTS.
 * @typedef {Object} ItemSource
 * @property {(ask: Selection & {offset: number, limit: number}) =>
 *   Promise<{total: number, rows: Item[]}>} query
 * @property {(ask: Selection & {key: string}) =>
 *   Promise<{item: Item | null, place: number | null}>} find
 *   the item with this key, and its place in the selection; null where it is not in it or unknown.
 * @property {(comparison: number, capability: string) => Promise<Record<string, [value: string, count: number][]>>}
 *   facets  the values of task, category, transition and reason.
 */

const FACETS = ["transition", "metric", "task", "category", "reason"];
const SEARCHED = ["question", "response", "answer", "prompt", "gold", "item", "task", "error"];
const SORTS = {
  "": "as recorded",
  task: "task",
  category: "category",
  transition: "change",
  reason: "reason",
  longest: "longest response after",
  shortest: "shortest response after",
};

/** What names an item in an address. */
function itemKey(item) {
  const parts = [item.task, item.item, item.repeat ?? 0, ...(item.metric ? [item.metric] : [])];
  return parts.map((part) => encodeURIComponent(String(part).toWellFormed())).join("/");
}

/**
 * All items of a payload, in memory.
 * @returns {ItemSource}
 */
function itemsInMemory(payload) {
  const tables = new Map(payload.items.map((table) => [table.comparison, table.columns]));
  const columns = (comparison) => tables.get(comparison) ?? { task: [] };
  const row = (comparison, index) => recordAt(columns(comparison), index);
  const select = keepLastAnswer((ask) => selectItems(columns(ask.comparison), ask));
  return {
    async query({ offset, limit, ...ask }) {
      const indices = select(ask);
      const page = indices.slice(offset, offset + limit);
      return { total: indices.length, rows: page.map((index) => row(ask.comparison, index)) };
    },
    async find({ key, ...ask }) {
      const index = itemIndex(columns(ask.comparison), key);
      if (index < 0) return { item: null, place: null };
      const position = select(ask).indexOf(index);
      return { item: row(ask.comparison, index), place: position < 0 ? null : position };
    },
    async facets(comparison, capability) {
      const indices = select({ comparison, filters: { capability }, sort: "" });
      return Object.fromEntries(FACETS.map((name) =>
        [name, tally(columns(comparison)[name] && indices.map((index) => columns(comparison)[name][index]))]));
    },
  };
}

/** Keeps the last answer. */
function keepLastAnswer(compute) {
  let [lastName, answer] = [null, null];
  return (ask) => {
    const name = JSON.stringify(ask);
    if (name !== lastName) [lastName, answer] = [name, compute(ask)];
    return answer;
  };
}

function recordAt(columns, index) {
  return Object.fromEntries(Object.entries(columns).map(([name, all]) => [name, all[index]]));
}

function itemIndex(columns, key) {
  return columns.task.findIndex((task, index) => {
    const item = columns.item[index];
    const [repeat, metric] = [columns.repeat?.[index], columns.metric?.[index]];
    return itemKey({ task, item, repeat, metric }) === key;
  });
}

/** Indices of the items that pass, in the order asked for. */
function selectItems(columns, { filters, sort }) {
  let indices = [...columns.task.keys()];
  for (const name of [...FACETS, "capability"]) {
    const value = filters[name];
    if (value) indices = indices.filter((index) => (columns[name]?.[index] ?? "") === value);
  }
  if (filters.q) indices = indices.filter(mentions(columns, filters.q));
  return sortItems(indices, columns, sort);
}

function mentions(columns, text) {
  const pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");
  const names = SEARCHED.flatMap((name) => [name, `${name}_before`, `${name}_after`]);
  const texts = names.map((name) => columns[name]).filter(Boolean);
  const options = columns.options ?? [];
  return (index) =>
    texts.some((column) => column[index] !== null && pattern.test(column[index])) ||
    (options[index] ?? []).some((option) => pattern.test(option));
}

function sortItems(indices, columns, sort) {
  const length = (index) => columns.response_after?.[index]?.length ?? 0;
  if (sort === "longest") return indices.sort((one, other) => length(other) - length(one));
  if (sort === "shortest") return indices.sort((one, other) => length(one) - length(other));
  const column = columns[sort];
  if (!column || !(sort in SORTS)) return indices;
  const { compare } = new Intl.Collator("en", { numeric: true });
  return indices.sort((one, other) => compare(column[one] ?? "\uffff", column[other] ?? "\uffff"));
}

/** Each value and how often it occurs, in order. */
function tally(column = []) {
  const counts = new Map();
  for (const value of column) if (value !== null && value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
  const { compare } = new Intl.Collator("en", { numeric: true });
  return [...counts].sort(([one], [other]) => compare(one, other));
}
