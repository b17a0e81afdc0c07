// The first screen: what may be concluded, and what to know before believing it.

/** @param {HTMLElement} root */
function renderSummary(root, payload, find, state) {
  const result = payload.comparisons[state.comparison];
  const summary = payload.summaries[state.comparison];
  const simulated = result.before.simulated || result.after.simulated;
  const isOpen = document.getElementById("how-we-know")?.open ?? false;
  root.replaceChildren(
    ...[
      simulated && make("p", { class: "flag" }, "SIMULATED data, not a measured model."),
      make("p", { class: "names" }, pairNames(payload, result)),
      verdictCard(result, summary),
      comparisonList(payload, find, state),
      make("div", { class: "cards" }, cellsCard(payload, state, result.total), accuracyCard(payload, result),
        warningsCard(payload, result)),
      howWeKnow(payload, find, state, isOpen),
    ].filter(Boolean),
  );
}

/** Badge, one number with one interval, and what to do. */
function verdictCard(result, summary) {
  const line = (words, look) => words && make("p", { class: look }, withTerms(words));
  return make("section", { class: `card first edge-${summary.tone}`, "aria-label": "Verdict" },
    make("h1", { id: "headline" }, make("span", { class: `verdict tone-${summary.tone}` }, summary.badge),
      make("span", { class: "aside" }, `: ${result.after.name}`)),
    summary.limits && make("p", { class: "number" },
      make("b", { class: "figure" }, summary.figure), " ", make("span", {}, withTerms(limitsBeside(result, summary)))),
    lossStrip(result.total),
    line(summary.by_task, "lead"),
    line(summary.note, "lead"),
    nextSteps(summary.what_next));
}

/** What stands beside the figure; a range is its own interval, and is not said twice. */
function limitsBeside({ total: { headline }, rule }, { limits }) {
  if (headline.forgetting.value !== null) return limits;
  const noun = ESTIMATORS[headline.estimator]?.from_repeats ? "all answers beyond the noise floor" : "all items";
  return `of ${noun} (plausible range with its ${settingPercent(rule.level)} interval)`;
}

/** What next: a sentence, or a list where there are several ways. */
function nextSteps(words) {
  const steps = words.replace(/`\), (?!and )(?:or )?/g, "`); ").split("; ");
  const label = make("b", {}, "What next: ");
  const commands = words.split("`").length - 1;
  if (steps.length < 2 || commands < 2 * steps.length) return make("div", { class: "next" }, make("p", {}, label, withCode(words)));
  return make("div", { class: "next" }, make("p", {}, label),
    make("ul", {}, steps.map((step) => make("li", {}, withCode(step.replace(/\.$/, ""))))));
}

const READ_FORGOTTEN = "read what was forgotten (`forgetmap report`)";

/** What stands between backticks is to be typed; what this page itself shows is a link to it. */
function withCode(words) {
  const [before, ...after] = words.split(READ_FORGOTTEN);
  if (!after.length) return withTyped(words);
  const link = make("a", {
    href: hashOf({ ...currentState(), ...FIRST_FILTERS, transition: "forgotten", page: 0, item: "" }),
    onclick: (event) => {
      event.preventDefault();
      listItems({ ...FIRST_FILTERS, transition: "forgotten" });
    },
  }, "read what was forgotten");
  return [withTyped(before), link, withTyped(after.join(READ_FORGOTTEN))];
}

function withTyped(words) {
  return words.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

/** The interval and the estimate on a line from 0, with the margin. */
function lossStrip({ margin, headline }) {
  const { value, low, high } = headline.forgetting;
  if (low === null || high === null || high < 0) return null;
  const most = Math.min(Math.max(1.15 * clipped(high), 1.6 * margin), 1);
  const at = (number) => 4 + (592 * Math.min(clipped(number), most)) / most;
  const line = (x, y1, y2, look) => makeSvg("line", { x1: x, x2: x, y1, y2, class: look });
  const label = (x, words) => makeSvg("text", { x, y: 44, class: "label", "text-anchor": x < 40 ? "start" : "middle" }, words);
  return makeSvg("svg", { viewBox: "0 0 600 50", class: "strip forgotten loss", "aria-hidden": "true" },
    makeSvg("line", { x1: 4, x2: 596, y1: 18, y2: 18, class: "axis" }),
    line(at(0), 8, 28, "axis"),
    makeSvg("rect", { x: at(low), width: Math.max(at(high) - at(low), 2), y: 11, height: 14, rx: 3, class: "range" }),
    value !== null && makeSvg("circle", { cx: at(value), cy: 18, r: 6, class: "dot" }),
    line(at(margin), 2, 32, "floor"),
    label(at(margin), `margin ${settingPercent(margin)}`),
    most === 1 && makeSvg("text", { x: 596, y: 44, class: "label", "text-anchor": "end" }, "100%"));
}

/** The other estimators, and what the verdict was checked against. */
function howWeKnow(payload, find, state, open) {
  const result = payload.comparisons[state.comparison];
  const { estimators, facts, parts, rests_on: restsOn } = payload.summaries[state.comparison];
  return make("details", { id: "how-we-know", class: "card", open },
    make("summary", {}, "How we know"),
    make("p", { class: "rests" }, withTerms(restsOn)),
    parts && make("p", { class: "rests" }, parts),
    make("dl", { class: "counts facts" }, facts.map(({ label, words }) =>
      [make("dt", {}, withTerms(label)), make("dd", {}, withTerms(words))])),
    estimators.length > 0 && estimatorTable(estimators, settingPercent(result.rule.level)),
    make("div", { class: "cards" },
      ...Object.keys(DIRECTIONS).map((direction) => measureCard(result.total, find, state, direction)),
      pairingCard(result)));
}

function estimatorTable(estimators, level) {
  const text = (head, show) => ({ head, text: true, show });
  const columns = [
    text("estimator", (row) => row.name), text("what it is", (row) => row.label),
    { head: "forgetting", show: (row) => row.forgetting }, { head: `${level} interval`, show: (row) => row.interval },
    { head: "gained", show: (row) => row.gained }, text("assumes", (row) => row.assumes),
    text("decides", (row) => row.decides && "yes"),
  ];
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Estimators" },
    plainTable("All items by each estimator", columns, estimators));
}

/** Of several comparisons, what came out of each, and the way there. */
function comparisonList(payload, find, state) {
  const indices = comparisonIndices(payload);
  if (indices.length < 2) return null;
  const rows = indices.map((index) => ({ index, ...payload.comparisons[index] }));
  const estimate = (direction) => ({ index, total }) =>
    estimateWords(find({ ...state, comparison: index }, "total", total.name, direction)).main;
  const columns = [
    { head: "compared", text: true, show: ({ index, after }) => comparisonLink(state, index, after.name) },
    { head: "verdict", text: true, show: ({ total }) => verdictCell(total) },
    { head: "forgetting", show: estimate("forgetting") },
    { head: "gained", show: estimate("backward_transfer") },
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

function pairNames(payload, result) {
  if (result.stages) {
    return [result.before.name, ...result.stages.map((stage) => stage.name)].join(" → ");
  }
  return `${result.before.name} → ${result.after.name}`;
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

/** Accuracy before and after as bars, and what was gained; here too where nothing is to be warned of. */
function accuracyCard(payload, { total, pairing, stages }) {
  const isCalm = !noticesOf(pairing, stages).length;
  const known = total.acc_before !== null && total.acc_after !== null;
  return make("section", { class: "card", "aria-labelledby": "accuracy-title" },
    make("h2", { id: "accuracy-title" }, "Accuracy and gains"),
    known && make("dl", { class: "bars" },
      accuracyBar("before", total.acc_before), accuracyBar("after", total.acc_after)),
    known && make("p", {}, withTerms(`Accuracy change ${signedPercent(total.acc_after - total.acc_before)}.`)),
    make("p", {}, withTerms(`Gained ${gainWords(total)}.`)),
    isCalm && make("p", { class: "faint" }, "No cautions."),
    isCalm && payload.redacted && make("p", { class: "faint" }, REDACTED));
}

/** As counted, and what is left of it without luck and noise, where that is another number. */
function gainWords({ n, n01, items, headline }) {
  const noun = n === items ? "items" : "answers";
  const asCounted = `${counted(n01)} of ${counted(n)} ${noun} (${n ? percent(n01 / n) : "–"})`;
  if (headline.estimator === "raw") return asCounted;
  return `${asCounted}; ${estimateWords(headline.backward_transfer).main} without luck and noise`;
}

function accuracyBar(side, value) {
  const bar = makeSvg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "share-bar", "aria-hidden": "true" },
    makeSvg("rect", { width: 100, height: 10, class: "whole" }),
    makeSvg("rect", { width: 100 * clipped(value), height: 10, class: side }));
  return [make("dt", {}, side), make("dd", {}, bar, make("b", {}, percent(value)))];
}

/** One direction: the number, its limits, and the noise floor it must be seen against. */
function measureCard(total, find, state, direction) {
  const { name, meaning, look } = DIRECTIONS[direction];
  const estimate = find(state, "total", total.name, direction);
  const { main, detail } = estimateWords(estimate);
  const why = main === "–" ? whyUnknown(total, state.estimator, direction) : "";
  return make("section", { class: `card measure edge-${look}`, "aria-label": name },
    make("h2", {}, name),
    make("p", { class: `figure ink-${look}`, "data-measure": direction }, main),
    make("p", { class: "faint" }, detail || why),
    strip(total, find, state, direction),
    make("p", { class: "faint" }, floorWords(total, state.scale, state.estimator)),
    make("p", { class: "faint" }, `${sentence(meaning)}; ${labelFor(SCALES, state.scale)}; ${
      estimatorLabel(state.estimator)}${ofHeadline(total, state.estimator)}.`));
}

function ofHeadline(total, estimator) {
  if (estimator !== "headline") return "";
  return ` (${estimatorLabel(total.headline.estimator)})`;
}

function whyUnknown(total, estimator, direction) {
  const estimates = estimator === "raw" ? total : total[estimator];
  const estimate = estimates?.[direction] ?? (direction === "forgetting" ? estimates : null);
  return estimate?.reason ?? "No value on this scale.";
}

function floorWords(total, scale, estimator) {
  const floor = total.noise_floor;
  if (floor.value === null) return `No noise floor: ${floor.reason ?? "needs repeats of a model"}.`;
  const note = takesFloorOut(total, estimator) ? " It is already subtracted." : "";
  const of = scale === "items" ? "" : " of all items";
  return `Noise floor ${percent(floor.value)}${of}: the share of answers that flip one way between two runs of the same model.${note}`;
}

function takesFloorOut(total, estimator) {
  const used = estimator === "headline" ? total.headline.estimator : estimator;
  return Boolean(Object.hasOwn(ESTIMATORS, used) && ESTIMATORS[used].from_repeats);
}

/** Where the noise floor is on the scale of this strip, if it belongs on it. */
function floorOn(total, find, state, direction) {
  if (takesFloorOut(total, state.estimator)) return null;
  if (state.scale === "items") return total.noise_floor.value;
  return find({ ...state, estimator: "noise_floor" }, "total", total.name, direction).value;
}

/** A line from 0: limits as a bar, the value as a dot, the noise floor as a dashed line. */
function strip(total, find, state, direction) {
  const estimates = Object.keys(DIRECTIONS)
    .map((name) => clippedEnds(find(state, "total", total.name, name)));
  const { value, low, high } = clippedEnds(find(state, "total", total.name, direction));
  const floor = floorOn(total, find, state, direction);
  if (value === null && low === null) return null;
  const numbers = [...estimates.flatMap(Object.values), floor].filter((number) => number !== null);
  const most = Math.max(0.01, ...numbers) * 1.05;
  const at = (part) => 8 + (284 * part) / most;
  const line = (x1, x2, y1, y2, look) => makeSvg("line", { x1, x2, y1, y2, class: look });
  const bar = { x: at(low), width: Math.max(at(high) - at(low), 1), y: 11, height: 12, rx: 3 };
  return makeSvg("svg", {
    viewBox: "0 0 300 34", class: `strip ${DIRECTIONS[direction].look}`, "aria-hidden": "true",
  },
  line(8, 292, 17, 17, "axis"),
  line(at(0), at(0), 8, 26, "axis"),
  low !== null && high !== null && makeSvg("rect", { ...bar, class: "range" }),
  value !== null && makeSvg("circle", { cx: at(value), cy: 17, r: 6, class: "dot" }),
  floor !== null && line(at(floor), at(floor), 2, 32, "floor"));
}

function clippedEnds({ value, low, high }) {
  return { value: clipped(value), low: clipped(low), high: clipped(high) };
}

function pairingCard({ pairing }) {
  const counts = [
    ["only before", pairing.only_before, "no counterpart after"],
    ["only after", pairing.only_after, "no counterpart before"],
    ["conflicts", pairing.conflicts, "same id, other content"],
    ["unscored", pairing.unscored, "no score on one side or both: missing, not wrong"],
    ["duplicates", pairing.duplicates, "share their content with another item"],
  ].filter(([, count]) => count);
  const all = pairing.paired === pairing.rows_before && pairing.paired === pairing.rows_after;
  return make("section", { class: "card", "aria-labelledby": "paired-title" },
    make("h2", { id: "paired-title" }, "What did not pair"),
    make("p", {}, all
      ? `All ${counted(pairing.paired)} results of both sides paired.`
      : `Paired ${counted(pairing.paired)} of ${counted(pairing.rows_before)} results before and ${counted(pairing.rows_after)} after.`),
    counts.length > 0 && make("dl", { class: "counts" }, counts.map(([name, count, meaning]) => [
      make("dt", {}, name),
      make("dd", {}, make("b", {}, counted(count)), ` ${meaning}`)])));
}

function noticesOf(pairing, stages) {
  return [...pairing.warnings, ...(stages ?? []).flatMap((stage) => stage.pairing.warnings)];
}

/** What to know before acting; where there is nothing, a line in another card says so. */
function warningsCard(payload, { pairing, stages }) {
  const list = noticeLines(noticesOf(pairing, stages));
  if (!list.length) return null;
  return make("section", { class: "card warned", "aria-labelledby": "warnings-title" },
    make("h2", { id: "warnings-title" }, `Before you act (${list.length})`),
    make("ul", { class: "warnings" }, list),
    payload.redacted && make("p", { class: "faint" }, REDACTED));
}

/** Every message once, with what to do about it. */
function noticeLines(notices) {
  const messages = new Map(notices.map((notice) => [notice.message, notice]));
  return [...messages.values()].map(({ code, message }) =>
    make("li", {}, sentence(message), " ",
      make("span", { class: "advice" }, Object.hasOwn(ADVICE, code) ? ADVICE[code] : OTHER_ADVICE)));
}
