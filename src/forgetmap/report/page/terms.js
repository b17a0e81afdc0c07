// Terms with what they mean: beside the word on hover, focus or press, and all of them under "?".

/** Name -> meaning; the first name of a line is the one that is listed. */
const TERMS = [
  [["forgotten"], "Right before, wrong after, for one item."],
  [["gained", "backward transfer"], "Wrong before, right after, for one item; papers call it backward transfer."],
  [["lost"], "Proven: of the items, at least and at most this share of right answers is gone, whatever noise and luck. As a verdict: at least more than 0, and perhaps more than the margin."],
  [["small loss"], "A verdict: something is proven to be lost, but less than the margin."],
  [["accuracy held", "accuracy rose"], "A verdict: accuracy did not fall by the margin, but items went both ways. One run cannot tell noise from exchange; asking these items again can."],
  [["cannot tell"], "A verdict: no loss and a loss of the margin or more are both possible, or the data cannot answer. “What next” says what would decide."],
  [["margin"], "The largest loss that you accept. It is a setting, not a result."],
  [["noise floor"], "The share of answers that flip one way between two runs of the same model."],
  [["flip", "flips"], "An item that was right before and is wrong after, or the other way round."],
  [["95% interval", "interval"], "Of 100 such intervals, about 95 contain the true value. `--level` sets another level."],
  [["cluster", "clusters"], "Items that share something, such as a passage or a template. They count less than independent items."],
  [["estimator"], "A way to count what was forgotten. Those that remove luck rest on assumptions and do not decide; “How we know” lists all of them."],
  [["accuracy change", "change"], "Accuracy after minus before, with its sign. Losses and gains cancel out in it."],
  [["mean over tasks"], "Every task counts the same, however many items it has."],
  [["barrier"], "How far a merge falls below the straight line between the accuracies of both models."],
  [["drift"], "How far a capability moved, as an effect that is comparable across metrics: Cohen's h for shares; 0.1 is about 5 points in the middle of the scale."],
];
const MEANINGS = new Map(TERMS.flatMap(([names, meaning]) => names.map((name) => [name.toLowerCase(), { name: names[0], meaning }])));
const TERM_PATTERN = new RegExp(
  `(?<![\\w-])(${[...MEANINGS.keys()].sort((one, other) => other.length - one.length)
    .map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})(?![\\w-])`, "gi");

/** Words in which every known term can be asked what it means, once. */
function withTerms(words) {
  const parts = [];
  const explained = new Set();
  let from = 0;
  for (const match of words.matchAll(TERM_PATTERN)) {
    const { name } = MEANINGS.get(match[0].toLowerCase());
    if (explained.has(name)) continue;
    explained.add(name);
    parts.push(words.slice(from, match.index), termButton(match[0]));
    from = match.index + match[0].length;
  }
  return [...parts, words.slice(from)];
}

function termButton(words) {
  return make("button", { type: "button", class: "term", ...termHelp(words) }, words);
}

/** What makes a control explain a term: a description, and words that appear beside it. */
function termHelp(words) {
  const term = MEANINGS.get(words.trim().toLowerCase());
  return term ? { "data-term": term.name, "aria-describedby": termId(term.name) } : {};
}

function termId(name) {
  return `term-${fileName(name)}`;
}

/** Heads of tables that stand in the document explain themselves, as those of made ones do. */
function explainHeads(root) {
  for (const head of root.querySelectorAll("table.sheet thead th")) {
    const control = head.querySelector("button");
    if (control) {
      for (const [name, value] of Object.entries(termHelp(control.textContent))) control.setAttribute(name, value);
    } else if (MEANINGS.has(head.textContent.trim().toLowerCase())) {
      head.replaceChildren(termButton(head.textContent));
    }
  }
}

/** Descriptions for screen readers, and the box that appears for everybody else. */
function startTerms() {
  document.body.append(
    make("div", { id: "terms", hidden: true }, TERMS.map(([[name], meaning]) =>
      make("span", { id: termId(name) }, meaning))),
    make("div", { id: "term-tip", "aria-hidden": "true", hidden: true }));
  const shown = (event) => event.target.closest?.("[data-term]");
  document.addEventListener("pointerover", (event) => showTerm(shown(event)));
  document.addEventListener("focusin", (event) => showTerm(shown(event)));
  document.addEventListener("click", (event) => showTerm(shown(event)));
  document.addEventListener("focusout", () => showTerm(null));
  document.addEventListener("scroll", () => showTerm(null), { passive: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && showTerm(null));
  document.addEventListener("keydown", helpOnKey);
}

/** @param {HTMLElement | null | undefined} target */
function showTerm(target) {
  const tip = document.getElementById("term-tip");
  const term = target && MEANINGS.get(target.dataset.term.toLowerCase());
  tip.hidden = !term;
  if (!term) return;
  tip.replaceChildren(make("b", {}, term.name), `: ${term.meaning}`);
  const place = target.getBoundingClientRect();
  const below = place.bottom + 6 + tip.offsetHeight < innerHeight;
  tip.style.left = `${Math.max(Math.min(place.left, innerWidth - tip.offsetWidth - 8), 8)}px`;
  tip.style.top = `${below ? place.bottom + 6 : place.top - tip.offsetHeight - 6}px`;
}

/** The keys of every page. */
const HELP_KEYS = [["?", "this help"], ["Esc", "close it"]];

/** Keys and terms. */
function helpDialog(keys = HELP_KEYS) {
  const close = () => document.getElementById("help").close();
  const list = (pairs) => make("dl", { class: "counts" }, pairs.map(([name, what]) => [make("dt", {}, name), make("dd", {}, what)]));
  return make("dialog", { id: "help", "aria-labelledby": "help-title" },
    make("div", { class: "bar" }, make("h2", { id: "help-title" }, "Help"), make("span", { class: "push" }, button("Close", close))),
    make("h3", {}, "Keyboard"), list(keys.map(([key, what]) => [make("kbd", {}, key), what])),
    make("h3", {}, "Terms"), list(TERMS.map(([[name], meaning]) => [name, meaning])));
}

/** @param {KeyboardEvent} event */
function helpOnKey(event) {
  if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  if (document.getElementById("help").open) return;
  event.preventDefault();
  openHelp();
}

function isTyping({ target }) {
  return /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

function openHelp() {
  document.getElementById("help").showModal();
}

/** The same on every page. */
function helpButton() {
  return button("?", openHelp, { id: "help-button", "aria-label": "Help: keys and terms" });
}
