// The first screen writes the summary as it comes; everything behind it stands in a fold.

/** @param {HTMLElement} root */
function renderSummary(root, payload, find, state) {
  const result = payload.comparisons[state.comparison];
  const summary = payload.summaries[state.comparison];
  const simulated = result.before.simulated || result.after.simulated;
  const isOpen = document.getElementById("how-we-know")?.open ?? false;
  root.replaceChildren(
    ...[
      simulated && make("p", { class: "flag" }, "SIMULATED data, not a measured model."),
      make("p", { class: "names" }, pairNames(result)),
      verdictCard(result, summary),
      comparisonList(payload, find, state),
      howWeKnow(payload, state, isOpen),
    ].filter(Boolean),
  );
}

/** Badge, one sentence, one interval, what was counted, warnings, and what to do. */
function verdictCard(result, summary) {
  const line = (words, look) => words && make("p", { class: look }, withTerms(words));
  const more = [summary.confirmed, summary.noise, summary.gained, summary.tasks];
  return make("section", { class: `card first edge-${summary.tone}`, "aria-label": "Verdict" },
    make("h1", { id: "headline" }, make("span", { class: `verdict tone-${summary.tone}` }, summary.badge),
      make("span", { class: "aside" }, `: ${result.after.name}`)),
    make("p", { class: "lead" }, withTerms(summary.sentence)),
    lossBar(result.total),
    line(summary.interval, "interval"),
    make("p", {}, withTerms(summary.counts), " ", result.total.forgotten > 0 && forgottenLink("See the forgotten ones")),
    more.map((words) => line(words, "more")),
    firstWarnings(summary),
    nextSteps(summary.steps));
}

/** At least and at most on a line from 0, with the margin. */
function lossBar({ margin, loss: { low, high } }) {
  if (low === null || high === null) return null;
  const most = Math.min(Math.max(1.15 * clipped(high), 1.6 * margin), 1);
  const at = (number) => 4 + (592 * Math.min(clipped(number), most)) / most;
  const line = (x, y1, y2, look) => makeSvg("line", { x1: x, x2: x, y1, y2, class: look });
  const label = (x, words, anchor = "middle") => makeSvg("text", { x, y: 50, class: "label", "text-anchor": anchor }, words);
  return makeSvg("svg", { viewBox: "0 0 600 56", class: "strip", "aria-hidden": "true" },
    makeSvg("line", { x1: 4, x2: 596, y1: 18, y2: 18, class: "axis" }),
    line(at(0), 8, 28, "axis"),
    makeSvg("rect", { x: at(low), width: Math.max(at(high) - at(low), 3), y: 10, height: 16, rx: 3, class: "range" }),
    line(at(margin), 2, 34, "floor"),
    label(at(margin), `margin ${settingPercent(margin)}`, at(margin) < 60 ? "start" : "middle"),
    label(596, settingPercent(Number(most.toPrecision(2))), "end"));
}

/** The most important warnings, and the way to the others. */
function firstWarnings({ warnings, more_warnings: more }) {
  if (!warnings.length) return null;
  const open = () => {
    const fold = document.getElementById("how-we-know");
    fold.open = true;
    fold.scrollIntoView();
  };
  return make("div", { class: "warned" },
    make("ul", { class: "warnings" }, noticeLines(warnings)),
    more > 0 && button(`${counted(more)} more under “How we know”`, open, { class: "quiet" }));
}

/** Every message once, with what to do about it. */
function noticeLines(notices) {
  const messages = new Map(notices.map((notice) => [notice.message, notice]));
  return [...messages.values()].map(({ code, message }) =>
    make("li", {}, sentence(message), " ",
      make("span", { class: "advice" }, Object.hasOwn(ADVICE, code) ? ADVICE[code] : OTHER_ADVICE)));
}

/** What next: one step, or several ways. */
function nextSteps(steps) {
  const label = make("b", {}, "What next: ");
  if (steps.length === 1) return make("p", { class: "next" }, label, stepWords(steps[0]));
  return make("div", { class: "next" }, label, make("ul", {}, steps.map((step) => make("li", {}, stepWords(step)))));
}

/** A step with its command; what this page itself shows is a link to it. */
function stepWords({ words, command }) {
  return command === "report" ? forgottenLink(words) : [words, command && ` (command: ${command})`];
}

function forgottenLink(words) {
  return make("a", {
    href: hashOf({ ...currentState(), ...FIRST_FILTERS, transition: "forgotten", page: 0, item: "" }),
    onclick: (event) => {
      event.preventDefault();
      listItems({ ...FIRST_FILTERS, transition: "forgotten" });
    },
  }, words);
}

/** Facts, counts, all warnings, and every estimate. */
function howWeKnow(payload, state, open) {
  const result = payload.comparisons[state.comparison];
  const { estimators, facts, more_warnings: more } = payload.summaries[state.comparison];
  const notices = [result, ...(result.stages ?? [])].flatMap(({ pairing }) => pairing.warnings);
  return make("details", { id: "how-we-know", class: "card", open },
    make("summary", {}, "How we know"),
    make("dl", { class: "counts facts" }, facts.map(({ label, words }) =>
      [make("dt", {}, withTerms(label)), make("dd", {}, withTerms(words))])),
    make("div", { class: "cards" }, cellsCard(payload, state, result.total), unpairedCard(result)),
    (more > 0 || result.stages) && notices.length > 0 && [
      make("h2", {}, "All warnings"), make("ul", { class: "warnings" }, noticeLines(notices))],
    [...new Set(estimators.map(({ role }) => role))].map((role) =>
      estimatorTable(sentence(role), estimators.filter((row) => row.role === role), settingPercent(result.rule.level))));
}

function estimatorTable(title, estimators, level) {
  const text = (head, show) => ({ head, text: true, show });
  const columns = [
    text("estimator", (row) => row.name), text("what it is", (row) => row.label),
    { head: "forgotten", show: (row) => row.forgetting }, { head: `${level} interval`, show: (row) => row.interval },
    { head: "gained", show: (row) => row.gained }, text("formula", (row) => row.formula),
  ];
  return [make("h2", {}, title),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, plainTable(title, columns, estimators))];
}

/** Of several comparisons, what came out of each, and the way there. */
function comparisonList(payload, find, state) {
  const indices = comparisonIndices(payload);
  if (indices.length < 2) return null;
  const rows = indices.map((index) => ({ index, shown: payload.verdicts[index].total[0], ...payload.comparisons[index] }));
  const estimate = (direction) => ({ index, total }) =>
    share(find({ ...state, comparison: index }, "total", total.name, direction).value);
  const columns = [
    { head: "compared", text: true, show: ({ index, after }) => comparisonLink(state, index, after.name) },
    { head: "verdict", text: true, show: verdictCell },
    { head: "forgotten", show: estimate("forgetting") },
    { head: "gained", show: estimate("backward_transfer") },
    { head: "lost", show: ({ total }) => limitsOf(total.loss) },
    { head: "accuracy", show: ({ total }) => `${percent(total.acc_before)} → ${percent(total.acc_after)}` },
  ];
  return make("div", { class: "scroll each", tabindex: "0", role: "region", "aria-label": "All comparisons" },
    plainTable("All comparisons", columns, rows));
}

/** A table that stays in its order. */
function plainTable(caption, columns, rows) {
  return make("table", { class: "sheet" },
    make("caption", { class: "aside" }, caption),
    make("thead", {}, make("tr", {}, columns.map(({ head, text }) =>
      make("th", { scope: "col", class: text ? "words" : "number" }, head && withTerms(head))))),
    make("tbody", {}, rows.map((row) => bodyRow(columns, row))));
}

/** The way to another comparison, in which no filter is set. */
function comparisonLink(state, index, name) {
  return make("a", {
    href: hashOf({ ...state, ...FIRST_FILTERS, page: 0, item: "", comparison: index }),
    "aria-current": index === state.comparison ? "true" : null,
  }, name);
}

/** Of a chain the last stage is the chain as a whole; it is offered once. */
function comparisonIndices(payload) {
  const [first] = pairsOf(payload);
  const again = ({ after }) => payload.kind === "chain" && after.name === first.after.name;
  return [...pairsOf(payload).keys()]
    .filter((index) => index === 0 || !again(pairsOf(payload)[index]));
}

function pairNames({ before, after, stages }) {
  return [before.name, ...(stages?.map((stage) => stage.name) ?? [after.name])].join(" → ");
}

/** The four cells, as the table they are. */
function cellsCard(payload, state, total) {
  const items = payload.items.find((table) => table.comparison === state.comparison);
  const cell = (name, count) => cellOf(name, count, total.n, Boolean(items?.total[name]));
  const head = (text, scope) => make("th", { scope }, text);
  return make("section", { class: "card", "aria-label": "The four cells" },
    make("table", { class: "cells" },
      make("caption", {}, `${counted(total.n)} ${total.n === total.items ? "items" : "answers"}`,
        make("span", { class: "faint" }, " as counted, luck and noise included")),
      make("thead", {}, make("tr", {},
        make("td", {}), head("right after", "col"), head("wrong after", "col"))),
      make("tbody", {},
        make("tr", {}, head("right before", "row"),
          cell("kept", total.n11), cell("forgotten", total.n10)),
        make("tr", {}, head("wrong before", "row"),
          cell("gained", total.n01), cell("never", total.n00)))));
}

function cellOf(name, count, n, listed) {
  const words = [
    make("span", { class: "cell-name" }, labelFor(TRANSITIONS, name)),
    make("b", {}, counted(count)),
    make("span", { class: "cell-share" }, n ? percent(count / n) : "–"),
  ];
  const look = { class: `cell tint-${name}` };
  if (!listed) return make("td", look, words);
  return make("td", look, button(words, () => listItems({ transition: name }), { title: `List what is ${TRANSITIONS[name]}` }));
}

function unpairedCard({ pairing }) {
  const counts = [
    ["only before", pairing.only_before, "no counterpart after"],
    ["only after", pairing.only_after, "no counterpart before"],
    ["conflicts", pairing.conflicts, "same id, other content"],
    ["unscored", pairing.unscored, "no score on one side or both: missing, not wrong"],
    ["duplicates", pairing.duplicates, "share their content with another item"],
  ].filter(([, count]) => count);
  return counts.length > 0 && make("section", { class: "card", "aria-labelledby": "paired-title" },
    make("h2", { id: "paired-title" }, "What did not pair"),
    make("dl", { class: "counts" }, counts.map(([name, count, meaning]) => [
      make("dt", {}, name), make("dd", {}, make("b", {}, counted(count)), ` ${meaning}`)])));
}
