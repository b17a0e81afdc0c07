// Which two runs: the lineage as a tree, and a chooser for each side.

/**
 * @typedef {{id: string, name: string, model: string | null, stage: string | null,
 *   parent: string | null, created: string | null, simulated: boolean}} ServedRun
 */

/** The runs in the order of the tree, each with its depth; a loop of parents is cut. */
function inTree(runs) {
  const known = new Set(runs.map((run) => run.id));
  const found = new Map();
  const walk = (run, depth) => {
    if (found.has(run.id)) return;
    found.set(run.id, { ...run, depth });
    for (const child of runs) if (child.parent === run.id) walk(child, depth + 1);
  };
  for (const run of runs) if (!known.has(run.parent)) walk(run, 0);
  for (const run of runs) walk(run, 0);
  return [...found.values()];
}

/** The pair of the address; without one, a run and its parent where that leaves no choice. */
function pairOf(search, runs) {
  const given = new URLSearchParams(search);
  const known = (id) => (runs.some((run) => run.id === id) ? id : "");
  const [before, after] = [known(given.get("before")), known(given.get("after"))];
  if (before || after || runs.length !== 2) return { before, after };
  const ordered = inTree(runs);
  return { before: ordered[0].id, after: ordered[1].id };
}

/** @param {ServedRun[]} runs */
function renderPicker(root, runs, pair, rule) {
  const ordered = inTree(runs);
  const choices = [["", "choose"], ...ordered.map((run) => [run.id, "- ".repeat(run.depth) + runWords(run)])];
  const choose = (side) => (id) => showPair({ ...pair, [side]: id });
  root.replaceChildren(
    make("div", { class: "bar", role: "group", "aria-label": "Runs to compare" },
      chooser("run-before", "Before", choices, pair.before, choose("before")),
      chooser("run-after", "After", choices, pair.after, choose("after")),
      button("Exchange", () => showPair({ before: pair.after, after: pair.before }),
        { disabled: !(pair.before && pair.after) })),
    make("p", { id: "rule", class: "faint" }, ruleWords(rule)),
    make("details", { id: "lineage", open: !(pair.before && pair.after) },
      make("summary", {}, `Lineage of ${counted(runs.length)} runs`),
      treeList(ordered, pair)));
}

/** How any two runs are compared, as the server was told. */
function ruleWords({ rule, noise, repeated }) {
  const said = [
    `right from a score of ${rule.correct_at} on`,
    rule.metric && `measured by ${rule.metric}`,
    rule.pair_by === "auto" ? "paired by content where both sides have it, else by id" : `paired by ${rule.pair_by}`,
    `refused where less than ${percent(rule.min_paired)} pair`,
    `margin ${percent(rule.margin)}, noise floor ${percent(rule.noise_floor)}, ${percent(rule.level)} intervals`,
    rule.estimator !== "auto" && `estimator ${rule.estimator}`,
    rule.task_table && `task table ${rule.task_table}`,
    rule.rollup !== "default" && `rollup ${rule.rollup}`,
    noise && `noise of ${repeated} taken from ${noise}`,
  ];
  return `Rule: ${said.filter(Boolean).join("; ")}.`;
}

function runWords(run) {
  const stage = run.stage && run.stage !== run.name && `(${run.stage})`;
  return [run.name, stage, run.simulated && "simulated"].filter(Boolean).join(" ");
}

function treeList(ordered, pair) {
  const below = (parent) => ordered.filter((run) => run.parent === parent && run.depth > 0);
  const branch = (runs, above) => make("ul", { class: "lineage" }, runs.map((run) => {
    const children = below(run.id);
    return make("li", { class: [pair.before, pair.after].includes(run.id) && "chosen" }, runWords(run), " ",
      above && make("a", { href: addressOf({ before: above.id, after: run.id }) }, `against ${above.name}`),
      children.length > 0 && branch(children, run));
  }));
  return branch(ordered.filter((run) => run.depth === 0), null);
}

function addressOf(pair) {
  return `?${new URLSearchParams(Object.entries(pair).filter(([, id]) => id))}`;
}

/** Another pair is another page; estimator, scale and theme stay as they are. */
function showPair(pair) {
  const { estimator, scale, theme } = currentState();
  location.href = addressOf(pair) + hashOf({ ...FIRST_STATE, estimator, scale, theme });
}
