// Thinking sections of a response.

const THINKING_TAG = /<(\/)?(?:think|thinking|reasoning)>|<\|(?:begin|(end))_of_thought\|>/gi;

/**
 * @typedef {{kind: "answer" | "thinking", text: string, finished: boolean}} Section
 */

/**
 * A response cut at its thinking tags. A closing tag without an opening one ends thinking that
 * began in the prompt.
 * @param {string} response
 * @returns {Section[]}
 */
function splitThinking(response) {
  const sections = [];
  let [from, thinking, everClosed] = [0, false, false];
  const add = (isThinking, to, finished) => {
    const text = response.slice(from, to);
    if (text.trim()) sections.push({ kind: isThinking ? "thinking" : "answer", text, finished });
  };
  for (const tag of response.matchAll(THINKING_TAG)) {
    const closes = Boolean(tag[1] || tag[2]);
    add(thinking || (closes && !everClosed), tag.index, closes || !thinking);
    everClosed ||= closes;
    thinking = !closes;
    from = tag.index + tag[0].length;
  }
  add(thinking, response.length, !thinking);
  return sections;
}

/** The answer itself, as the scorer reads it. */
function withoutThinking(response) {
  return splitThinking(response)
    .filter((section) => section.kind === "answer")
    .map((section) => section.text)
    .join("")
    .trim();
}
