// Puts the parts together and follows the address.

const SHORTCUTS = [
  ["j or ↓", "next item"],
  ["k or ↑", "previous item"],
  ["Enter", "open the item"],
  ["/", "search the texts"],
  ["Esc", "back to the list"],
  ["?", "this help"],
];

/**
 * Show a report.
 * @param {{payload: object, figures: Figure[], items: ItemSource}} report
 */
async function startPage({ payload, figures, items }) {
  const part = (id, label) => make("section", { id, "aria-label": label });
  const [summary, pictures, tables, flips] = [
    part("summary", "Summary"), part("pictures", "Figures"), part("tables", "Groups"),
    part("flips", "Items, one by one")];
  const overview = make("div", { id: "overview" }, summary, pictures, tables, flips);
  const itemView = make("article", { id: "item", hidden: true, "aria-label": "Item" });
  const main = document.getElementById("main");
  main.replaceChildren(overview, itemView, footer(payload));
  document.body.append(helpDialog(), make("div", { id: "tooltip", hidden: true }));
  const find = estimateFinder(payload.rows);
  const drawFigures = renderFigures(pictures, figures, payload.rows);
  const showList = renderBrowser(flips, payload, items);
  const estimators = estimatorsIn(payload.rows);

  let [last, drawn] = [null, null];
  const draw = (state) => {
    drawn = state;
    pageLoaded().then(() => drawFigures(state));
  };
  const follow = async () => {
    const state = allowed(currentState(), payload, estimators);
    const before = last;
    last = state;
    const numbers = differs(before, state, ["comparison", "estimator", "scale"]);
    const theme = differs(before, state, ["theme"]);
    if (numbers || theme) renderTop(payload, estimators, state);
    if (theme) showTheme(state);
    if (numbers) renderSummary(summary, payload, find, state);
    if (numbers || differs(before, state, ["by"])) renderTables(tables, payload, find, state);
    if (state.item) document.body.dataset.figures ??= "later";
    else showOverview(overview, itemView);
    // What is hidden has no width to draw in.
    if (!state.item && differs(drawn, state, ["comparison", "estimator", "scale", "theme"])) draw(state);
    if (differs(before, state, ["comparison", "sort", "page", ...FILTERS])) await showList(state, before);
    await showView(overview, itemView, payload, items, state, before);
  };
  addEventListener("hashchange", follow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    showTheme(last);
    if (drawn) draw(drawn);
  });
  document.addEventListener("keydown", onKey);
  keepSkipLink(main);
  await follow();
  main.removeAttribute("aria-busy");
  document.body.dataset.ready = "true";
}

/** The state with what this payload does not have put right. */
function allowed(state, payload, estimators) {
  return {
    ...state,
    comparison: state.comparison < payload.comparisons.length ? state.comparison : 0,
    estimator: estimators.includes(state.estimator) ? state.estimator : estimators[0] ?? "raw",
    scale: Object.hasOwn(SCALES, state.scale) ? state.scale : "items",
    theme: ["light", "dark"].includes(state.theme) ? state.theme : "",
  };
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
  const closed = before?.item && !state.item;
  if (opened) {
    overview.hidden = true;
    itemView.hidden = false;
    await renderItem(itemView, payload, items, state);
    scrollTo(0, 0);
  }
  if (closed) {
    const link = linkOf(before.item);
    link?.focus();
    link?.scrollIntoView({ block: "center" });
  }
}

/** Title and the switches that apply to everything. */
function renderTop(payload, estimators, state) {
  const focused = document.activeElement?.id;
  document.getElementById("top").replaceChildren(
    make("p", { class: "title" }, payload.title),
    make("div", { class: "bar", role: "group", "aria-label": "What the numbers are" },
      comparisonChooser(payload, state),
      chooser("estimator", "Estimator", estimators.map((name) => [name, ESTIMATORS[name]]),
        state.estimator, (estimator) => goTo({ estimator })),
      chooser("scale", "Scale", Object.entries(SCALES), state.scale, (scale) => goTo({ scale })),
      button(isDark(state) ? "Light" : "Dark", () => goTo({ theme: isDark(currentState()) ? "light" : "dark" }),
        { id: "theme", "aria-label": isDark(state) ? "Show on light ground" : "Show on dark ground" }),
      button("?", openHelp, { id: "help-button", "aria-label": "Keyboard help" })));
  if (focused) document.getElementById(focused)?.focus();
}

function comparisonChooser(payload, state) {
  const words = ({ before, after }) => `${before.name} → ${after.name}`;
  const choices = comparisonPlaces(payload)
    .map((place) => [String(place), words(payload.comparisons[place])]);
  if (choices.length < 2) return null;
  return chooser("comparison", "Comparison", choices, String(state.comparison),
    (place) => goTo({ comparison: Number(place), ...FIRST_FILTERS, page: 0, item: "" }));
}

function showTheme(state) {
  document.documentElement.dataset.ground = isDark(state) ? "dark" : "light";
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
}

function footer(payload) {
  const made = payload.made ? `, ${payload.made}` : "";
  const take = () => download("report.json", "application/json", JSON.stringify(payload));
  return make("footer", { class: "faint" }, `Made with forgetmap ${payload.version}${made}. `,
    "Nothing here leaves this machine. ",
    payload.items.some((each) => each.columns.task) && button("Everything as JSON", take, { class: "quiet" }));
}

function helpDialog() {
  const close = () => document.getElementById("help").close();
  return make("dialog", { id: "help", "aria-labelledby": "help-title" },
    make("h2", { id: "help-title" }, "Keyboard"),
    make("dl", { class: "counts" }, SHORTCUTS.map(([key, what]) =>
      [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)])),
    button("Close", close));
}

function openHelp() {
  document.getElementById("help").showModal();
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
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
    Escape: () => (typing ? target.blur() : isOpen ? closeItem() : false),
    "?": openHelp,
  };
}

/** The link would replace the state in the address. */
function keepSkipLink(main) {
  document.querySelector("a.skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
    main.scrollIntoView();
  });
}
