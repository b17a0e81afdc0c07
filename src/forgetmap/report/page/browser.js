// The flip browser: filters, a page of items, the way to each of them.

const PAGE_SIZE = 50;
const MOST_DOWNLOADED = 20_000;
const ANSWERED = ["before", "after"];

/** @returns {Selection} */
function selectionOf(state) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, state[name]]));
  filters.capability = state.capability;
  return { comparison: state.comparison, filters, sort: state.sort };
}

/**
 * The section with the list.
 * @param {HTMLElement} root
 * @param {ItemSource} items
 * @returns {(state: State, last: State | null) => Promise<void>}
 */
function renderBrowser(root, payload, items) {
  const controls = make("div", { class: "bar filters", role: "search" });
  const total = make("p", { class: "found", role: "status" });
  const list = make("div", { class: "scroll" });
  const pager = make("nav", { class: "bar", "aria-label": "Pages of items" });
  root.replaceChildren(make("h2", { id: "flips-title" }, "Items, one by one"),
    controls, total, list, pager);
  let lastRequest = 0;
  let listed = 0;
  return async (state, last) => {
    const request = (lastRequest += 1);
    if (differs(last, state, ["comparison", "capability"])) {
      const facets = await items.facets(state.comparison, state.capability);
      listed = (facets.transition ?? []).reduce((sum, [, count]) => sum + count, 0);
      controls.replaceChildren(...filterControls(facets));
    }
    const offset = state.page * PAGE_SIZE;
    const answer = await items.query({ ...selectionOf(state), offset, limit: PAGE_SIZE });
    if (request !== lastRequest) return;
    syncControls(controls, state);
    total.replaceChildren(make("span", {}, totalWords(payload, state, answer.total, listed), " ",
      listDownload(items, state, answer.total)));
    const focused = document.activeElement?.dataset?.key;
    list.replaceChildren(answer.rows.length ? itemTable(answer.rows) : emptyList(payload, state));
    if (focused) linkOf(focused)?.focus();
    pager.replaceChildren(...pagerButtons(state, answer.total));
  };
}

function filterControls(facets) {
  const names = { transition: TRANSITIONS, reason: REASONS };
  const selects = FACETS.filter((name) => facets[name]?.length).map((name) => {
    const choices = facets[name].map(([value, count]) =>
      [value, `${visibleName(labelFor(names[name] ?? {}, value))} (${counted(count)})`]);
    const label = name === "transition" ? "Change" : sentence(name);
    return chooser(`filter-${name}`, label, [["", "any"], ...choices], "", (value) =>
      goTo({ [name]: value, page: 0 }));
  });
  const sorts = Object.entries(SORTS);
  return [
    labelled("Text", searchBox(), "wide"),
    ...selects,
    chooser("filter-sort", "Order", sorts, "", (sort) => goTo({ sort, page: 0 })),
    button("Clear", clearFilters),
  ];
}

function clearFilters() {
  goTo({ ...FIRST_FILTERS, page: 0 });
}

const FIRST_FILTERS = Object.fromEntries(FILTERS.map((name) => [name, ""]));

function searchBox() {
  let waiting = 0;
  const box = make("input", {
    type: "search", id: "filter-q", placeholder: "in all texts ( / )",
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => goTo({ q: box.value, page: 0 }), 200);
    },
  });
  return box;
}

/** The controls show the state, but nobody is disturbed while typing. */
function syncControls(controls, state) {
  for (const name of [...FILTERS, "sort"]) {
    const control = controls.querySelector(`#filter-${name}`);
    if (control && control !== document.activeElement) control.value = state[name];
  }
}

/** How many are shown, of how many where a filter leaves some out. */
function totalWords(payload, state, total, listed) {
  const items = payload.items.find((table) => table.comparison === state.comparison);
  const count = items?.columns?.task?.length;
  const all = Object.values(items?.total ?? {}).reduce((sum, size) => sum + size, 0);
  const part = count !== undefined && count < all
    ? ` This report contains ${counted(count)} of ${counted(all)} ${payload.capabilities ? "changes, some of every metric, the largest first" : "flips, some of every task"}.` : "";
  const cut = items?.shortened
    ? ` ${counted(items.shortened)} long texts are shortened in the middle to limit the file size.` : "";
  const whole = total < listed ? `${counted(total)} of ${countedItems(listed)}` : countedItems(total);
  return `${whole}.${part}${cut}${payload.redacted ? ` ${REDACTED}` : ""}`;
}

function countedItems(count) {
  return `${counted(count)} ${count === 1 ? "item" : "items"}`;
}

function listDownload(items, state, total) {
  const limit = Math.min(total, MOST_DOWNLOADED);
  const take = (name, type, write) => async () => {
    const { rows } = await items.query({ ...selectionOf(state), offset: 0, limit });
    download(name, type, write(rows));
  };
  const which = `of ${limit < total ? "the first" : "these"} ${counted(limit)}`;
  return total > 0 && [
    button(`JSONL ${which}`, take("items.jsonl", "application/jsonl", asJsonLines), { class: "quiet" }), " ",
    button(`CSV ${which}`, take("items.csv", "text/csv", asCsv), { class: "quiet" }),
  ];
}

/** Filter the list, and go there. */
function listItems(filters) {
  goTo({ ...filters, page: 0 });
  document.getElementById("flips").scrollIntoView();
}

function emptyList(payload, state) {
  const filtered = FILTERS.some((name) => state[name]);
  return filtered
    ? make("div", { class: "empty" }, make("p", {}, "No item matches these filters."), button("Clear the filters", clearFilters))
    : make("p", { class: "empty" }, isUnchanged(payload, state)
      ? "No item was forgotten, and none was gained." : "No items are listed for this comparison.");
}

/** Whether every item is as right or wrong as before. */
function isUnchanged(payload, { comparison }) {
  const total = payload.items.find((table) => table.comparison === comparison)?.total;
  return !payload.capabilities && total?.forgotten === 0 && total.gained === 0;
}

function itemTable(rows) {
  // A list without answers is shorter without their columns, most of all on a phone.
  const isAnswered = rows.some((item) => ANSWERED.some((side) => answerOf(item, side) !== null));
  const heads = ["Change", "Task", "Item", ...(isAnswered ? ["Answer before", "Answer after"] : []), "Reason"];
  return make("table", { class: "sheet items", "aria-labelledby": "flips-title" },
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, rows.map((item) => itemRow(item, isAnswered))));
}

function itemRow(item, isAnswered) {
  const key = itemKey(item);
  const link = make("a", { href: hashOf({ ...currentState(), item: key }), "data-key": key },
    item.question ? shortMarkup(snippet(item.question, 140)) : snippet(item.item, 140));
  const open = (event) => {
    if (event.target !== link && !getSelection().toString()) goTo({ item: key }, true);
  };
  return make("tr", { onclick: open },
    make("td", {}, badge(item.transition)),
    make("td", {}, snippet(visibleName(item.task), 60),
      item.metric && make("span", { class: "limits" }, snippet(item.metric, 60))),
    make("th", { scope: "row" }, link, " ",
      item.question && make("span", { class: "limits" }, snippet(String(item.item), 60))),
    isAnswered && ANSWERED.map((side) => make("td", { class: `answer-${side}` }, shortAnswer(item, side))),
    make("td", {}, item.reason && labelFor(REASONS, item.reason)));
}

function badge(transition) {
  return make("span", { class: `badge tint-${transition}` }, labelFor(TRANSITIONS, transition));
}

/** What a side answered, or its score where that moved without a flip; null where nothing is recorded. */
function answerOf(item, side) {
  if (["less", "more"].includes(item.transition)) return plainCell(item[`score_${side}`]);
  return item[`answer_${side}`] ?? item[`choice_${side}`] ?? null;
}

function shortAnswer(item, side) {
  const answer = answerOf(item, side);
  return answer === null ? "–" : snippet(String(answer), 60);
}

/** Nothing where one page has them all. */
function pagerButtons(state, total) {
  const pages = Math.max(Math.ceil(total / PAGE_SIZE), 1);
  if (pages === 1 && state.page === 0) return [];
  const go = (page) => () => goTo({ page });
  return [
    button("Previous", go(state.page - 1), { disabled: state.page <= 0 }),
    make("span", {}, `Page ${counted(state.page + 1)} of ${counted(pages)}`),
    button("Next", go(state.page + 1), { disabled: state.page >= pages - 1 }),
  ];
}

function linkOf(key) {
  return document.querySelector(`#flips a[data-key="${CSS.escape(key)}"]`);
}

/** Move the focus along the list. */
function stepInList(step) {
  const links = [...document.querySelectorAll("#flips a[data-key]")];
  const here = links.indexOf(document.activeElement);
  const next = here < 0 ? 0 : Math.min(Math.max(here + step, 0), links.length - 1);
  links[next]?.focus();
}
