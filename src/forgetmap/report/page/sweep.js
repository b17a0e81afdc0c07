// The page of a sweep: words and tables stand in the document, figures are drawn here.

async function startSweep() {
  const [result, figures] = await Promise.all([unpack("payload"), unpack("figures")]);
  const take = () => download("sweep.json", "application/json", JSON.stringify(result, null, 1));
  document.getElementById("take").append(button("Everything as JSON", take, { class: "quiet" }));
  document.body.append(helpDialog());
  startTerms();
  explainHeads(document);
  const draw = renderFigures(document.getElementById("pictures"), figures, {});
  const follow = () => {
    const state = sweepState(result);
    sweepSwitches(result, state);
    showTheme(state);
    pageLoaded().then(() => draw(state));
  };
  addEventListener("hashchange", follow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
  keepSkipLink(document.getElementById("main"));
  follow();
  document.body.dataset.ready = "true";
}

function sweepState(result) {
  const state = currentState();
  return {
    ...state,
    comparison: state.comparison < result.pairs.length ? state.comparison : 0,
    theme: ["light", "dark"].includes(state.theme) ? state.theme : "",
  };
}

function sweepSwitches(result, state) {
  const focused = document.activeElement?.id;
  const models = result.pairs.map(({ name }, index) => [String(index), name]);
  const choose = (index) => goTo({ comparison: Number(index) });
  // Below the headline: a reader of a phone sees that first.
  document.getElementById("model-switch").replaceChildren(...(models.length > 1
    ? [chooser("comparison", "Tuned model in the figures", models, String(state.comparison), choose)] : []));
  document.getElementById("switches").replaceChildren(
    button(isDark(state) ? "Light" : "Dark",
      () => goTo({ theme: isDark(currentState()) ? "light" : "dark" }),
      { id: "theme", "aria-label": isDark(state) ? "Light mode" : "Dark mode" }),
    helpButton());
  if (focused) document.getElementById(focused)?.focus();
}

startSweep();
