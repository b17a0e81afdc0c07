// A page of the site of a study: words and tables stand in the document; here figures are drawn,
// tables can be sorted, searched and saved, and items are listed one by one.

const ROWS_TO_SEARCH = 12;

async function startStudy() {
  const [{ items, rows }, figures] = await Promise.all([unpack("payload"), unpack("figures")]);
  for (const table of document.querySelectorAll("#sections table.sheet")) {
    sortInPlace(table);
    addTableTools(table);
  }
  document.body.append(helpDialog());
  startTerms();
  explainHeads(document);
  const drawings = [...document.querySelectorAll("[data-section]")].map((root, index) =>
    renderFigures(root, figures[index], rows[index] ?? {}, ""));
  const showItems = items && itemsView(items);
  let [last, drawn] = [null, ""];
  const follow = async () => {
    const state = studyState();
    const before = last;
    last = state;
    if (differs(before, state, ["theme"])) {
      sectionsSwitches(state);
      showTheme(state);
      keepTheme(state.theme);
    }
    await showItems?.(state, before);
    if (!before || before.section !== state.section) openSection(state);
    const ground = isDark(state) ? "dark" : "light";
    if (!state.item && ground !== drawn) {
      drawn = ground;
      await pageLoaded();
      for (const draw of drawings) await draw(state);
    }
    document.body.dataset.sections = "drawn";
  };
  addEventListener("hashchange", follow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
  keepSkipLink(document.getElementById("main"));
  document.body.dataset.ready = "true";
  await follow();
}

function studyState() {
  const state = currentState();
  const section = new URLSearchParams(location.hash.slice(1)).get("section") ?? "";
  const theme = ["light", "dark"].includes(state.theme) ? state.theme : "";
  return { ...state, comparison: 0, section, theme };
}

/** A link of the menu names a section; one to items has filters in it. */
function openSection(state) {
  const filtered = FILTERS.some((name) => state[name]);
  const target = document.getElementById(filtered && !state.section ? "flips" : state.section);
  if (!target || state.item) return;
  target.focus({ preventScroll: true });
  target.scrollIntoView();
}

/** The ground that was chosen goes along to other pages. */
function keepTheme(theme) {
  for (const link of document.querySelectorAll("a[data-page]")) {
    const state = new URLSearchParams(link.hash.slice(1));
    if (theme) state.set("theme", theme);
    else state.delete("theme");
    link.hash = String(state);
  }
}

/** The list of items of a pair, and the page of one of them. */
function itemsView({ names, columns, total, shortened }) {
  const payload = { comparisons: [{ before: { name: names[0] }, after: { name: names[1] } }],
    items: [{ comparison: 0, total, shortened, columns }] };
  const source = itemsInMemory(payload);
  const showList = renderBrowser(document.getElementById("flips"), payload, source);
  const [overview, itemView] = ["overview", "item"].map((id) => document.getElementById(id));
  return async (state, before) => {
    if (!state.item) showOverview(overview, itemView);
    if (differs(before, state, ["sort", "page", "texts", ...FILTERS])) await showList(state, before);
    await showView(overview, itemView, payload, source, state, before);
  };
}

/** Above a table: what saves it, and where it is long, what searches it. */
function addTableTools(table) {
  const rows = [...table.tBodies[0].rows];
  const name = table.dataset.name ?? "table";
  const bar = make("div", { class: "bar tools" },
    rows.length > ROWS_TO_SEARCH && rowSearch(rows, table.caption?.textContent ?? name),
    make("span", { class: "push" }, tableDownloads(name, () => tableRecords(table))));
  table.closest(".scroll").before(bar);
}

function rowSearch(rows, label) {
  const box = make("input", {
    type: "search", placeholder: "Find in this table", "aria-label": `Find in ${label}`,
    oninput: () => {
      const words = box.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(words);
    },
  });
  return box;
}

/** The rows that are shown, every number in full. */
function tableRecords(table) {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  return rows.map((row) => Object.fromEntries([...row.cells].map((cell, index) =>
    [heads[index], savedValue(cell)])));
}

function savedValue({ dataset, textContent }) {
  if (dataset.value === undefined) return dataset.text || textContent.trim();
  return dataset.value === "" ? null : Number(dataset.value);
}

startStudy();
