// Starts the page: first the runs, then the two that were chosen.

const PROGRESS_EVERY = 1_000;

async function startExplorer() {
  document.getElementById("main").setAttribute("aria-busy", "true");
  const picker = make("nav", { id: "runs", "aria-label": "Runs" });
  document.getElementById("top").before(picker);
  const [runs, rule] = await Promise.all([ask("api/runs", {}), ask("api/rule", {})]);
  const pair = pairOf(location.search, runs);
  renderPicker(picker, runs, pair, rule);
  if (pair.before && pair.after) placePicker(picker);
  if (!(pair.before && pair.after)) return startRuns(picker);
  tell("Comparing the two runs …");
  const watching = setInterval(() => tellProgress(pair), PROGRESS_EVERY);
  const { payload, figures } = await ask("api/comparison", pair).finally(() => clearInterval(watching));
  await startPage({ payload, figures, items: itemsFromServer(pair) });
}

/** On a phone the verdict comes first, for the eye and for the keyboard: the choosers stand below it. */
function placePicker(picker) {
  const narrow = matchMedia("(max-width: 640px)");
  const place = () => {
    if (narrow.matches) document.getElementById("main").after(picker);
    else document.getElementById("top").before(picker);
  };
  narrow.addEventListener("change", place);
  place();
}

/** The page without a pair: runs, ground and help, and no report to wait for. */
function startRuns(picker) {
  const main = document.getElementById("main");
  main.removeAttribute("aria-busy");
  main.replaceChildren(picker);
  document.body.append(helpDialog());
  startTerms();
  const follow = () => {
    const state = { ...FIRST_STATE, theme: currentState().theme };
    renderTop({ title: "forgetmap" }, state);
    showTheme(state);
  };
  addEventListener("hashchange", follow);
  keepSkipLink(main);
  follow();
  document.body.dataset.ready = "true";
}

/** Millions of items take a while, the first time: say how far it is. */
async function tellProgress(pair) {
  const progress = await ask("api/progress", pair).catch(() => ({}));
  if (!progress.words || !document.getElementById("loading")) return;
  tell(progressWords(progress), make("progress", { max: progress.steps, value: Math.max(progress.step - 1, 0), "aria-label": "Steps done" }));
}

/** @param {{words: string, step: number, steps: number, seconds: number}} progress */
function progressWords({ words, step, steps, seconds }) {
  const prefix = step ? `Step ${step} of ${steps}: ` : "";
  return `${prefix}${sentence(words)} … (${counted(Math.floor(seconds))} s; cached for the next time) `;
}

function tell(words, ...more) {
  document.getElementById("main").removeAttribute("aria-busy");
  document.getElementById("loading").replaceChildren(asNode(words), ...more);
}

startExplorer().catch((problem) => {
  const message = `Cannot show this page: ${problem.message}`;
  if (document.getElementById("loading")) tell(message);
  else announce(message);
  throw problem;
});
