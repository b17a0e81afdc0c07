// Which two runs: a table of all of them, and a chooser for each side.

/**
 * @typedef {{id: string, name: string, model: string | null, stage: string | null,
 *   parent: string | null, created: string | null, simulated: boolean}} ServedRun
 */

/** The runs in the order of the tree, each with its depth; a loop of parents is cut. */
function inTree(runs) {
  const known = new Set(runs.map((run) => run.id));
  const nodes = new Map();
  const walk = (run, depth) => {
    if (nodes.has(run.id)) return;
    nodes.set(run.id, { ...run, depth });
    for (const child of runs) if (child.parent === run.id) walk(child, depth + 1);
  };
  for (const run of runs) if (!known.has(run.parent)) walk(run, 0);
  for (const run of runs) walk(run, 0);
  return [...nodes.values()];
}

/** The pair of the address; without one, a run and its parent where that leaves no choice. */
function pairOf(search, runs) {
  const parameters = new URLSearchParams(search);
  const known = (id) => (runs.some((run) => run.id === id) ? id : "");
  const [before, after] = [known(parameters.get("before")), known(parameters.get("after"))];
  if (before || after || runs.length !== 2) return { before, after };
  const ordered = inTree(runs);
  return { before: ordered[0].id, after: ordered[1].id };
}

/** @param {ServedRun[]} runs */
function renderPicker(root, runs, pair, rule) {
  const ordered = inTree(runs);
  const choices = [["", "choose"], ...ordered.map((run) => [run.id, "- ".repeat(run.depth) + runWords(run)])];
  const choose = (side) => (id) => showPair({ ...pair, [side]: id });
  const table = runTable(ordered, pair);
  const isOpen = !(pair.before && pair.after);
  // Numbers of runs that nobody looks at would only delay the comparison.
  if (isOpen) table.load();
  root.className = isOpen ? "" : "paired";
  root.replaceChildren(
    make("div", { class: "bar", role: "group", "aria-label": "Runs to compare" },
      chooser("run-before", "Before", choices, pair.before, choose("before")),
      chooser("run-after", "After", choices, pair.after, choose("after")),
      button("Exchange", () => showPair({ before: pair.after, after: pair.before }),
        { disabled: !(pair.before && pair.after) })),
    make("p", { id: "rule", class: "faint" }, ruleWords(rule)),
    make("details", { id: "lineage", open: isOpen, ontoggle: table.load },
      make("summary", {}, `${counted(runs.length)} runs`),
      table.root));
}

/** How any two runs are compared, as the server was told. */
function ruleWords({ rule, noise, repeated }) {
  const parts = [
    `right from a score of ${rule.correct_at} on`,
    rule.metric && `measured by ${rule.metric}`,
    rule.pair_by === "auto" ? "paired by content where both sides have it, else by id" : `paired by ${rule.pair_by}`,
    `refused where less than ${settingPercent(rule.min_paired)} pair`,
    `margin ${settingPercent(rule.margin)}, noise floor ${settingPercent(rule.noise_floor)}, ${settingPercent(rule.level)} intervals`,
    rule.estimator !== "auto" && `estimator ${rule.estimator}`,
    rule.task_table && `task table ${rule.task_table}`,
    rule.rollup !== "default" && `rollup ${rule.rollup}`,
    noise && `noise of ${repeated} taken from ${noise}`,
  ];
  return `Rule: ${parts.filter(Boolean).join("; ")}.`;
}

function runWords(run) {
  const stage = run.stage && run.stage !== run.name && `(${run.stage})`;
  return [run.name, stage, run.simulated && "simulated"].filter(Boolean).join(" ");
}

/** All runs; a press on two of them compares them, the first as the model before. */
function runTable(ordered, pair) {
  const records = ordered.map((run) => ({ ...run, items: null, accuracy: null, known: false }));
  const root = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" });
  let first = "";
  const press = (run) => {
    if (first && first !== run.id) return showPair({ before: first, after: run.id });
    first = first ? "" : run.id;
    draw();
    announce(first ? `${run.name} is the model before; choose the model after.` : "Nothing is chosen.");
    root.querySelector(`[data-run="${CSS.escape(run.id)}"]`)?.focus();
  };
  const columns = [
    { head: "run", sort: "order", text: true, show: (run) => runCell(run, pair) },
    { head: "items", sort: "items", show: (run) => numberCell(run, run.items === null ? "–" : counted(run.items)) },
    { head: "accuracy", sort: "accuracy", show: (run) => numberCell(run, percent(run.accuracy)) },
    { head: "date", sort: "created", text: true, show: (run) => (run.created ?? "").slice(0, 10) },
    { head: "trained from", sort: "parent", text: true, show: (run) => parentLink(run, ordered) },
    { head: "compare", sort: "id", text: true, show: (run) => button(pressWords(run, first),
      () => press(run), { class: "quiet", "data-run": run.id, "aria-pressed": String(first === run.id) }) },
  ];
  records.forEach((run, order) => (run.order = order));
  const draw = () => root.replaceChildren(sortableTable("Runs", columns, records, { name: "order", down: false }));
  draw();
  let isLoading = false;
  const load = () => {
    if (!isLoading) fillNumbers(records, draw);
    isLoading = true;
  };
  return { root, load };
}

function runCell(run, pair) {
  const look = [pair.before, pair.after].includes(run.id) ? "chosen" : "";
  return make("span", { class: look }, "– ".repeat(run.depth) + runWords(run));
}

/** Numbers come one run after the other. */
function numberCell(run, words) {
  return run.known ? words : "…";
}

function pressWords(run, first) {
  if (!first) return "Before";
  return first === run.id ? "Before ✓" : "After";
}

function parentLink(run, ordered) {
  const parent = ordered.find(({ id }) => id === run.parent);
  return parent && make("a", { href: addressOf({ before: parent.id, after: run.id }) }, `against ${parent.name}`);
}

/** One run after the other: reading millions of answers takes a while. */
async function fillNumbers(records, draw) {
  for (const run of records) {
    const numbers = await ask("api/run", { run: run.id }).catch(() => ({ accuracy: null }));
    Object.assign(run, numbers, { known: true });
    draw();
  }
}

function addressOf(pair) {
  return `?${new URLSearchParams(Object.entries(pair).filter(([, id]) => id))}`;
}

/** Another pair is another page; estimator, scale and theme stay as they are. */
function showPair(pair) {
  const { estimator, scale, theme } = currentState();
  location.href = addressOf(pair) + hashOf({ ...FIRST_STATE, estimator, scale, theme });
}
