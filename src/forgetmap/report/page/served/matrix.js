// The matrix of forgetting on the start page: filled in one cell after the other, and stopped at will.

const MOST_MATRIX_RUNS = 12;
/** Items over all cells that are compared without being told to. */
const MOST_UNASKED_ITEMS = 200_000;
const TONE_TINTS = { bad: "forgotten", minor: "less", good: "kept", open: "never" };

/** @param {ServedRun[]} ordered  in the order of the tree: a run stands after what it was trained from */
function matrixSection(ordered) {
  const root = make("section", { id: "matrix", "aria-labelledby": "matrix-title" });
  if (ordered.length < 3) return { root, start: () => {} };
  const title = make("h2", { id: "matrix-title" }, "Forgotten from run to run");
  if (ordered.length > MOST_MATRIX_RUNS) {
    root.append(title, make("p", { class: "faint" }, `Shown for up to ${MOST_MATRIX_RUNS} runs; there are ${counted(ordered.length)}.`));
    return { root, start: () => {} };
  }
  const cells = new Map();
  const pairs = ordered.flatMap((before, row) => ordered.slice(row + 1).map((after) => ({ before, after })));
  const status = make("span", { class: "faint", role: "status" });
  const table = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix" },
    matrixTable(ordered, pairs, cells));
  let stop = null;
  const press = button("Compute", () => (stop ? stop.abort() : fill()), { class: "quiet" });
  const show = () => {
    const left = pairs.length - pairs.filter((pair) => cells.get(pair).dataset.state).length;
    press.hidden = left === 0;
    press.replaceChildren(stop ? "Stop" : "Compute");
    status.replaceChildren(left === 0 ? "" : `${counted(pairs.length - left)} of ${counted(pairs.length)} comparisons`);
  };
  const fill = async () => {
    stop = new AbortController();
    for (const pair of pairs) {
      if (cells.get(pair).dataset.state) continue;
      show();
      await fillCell(cells.get(pair), pair, stop.signal);
      if (stop.signal.aborted) break;
    }
    stop = null;
    show();
  };
  root.append(title, make("p", { class: "faint" }, "Rows are the model before, columns the model after: ",
    withTerms("the share forgotten, as counted, in the colour of the verdict. Each cell links to its comparison.")),
  table, make("p", { class: "bar" }, press, status));
  show();
  const start = (records) => {
    const most = Math.max(...records.map(({ items }) => items ?? 0));
    if (most * pairs.length <= MOST_UNASKED_ITEMS) fill();
  };
  return { root, start };
}

function matrixTable(ordered, pairs, cells) {
  const rows = ordered.slice(0, -1);
  const columns = ordered.slice(1);
  const cellOf = (before, after) => {
    const pair = pairs.find((each) => each.before === before && each.after === after);
    const cell = make("td", {});
    if (pair) cells.set(pair, cell);
    return cell;
  };
  return make("table", { class: "sheet matrix" },
    make("caption", { class: "aside" }, "Forgotten from the run of the row to the run of the column"),
    make("thead", {}, make("tr", {}, make("td", {}), columns.map((run) => make("th", { scope: "col" }, snippet(run.name, 24))))),
    make("tbody", {}, rows.map((before) => make("tr", {}, make("th", { scope: "row" }, snippet(before.name, 32)),
      columns.map((after) => cellOf(before, after))))));
}

/** Asks for one comparison; what the server refuses says why. */
async function fillCell(cell, { before, after }, signal) {
  cell.replaceChildren("…");
  try {
    const { forgotten, words, tone } = await ask("api/cell", { before: before.id, after: after.id }, signal);
    cell.className = `tint-${TONE_TINTS[tone]}`;
    cell.dataset.state = tone;
    cell.replaceChildren(make("a", { href: addressOf({ before: before.id, after: after.id }), title: words,
      "aria-label": `${before.name} to ${after.name}: ${forgotten} forgotten; ${words}` }, forgotten));
  } catch (problem) {
    if (problem.name === "AbortError") return cell.replaceChildren();
    cell.dataset.state = "refused";
    cell.replaceChildren(make("span", { class: "faint", title: problem.message }, "–"));
  }
}
