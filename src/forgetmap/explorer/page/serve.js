// Starts the page: first the runs, then the two that were chosen.

async function startExplorer() {
  const picker = make("nav", { id: "runs", "aria-label": "Runs" });
  document.getElementById("top").before(picker);
  const runs = await ask("api/runs", {});
  const pair = pairOf(location.search, runs);
  renderPicker(picker, runs, pair);
  if (!(pair.before && pair.after)) return tell("Choose a run before and a run after.");
  tell("Comparing the two runs. The first time, millions of items take a minute …");
  const { payload, figures } = await ask("api/comparison", pair);
  await startPage({ payload, figures, items: itemsFromServer(pair) });
}

function tell(words) {
  document.getElementById("main").removeAttribute("aria-busy");
  document.getElementById("loading").textContent = words;
}

startExplorer().catch((problem) => {
  const said = `This cannot be shown: ${problem.message}`;
  if (document.getElementById("loading")) tell(said);
  else announce(said);
  throw problem;
});
