// One item: what was asked, what was right, and what both models said.

const MOST_SHOWN = 20_000;

/**
 * Shows the item of the state, or hides the page.
 * @param {HTMLElement} root
 * @param {ItemSource} items
 */
async function renderItem(root, payload, items, state) {
  const { item, place: index } = await items.find({ ...selectionOf(state), key: state.item });
  if (state.item !== currentState().item) return;
  const context = { result: pairsOf(payload)[state.comparison], history: payload.histories };
  root.replaceChildren(...(item ? itemParts(item, index, context, items, state) : [
    make("h1", { tabindex: "-1" }, "Item not found"),
    make("p", {}, "This report does not contain the item of this link."),
    button("Back to the list", closeItem),
  ]));
  root.querySelector("h1").focus();
}

function itemParts(item, index, { result, history }, items, state) {
  return [
    itemBar(item, index, items, state),
    make("p", { class: "names" }, `${item.task} · ${item.item}${item.repeat ? ` · answer ${item.repeat + 1}` : ""}`),
    make("h1", { tabindex: "-1" }, badge(item.transition), " ",
      item.reason && item.reason !== "unknown" ? labelFor(REASONS, item.reason) : changeWords(item.transition)),
    item.metric && make("p", { class: "faint" }, `Metric: ${item.metric}`),
    item.category && make("p", { class: "faint" }, `Category: ${item.category}`),
    historyLine(history, item),
    questionCard(item),
    make("div", { class: "sides" }, ...sideCards(item, result)),
    promptCard(item),
  ].filter(Boolean);
}

/** Of a chain, how the item went from stage to stage. */
function historyLine(history, item) {
  const index = history?.item.findIndex((name, at) => name === item.item && history.task[at] === item.task) ?? -1;
  if (index < 0) return null;
  const steps = [...history.path[index]].map((digit, stage) =>
    `${history.stages[stage]}: ${digit === "1" ? "right" : "wrong"}`);
  return make("p", { class: "faint", id: "item-history" }, steps.join(" → "));
}

function changeWords(transition) {
  return {
    gained: "wrong before, right after", forgotten: "right before, wrong after",
    less: "less than before", more: "more than before",
  }[transition] ?? "";
}

function itemBar(item, index, items, state) {
  const copy = async () => {
    await copyText(asJsonLines([item]));
    announce("Copied as JSONL.");
  };
  const step = (by) => () => stepItem(items, index, state, by);
  return make("nav", { class: "bar", "aria-label": "Item" },
    button("← Back", closeItem),
    button("Previous", step(-1), { id: "item-previous", disabled: !index }),
    button("Next", step(1), { id: "item-next", disabled: index === null }),
    index !== null && placeWords(items, index, state),
    make("span", { class: "push" }),
    markupSwitch(item),
    button("Copy as JSONL", copy),
    linkCopier());
}

/** Where the item stands in the list it was opened from. */
function placeWords(items, index, state) {
  const words = make("span", { id: "item-place", class: "faint" }, counted(index + 1));
  items.query({ ...selectionOf(state), offset: index, limit: 1 }).then(({ total }) =>
    words.replaceChildren(`${counted(index + 1)} of ${counted(total)}`));
  return words;
}

/** Between texts as they are read and as they are written; only where that makes a difference. */
function markupSwitch(item) {
  const texts = [item.question, item.gold, ...(item.options ?? []), ...["response", "prompt", "answer"].flatMap((name) =>
    ["before", "after"].map((side) => item[`${name}_${side}`]))];
  if (!texts.some((text) => typeof text === "string" && (hasMarkup(text) || /\\[a-zA-Z]{2,}/.test(text)))) return null;
  return button("Raw text", () => goTo({ texts: isRaw() ? "" : "raw" }),
    { id: "raw", "aria-pressed": String(isRaw()), title: "Show Markdown and LaTeX unrendered" });
}

async function stepItem(items, index, state, by) {
  const { rows } = await items.query({ ...selectionOf(state), offset: index + by, limit: 1 });
  if (!rows.length) return announce("This is the last item.");
  goTo({ item: itemKey(rows[0]), page: Math.floor((index + by) / PAGE_SIZE) });
}

function closeItem() {
  goTo({ item: "" });
}

function questionCard(item) {
  const options = item.options ?? [];
  const isOption = options.some((option) => sameText(option, item.gold));
  return make("section", { class: "card", "aria-label": "Question" },
    make("h2", {}, "Question"),
    item.question ? longText([{ kind: "same", text: item.question }])
      : make("p", { class: "faint" }, "Its text is not in this report."),
    options.length > 0 && make("ol", { class: "options" }, options.map((option) => optionLine(item, option))),
    item.gold !== null && item.gold !== undefined && !isOption &&
      make("div", {}, make("h3", {}, "Right answer"), longText([{ kind: "same", text: String(item.gold) }])));
}

function optionLine(item, option) {
  const chose = (side) => {
    const choice = item[`choice_${side}`];
    return choice !== null && choice !== undefined && sameText(choice, option);
  };
  const isRight = item.gold !== null && item.gold !== undefined && sameText(item.gold, option);
  const marks = [isRight && "right answer", chose("before") && "chosen before",
    chose("after") && "chosen after"].filter(Boolean);
  return make("li", { class: isRight ? "right" : "" }, make("span", { class: "text" }, shortMarkup(option)), " ",
    marks.map((mark) => make("span", { class: `mark ${mark.replace(" ", "-")}` }, mark)));
}

/** Both answers and responses; the words that differ are marked. */
function sideCards(item, result) {
  const responses = [item.response_before, item.response_after];
  const [before, after] = responses.map((text) => withoutThinking(text ?? ""));
  const pieces = before && after ? diffWords(before, after) : null;
  return ["before", "after"].map((side, index) => {
    const own = side === "before" ? "gone" : "new";
    const answer = pieces?.filter(({ kind }) => kind === "same" || kind === own)
      ?? [{ kind: "same", text: [before, after][index] }];
    return make("section", { class: "card side", "aria-label": `${side}: ${result[side].name}` },
      make("h2", {}, sentence(side), make("span", { class: "faint" }, ` ${result[side].name}`)),
      make("dl", { class: "counts" }, sideFacts(item, side).map(([name, value]) =>
        [make("dt", {}, name), make("dd", {}, name === "answer" || name === "choice" ? shortMarkup(value) : value)])),
      responseParts(responses[index], answer));
  });
}

function sideFacts(item, side) {
  const outcome = item[`outcome_${side}`];
  const answer = item[`answer_${side}`];
  const facts = [
    // Where the answer is the whole response, it stands below.
    ["answer", sameText(answer, withoutThinking(item[`response_${side}`] ?? "")) ? null : answer],
    ["choice", sameText(item[`choice_${side}`], item[`answer_${side}`]) ? null : item[`choice_${side}`]],
    ["score", item[`score_${side}`]],
    ["ended", outcome && labelFor(REASONS, outcome)],
    ["error", item[`error_${side}`]],
  ];
  return facts.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [name, snippet(String(value), 500)]);
}

function responseParts(response, answer) {
  if (response === null || response === undefined) {
    return make("p", { class: "faint" }, "The response is not in this report.");
  }
  const thoughts = splitThinking(response).filter((section) => section.kind === "thinking");
  const isEmpty = !answer.some((piece) => piece.text.trim());
  return [
    make("h3", {}, "Response"),
    thoughts.map(thinkingPart),
    isEmpty ? make("p", { class: "faint" }, "No answer after the thinking.") : longText(answer),
  ];
}

function thinkingPart({ text, finished }) {
  const label = `Thinking, ${counted(text.length)} characters${finished ? "" : ", not finished"}`;
  const details = make("details", {
    class: "thinking",
    ontoggle: () => {
      if (details.children.length === 1) details.append(longText([{ kind: "same", text: text.trim() }]));
    },
  }, make("summary", {}, label));
  return details;
}

function promptCard(item) {
  const prompts = ["before", "after"].map((side) => [side, item[`prompt_${side}`]]).filter(([, text]) => text);
  if (!prompts.length) return null;
  const same = prompts.length === 2 && prompts[0][1] === prompts[1][1];
  const texts = same ? [["both sides", prompts[0][1]]] : prompts;
  return make("details", { class: "card" },
    make("summary", {}, same ? "Prompt" : "Prompts (they differ)"),
    texts.map(([side, text]) => [make("h3", {}, sentence(side)), longText([{ kind: "same", text }])]));
}

/**
 * A text whose words may be marked; a very long one is cut until the reader asks for all of it.
 * @param {Piece[]} pieces
 */
function longText(pieces) {
  const length = pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  const rendered = !isRaw() && hasMarkup(pieces.map(({ text }) => text).join(""));
  const box = make("div", { class: rendered ? "text markup" : "text", dir: "auto" });
  const show = (most) => box.replaceChildren(...textNodes(firstPieces(pieces, most), rendered));
  show(MOST_SHOWN);
  if (length <= MOST_SHOWN) return box;
  const more = button(`Show all ${counted(length)} characters`, () => {
    show(Infinity);
    more.remove();
  });
  return make("div", {}, box, more);
}

function textNodes(pieces, rendered) {
  if (!rendered) return pieces.map(markedPiece);
  return markupNodes(pieces.map(({ text }) => text).join(""), markerOf(pieces));
}

function firstPieces(pieces, most) {
  let room = most;
  const first = [];
  for (const piece of pieces) {
    if (room <= 0) break;
    first.push({ kind: piece.kind, text: piece.text.slice(0, room) });
    room -= piece.text.length;
  }
  return first;
}

function markedPiece({ kind, text }) {
  return kind === "same" ? asNode(text) : make(kind === "gone" ? "del" : "ins", {}, text);
}
