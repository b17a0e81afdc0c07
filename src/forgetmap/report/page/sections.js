// A page of sections: words and tables stand in the document; here figures are drawn, and tables
// can be sorted.

async function startSections() {
  const [{ name, result, rows }, figures] = await Promise.all([unpack("payload"), unpack("figures")]);
  const take = () => download(name, "application/json", JSON.stringify(result, null, 1));
  document.getElementById("take").append(button("Everything as JSON", take, { class: "quiet" }));
  document.body.append(helpDialog());
  startTerms();
  for (const table of document.querySelectorAll("#sections table.sheet")) sortInPlace(table);
  explainHeads(document);
  for (const link of document.querySelectorAll("#sections .contents a")) keepState(link);
  const drawings = [...document.querySelectorAll("[data-section]")]
    .map((root, index) => renderFigures(root, figures[index], rows[index] ?? {}, ""));
  const follow = async () => {
    const state = sectionsState();
    sectionsSwitches(state);
    showTheme(state);
    await pageLoaded();
    for (const draw of drawings) await draw(state);
    document.body.dataset.sections = "drawn";
  };
  addEventListener("hashchange", follow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
  keepSkipLink(document.getElementById("main"));
  document.body.dataset.ready = "true";
  await follow();
}

function sectionsState() {
  const { theme } = currentState();
  return { ...FIRST_STATE, theme: ["light", "dark"].includes(theme) ? theme : "" };
}

function sectionsSwitches(state) {
  const focused = document.activeElement?.id;
  document.getElementById("switches").replaceChildren(
    button(isDark(state) ? "Light" : "Dark",
      () => goTo({ theme: isDark(currentState()) ? "light" : "dark" }),
      { id: "theme", "aria-label": isDark(state) ? "Light mode" : "Dark mode" }),
    helpButton());
  if (focused) document.getElementById(focused)?.focus();
}

/** A link to a section must not replace the state in the address. */
function keepState(link) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const section = document.getElementById(link.hash.slice(1));
    section?.focus({ preventScroll: true });
    section?.scrollIntoView();
  });
}

/** The number that a cell begins with; null where it begins with none. */
function cellNumber(text) {
  const found = /^[<>]?[+−-]?[\d,]*\.?\d+(e[+-]?\d+)?/i.exec(text.trim());
  return found && Number(found[0].replace(/[<>,+]/g, "").replace("−", "-"));
}

/** Heads become buttons that sort the rows of a table that stands in the document. */
function sortInPlace(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const records = [...body.rows].map((row) => ({ row, ...cellValues(row) }));
  let sort = UNSORTED;
  const choose = (name, text) => {
    sort = { name, down: sort.name === name ? !sort.down : !text };
    body.replaceChildren(...sortedBy(records, sort.name, sort.down).map(({ row }) => row));
    heads.forEach((head, index) => head.setAttribute("aria-sort",
      sort.name !== `cell${index}` ? "none" : sort.down ? "descending" : "ascending"));
  };
  heads.forEach((head, index) => {
    const name = `cell${index}`;
    const text = !records.some((record) => typeof record[name] === "number");
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button([head.textContent, make("span", { class: "arrow", "aria-hidden": "true" })],
      () => choose(name, text), { "data-sort": name }));
  });
}

/** Of a row: cell0, cell1, … as numbers where the first row begins with one. */
function cellValues(row) {
  return Object.fromEntries([...row.cells].map((cell, index) => [`cell${index}`, cellValue(cell)]));
}

/** What a cell is sorted by: the value that it names, or else what it shows. */
function cellValue({ dataset, textContent }) {
  if (dataset.value !== undefined) return dataset.value === "" ? null : Number(dataset.value);
  if (dataset.text !== undefined) return dataset.text || textContent;
  return /^[-–]?$/.test(textContent.trim()) ? null : cellNumber(textContent) ?? textContent;
}
