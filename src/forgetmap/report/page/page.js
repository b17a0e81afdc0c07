// Puts the parts together and follows the address.

const SHORTCUTS = [
  ["j or ↓", "next item"],
  ["k or ↑", "previous item"],
  ["Enter", "open the item"],
  ["/", "search the texts"],
  ["Esc", "back"],
  ["?", "this help"],
];

/**
 * Show a report.
 * @param {{payload: object, figures: Figure[], items: ItemSource}} report
 */
async function startPage({ payload, figures, items }) {
  const part = (id, label) => make("section", { id, "aria-label": label });
  const [summary, pictures, tables, capability, flips] = [
    part("summary", "Summary"), part("pictures", "Figures"), part("tables", "Groups"),
    part("capability", "Capability"), part("flips", "Items, one by one")];
  const switches = make("div", { id: "switches", class: "bar", role: "group", "aria-label": "Definitions" });
  const overview = make("div", { id: "overview" }, summary, switches, pictures, tables, capability, flips);
  const itemView = make("article", { id: "item", hidden: true, "aria-label": "Item" });
  const main = document.getElementById("main");
  main.replaceChildren(overview, itemView, footer(payload));
  document.body.append(helpDialog(SHORTCUTS));
  startTerms();
  const find = payload.capabilities ? driftFinder(payload.capabilities.rows) : estimateFinder(payload.rows);
  const rows = payload.capabilities?.rows ?? clippedRows(payload.rows);
  const onPage = (page) => figures.filter((figure) => (figure.page ?? "overview") === page);
  const showCapability = capabilityPage(capability, payload, find);
  const drawFigures = {
    overview: renderFigures(pictures, onPage("overview"), rows),
    capability: renderFigures(capability.querySelector(".pictures"), onPage("capability"), rows),
  };
  const showList = renderBrowser(flips, payload, items);
  const estimators = estimatorsIn(payload.rows);

  let [last, drawn] = [null, null];
  const draw = (state) => {
    drawn = state;
    pageLoaded().then(() => drawFigures[state.capability ? "capability" : "overview"](state));
  };
  const follow = async () => {
    const state = validState(currentState(), payload, estimators);
    const before = last;
    last = state;
    const numbers = differs(before, state, ["comparison", "estimator", "scale"]);
    const theme = differs(before, state, ["theme"]);
    if (numbers || theme) renderTop(payload, state);
    if (numbers) renderSwitches(switches, payload, estimators, state);
    if (theme) showTheme(state);
    const [tell, list] = payload.capabilities ? [renderDrift, renderDriftTables] : [renderSummary, renderTables];
    if (numbers) tell(summary, payload, find, state);
    if (numbers || differs(before, state, ["by"])) list(tables, payload, find, state);
    if (numbers || differs(before, state, ["capability"])) showCapability(state);
    for (const section of [summary, pictures, tables]) section.hidden = Boolean(state.capability);
    capability.hidden = !state.capability;
    if (state.item) document.body.dataset.figures ??= "later";
    else showOverview(overview, itemView);
    // What is hidden has no width to draw in.
    if (!state.item && differs(drawn, state, ["comparison", "estimator", "scale", "theme", "capability"])) draw(state);
    if (differs(before, state, ["comparison", "sort", "page", "capability", "texts", ...FILTERS])) await showList(state, before);
    await showView(overview, itemView, payload, items, state, before);
    if (differs(before, state, ["capability"])) landOn(capability, before, state);
  };
  addEventListener("hashchange", follow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    showTheme(last);
    if (drawn) draw(drawn);
  });
  document.addEventListener("keydown", onKey);
  unfoldOnPaper();
  keepSkipLink(main);
  await follow();
  main.removeAttribute("aria-busy");
  document.body.dataset.ready = "true";
}

/** The state with what this payload does not have put right. */
function validState(state, payload, estimators) {
  return {
    ...state,
    comparison: state.comparison < pairsOf(payload).length ? state.comparison : 0,
    capability: isCapability(payload, state.capability) ? state.capability : "",
    estimator: estimators.includes(state.estimator) ? state.estimator : estimators[0] ?? FIRST_STATE.estimator,
    scale: scalesOf(payload).some(([name]) => name === state.scale) ? state.scale : scalesOf(payload)[0][0],
    theme: ["light", "dark"].includes(state.theme) ? state.theme : "",
  };
}

/** Limits far beyond all items would stretch the axes. */
function clippedRows(rows) {
  const cut = (numbers) => numbers.map(clipped);
  return { ...rows, value: cut(rows.value), low: cut(rows.low), high: cut(rows.high) };
}

/** The models that are set against each other. */
function pairsOf({ capabilities, comparisons }) {
  if (!capabilities) return comparisons;
  const { before, models } = capabilities.result;
  return models.map((name) => ({ before: { name: before }, after: { name } }));
}

/** What numbers can be shown as. */
function scalesOf({ capabilities }) {
  return capabilities?.scales.map(({ name, words }) => [name, words]) ?? Object.entries(SCALES);
}

/** Vega comes after this script; the figures wait for it, nothing else does. */
function pageLoaded() {
  if (document.readyState === "complete") return Promise.resolve();
  return new Promise((resolve) => addEventListener("load", resolve, { once: true }));
}

function showOverview(overview, itemView) {
  if (!overview.hidden) return;
  overview.hidden = false;
  itemView.hidden = true;
  // What was drawn while hidden takes its width now.
  dispatchEvent(new Event("resize"));
}

async function showView(overview, itemView, payload, items, state, before) {
  const opened = state.item && differs(before, state, ["item", "comparison"]);
  const redrawn = state.item && differs(before, state, ["texts"]);
  const closed = before?.item && !state.item;
  if (opened || redrawn) {
    overview.hidden = true;
    itemView.hidden = false;
    await renderItem(itemView, payload, items, state);
    if (opened) scrollTo(0, 0);
    else document.getElementById("raw")?.focus();
  }
  if (closed) {
    const link = linkOf(before.item);
    link?.focus();
    link?.scrollIntoView({ block: "center" });
  }
}

/** Title, theme and help. */
function renderTop(payload, state) {
  const focused = document.activeElement?.id;
  document.getElementById("top").replaceChildren(
    make("p", { class: "title" }, payload.title),
    make("div", { class: "bar" },
      button(isDark(state) ? "Light" : "Dark", () => goTo({ theme: isDark(currentState()) ? "light" : "dark" }),
        { id: "theme", "aria-label": isDark(state) ? "Light mode" : "Dark mode" }),
      helpButton()));
  if (focused) document.getElementById(focused)?.focus();
}

/** The switches of all that is below the verdict: a reader sees that first. */
function renderSwitches(root, payload, estimators, state) {
  const focused = document.activeElement?.id;
  root.replaceChildren(...[
    comparisonChooser(payload, state),
    estimators.length > 0 && chooser("estimator", "Estimator", estimators.map((name) => [name, labelFor(ESTIMATORS, name)]),
      state.estimator, (estimator) => goTo({ estimator })),
    chooser("scale", "Scale", scalesOf(payload), state.scale, (scale) => goTo({ scale })),
  ].filter(Boolean));
  if (focused) document.getElementById(focused)?.focus();
}

function comparisonChooser(payload, state) {
  const words = ({ before, after }) => `${before.name} → ${after.name}`;
  const choices = comparisonIndices(payload)
    .map((index) => [String(index), words(pairsOf(payload)[index])]);
  if (choices.length < 2) return null;
  return chooser("comparison", "Comparison", choices, String(state.comparison),
    (index) => goTo({ comparison: Number(index), ...FIRST_FILTERS, page: 0, item: "" }));
}

function showTheme(state) {
  document.documentElement.dataset.ground = isDark(state) ? "dark" : "light";
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
}

function footer(payload) {
  const date = payload.made ? `, ${payload.made}` : "";
  const take = () => download("report.json", "application/json", JSON.stringify(payload));
  return make("footer", { class: "faint" }, `Made with forgetmap ${payload.version}${date}. `,
    "This report sends no data. ",
    (payload.capabilities || payload.items.some((table) => table.columns.task)) && button("Everything as JSON", take, { class: "quiet" }));
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  const typing = isTyping(event);
  if (typing && event.key !== "Escape") return;
  const act = keyActions(typing, event.target)[event.key];
  if (act && act() !== false) event.preventDefault();
}

function keyActions(typing, target) {
  const isOpen = Boolean(currentState().item);
  const step = (by) => () => {
    if (isOpen) document.getElementById(by > 0 ? "item-next" : "item-previous")?.click();
    else stepInList(by);
  };
  // In the overview, arrows scroll until a row of the list has the focus.
  const inList = isOpen || target.matches?.("#flips a");
  return {
    j: step(1),
    k: step(-1),
    ArrowDown: inList && !isOpen ? step(1) : null,
    ArrowUp: inList && !isOpen ? step(-1) : null,
    ArrowRight: isOpen ? step(1) : null,
    ArrowLeft: isOpen ? step(-1) : null,
    "/": () => {
      if (isOpen) closeItem();
      setTimeout(() => document.getElementById("filter-q")?.focus(), isOpen ? 50 : 0);
    },
    Escape: () => (typing ? target.blur() : isOpen ? closeItem() : currentState().capability ? closeCapability() : false),
  };
}

/** Paper has no fold: what is behind the verdict is printed with it. */
function unfoldOnPaper() {
  let wasOpen = true;
  addEventListener("beforeprint", () => {
    const fold = document.getElementById("how-we-know");
    wasOpen = fold?.open ?? true;
    if (fold) fold.open = true;
  });
  addEventListener("afterprint", () => {
    if (!wasOpen) document.getElementById("how-we-know").open = false;
  });
}

/** The link would replace the state in the address. */
function keepSkipLink(main) {
  document.querySelector("a.skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
    main.scrollIntoView();
  });
}
