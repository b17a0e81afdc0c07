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
  const tables = new Map(payload.items.map((each) => [each.comparison, each.columns]));
  const columns = (comparison) => tables.get(comparison) ?? { task: [] };
  const row = (comparison, place) => recordAt(columns(comparison), place);
  const select = remembered((ask) => selectPlaces(columns(ask.comparison), ask));
  return {
    async query({ offset, limit, ...ask }) {
      const places = select(ask);
      const shown = places.slice(offset, offset + limit);
      return { total: places.length, rows: shown.map((place) => row(ask.comparison, place)) };
    },
    async find({ key, ...ask }) {
      const place = placeOf(columns(ask.comparison), key);
      if (place < 0) return { item: null, place: null };
      const found = select(ask).indexOf(place);
      return { item: row(ask.comparison, place), place: found < 0 ? null : found };
    },
    async facets(comparison, capability) {
      const places = select({ comparison, filters: { capability }, sort: "" });
      return Object.fromEntries(FACETS.map((name) =>
        [name, tally(columns(comparison)[name] && places.map((place) => columns(comparison)[name][place]))]));
    },
  };
}

/** Keeps the last answer. */
function remembered(compute) {
  let [asked, answer] = [null, null];
  return (ask) => {
    const name = JSON.stringify(ask);
    if (name !== asked) [asked, answer] = [name, compute(ask)];
    return answer;
  };
}

function recordAt(columns, place) {
  return Object.fromEntries(Object.entries(columns).map(([name, all]) => [name, all[place]]));
}

function placeOf(columns, key) {
  return columns.task.findIndex((task, place) => {
    const item = columns.item[place];
    const [repeat, metric] = [columns.repeat?.[place], columns.metric?.[place]];
    return itemKey({ task, item, repeat, metric }) === key;
  });
}

/** Places of the items that pass, in the order asked for. */
function selectPlaces(columns, { filters, sort }) {
  let places = [...columns.task.keys()];
  for (const name of [...FACETS, "capability"]) {
    const wanted = filters[name];
    if (wanted) places = places.filter((place) => (columns[name]?.[place] ?? "") === wanted);
  }
  if (filters.q) places = places.filter(mentions(columns, filters.q));
  return sortPlaces(places, columns, sort);
}

function mentions(columns, text) {
  const wanted = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");
  const names = SEARCHED.flatMap((name) => [name, `${name}_before`, `${name}_after`]);
  const texts = names.map((name) => columns[name]).filter(Boolean);
  const options = columns.options ?? [];
  return (place) =>
    texts.some((column) => column[place] !== null && wanted.test(column[place])) ||
    (options[place] ?? []).some((option) => wanted.test(option));
}

function sortPlaces(places, columns, sort) {
  const length = (place) => columns.response_after?.[place]?.length ?? 0;
  if (sort === "longest") return places.sort((one, other) => length(other) - length(one));
  if (sort === "shortest") return places.sort((one, other) => length(one) - length(other));
  const column = columns[sort];
  if (!column || !(sort in SORTS)) return places;
  const { compare } = new Intl.Collator("en", { numeric: true });
  return places.sort((one, other) => compare(column[one] ?? "\uffff", column[other] ?? "\uffff"));
}

/** Each value and how often it occurs, in order. */
function tally(column = []) {
  const counts = new Map();
  for (const value of column) if (value !== null && value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
  const { compare } = new Intl.Collator("en", { numeric: true });
  return [...counts].sort(([one], [other]) => compare(one, other));
}
