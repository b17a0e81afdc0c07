// Which two runs: a table of all of them, and a chooser for each side.

/**
 * @typedef {{id: string, name: string, model: string | null, stage: string | null,
 *   parent: string | null, created: string | null, simulated: boolean}} ServedRun
 */

const MOST_TASK_NAMES = 2;
const MOST_TASK_TITLES = 30;

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

/**
 * With a pair, a bar above its report; without one, a page to choose from.
 * @param {ServedRun[]} runs
 */
function renderPicker(root, runs, pair, rule) {
  const ordered = inTree(runs);
  const table = runTable(ordered, pair);
  const isPaired = Boolean(pair.before && pair.after);
  root.className = isPaired ? "paired" : "";
  const settings = make("p", { id: "rule", class: "faint" }, withTerms(ruleWords(rule)));
  if (!isPaired) {
    const matrix = matrixSection(ordered);
    // Numbers of runs that nobody looks at would only delay the comparison.
    table.load().then(matrix.start);
    return root.replaceChildren(
      make("h1", {}, "Runs"),
      make("p", { id: "choice", class: "lead", role: "status" }, choiceWords(ordered, "")),
      make("section", { id: "lineage", "aria-label": "All runs" }, table.root),
      matrix.root,
      make("details", { class: "settings" }, make("summary", {}, "How runs are compared"), settings));
  }
  const choices = ordered.map((run) => [run.id, "- ".repeat(run.depth) + runWords(run)]);
  const choose = (side) => (id) => showPair({ ...pair, [side]: id });
  root.replaceChildren(
    make("div", { class: "bar", role: "group", "aria-label": "Runs to compare" },
      make("a", { href: location.pathname, class: "home" }, "← All runs"),
      chooser("run-before", "Before", choices, pair.before, choose("before")),
      chooser("run-after", "After", choices, pair.after, choose("after")),
      button("Exchange", () => showPair({ before: pair.after, after: pair.before }))),
    make("details", { id: "lineage", ontoggle: table.load },
      make("summary", {}, `${counted(runs.length)} runs, and how they are compared`),
      settings, table.root));
}

/** What to do on the start page. */
function choiceWords(ordered, first) {
  if (ordered.length < 2) return "There is only one run: serve another one as well to compare them.";
  if (!first) return "Choose a run before, then a run after: two clicks compare them.";
  return `Before: ${ordered.find(({ id }) => id === first).name}. Now choose the run after.`;
}

/** How any two runs are compared, as the server was told. */
function ruleWords({ rule, noise, repeated }) {
  const parts = [
    `right from a score of ${rule.correct_at}`,
    rule.metric && `measured by ${rule.metric}`,
    rule.pair_by === "auto" ? "paired by content if both sides have it, else by id" : `paired by ${rule.pair_by}`,
    `at least ${settingPercent(rule.min_paired)} must pair`,
    `margin ${settingPercent(rule.margin)}, ${settingPercent(rule.level)} intervals`,
    rule.noise_floor !== null && `if reruns flip at most ${settingPercent(rule.noise_floor)} one way`,
    rule.estimator !== "auto" && `estimator ${rule.estimator}`,
    rule.look > 1 && `look ${rule.look}`,
    rule.chosen_among > 1 && `chosen among ${counted(rule.chosen_among)}`,
    rule.selected && "the run before helped to choose the items",
    rule.task_table && `task table ${rule.task_table}`,
    rule.rollup !== "default" && `rollup ${rule.rollup}`,
    noise && `${noise} is a repeat of ${repeated}`,
  ];
  return `Rule: ${parts.filter(Boolean).join("; ")}.`;
}

function runWords(run) {
  const stage = run.stage && run.stage !== run.name && `(${run.stage})`;
  return [run.name, stage, run.simulated && "simulated"].filter(Boolean).join(" ");
}

/** All runs; a press on two of them compares them, the first as the model before. */
function runTable(ordered, pair) {
  const records = ordered.map((run, order) => ({ ...run, order, items: null, accuracy: null, tasks: [], known: false }));
  let first = "";
  const press = (run) => {
    if (first && first !== run.id) return showPair({ before: first, after: run.id });
    first = first ? "" : run.id;
    table.redraw();
    document.getElementById("choice")?.replaceChildren(choiceWords(ordered, first));
    root.querySelector(`[data-run="${CSS.escape(run.id)}"]`)?.focus();
  };
  const optional = (name, column) => (records.some((run) => run[name]) ? [column] : []);
  const columns = [
    { head: "run", sort: "order", text: true, show: (run) => runCell(run, pair, first, press) },
    { head: "accuracy", sort: "accuracy", show: (run) => numberCell(run, percent(run.accuracy)) },
    { head: "items", sort: "items", show: (run) => numberCell(run, run.items === null ? "–" : counted(run.items)) },
    { head: "tasks", sort: "tasks", text: true, show: (run) => numberCell(run, taskWords(run.tasks)) },
    ...optional("model", { head: "model", sort: "model", text: true, show: (run) => run.model ?? "–" }),
    ...optional("stage", { head: "stage", sort: "stage", text: true, show: (run) => run.stage ?? "–" }),
    ...optional("created", { head: "date", sort: "created", text: true, show: (run) => (run.created ?? "–").slice(0, 10) }),
    ...optional("parent", { head: "trained from", sort: "parent", text: true, show: (run) => parentLink(run, ordered) }),
  ];
  const table = sortableTable("Runs", columns, records, { name: "order", down: false });
  table.classList.add("runs");
  const root = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" }, table);
  let loading = null;
  const load = () => (loading ??= fillNumbers(records, table.redraw).then(() => records));
  return { root, load };
}

function runCell(run, pair, first, press) {
  const chosen = first === run.id || [pair.before, pair.after].includes(run.id);
  const label = first === run.id ? `Deselect ${run.name}` : first ? `${run.name} as the run after` : `${run.name} as the run before`;
  return [
    make("span", { class: "faint", "aria-hidden": "true" }, "– ".repeat(run.depth)),
    button([run.name, run.simulated && make("span", { class: "mark" }, "simulated")], () => press(run),
      { class: chosen ? "run chosen" : "run", "data-run": run.id, "aria-pressed": String(first === run.id), title: label }),
  ];
}

/** Numbers come one run after the other. */
function numberCell(run, words) {
  return run.known ? words : "…";
}

/** The names of a few tasks, else their number; all names on hover. */
function taskWords(tasks) {
  if (!tasks.length) return "–";
  const words = tasks.length <= MOST_TASK_NAMES ? tasks.map(visibleName).join(", ") : `${counted(tasks.length)} tasks`;
  return make("span", { title: tasks.slice(0, MOST_TASK_TITLES).join(", ") }, snippet(words, 60));
}

function parentLink(run, ordered) {
  const parent = ordered.find(({ id }) => id === run.parent);
  return parent && make("a", { href: addressOf({ before: parent.id, after: run.id }) }, `against ${parent.name}`);
}

/** One run after the other: reading millions of answers takes a while. */
async function fillNumbers(records, redraw) {
  for (const run of records) {
    const numbers = await ask("api/run", { run: run.id }).catch(() => ({ accuracy: null }));
    Object.assign(run, numbers, { known: true });
    redraw();
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
