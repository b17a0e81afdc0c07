// Which words changed: the shortest edit (Myers 1986), given up where it would take too long.

const MOST_EDITS = 1000;
const MOST_STEPS = 5e7;

/**
 * @typedef {{kind: "same" | "gone" | "new", text: string}} Piece
 */

/**
 * The words of both texts in order. Too different texts come out as one gone and one new piece.
 * @param {string} before
 * @param {string} after
 * @returns {Piece[]}
 */
function diffWords(before, after) {
  const wordsBefore = wordsOf(before);
  const wordsAfter = wordsOf(after);
  const head = commonStart(wordsBefore, wordsAfter);
  const tail = commonEnd(wordsBefore, wordsAfter, head);
  const [a, b] = [wordsBefore.slice(head, wordsBefore.length - tail), wordsAfter.slice(head, wordsAfter.length - tail)];
  const edits = shortestEdit(a, b) ?? [...markWords(a, "gone"), ...markWords(b, "new")];
  return joinPieces([
    ...markWords(wordsBefore.slice(0, head), "same"),
    ...edits,
    ...markWords(wordsBefore.slice(wordsBefore.length - tail), "same"),
  ]);
}

/** Words, single marks and the spaces between them; together they are the text. */
function wordsOf(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

function markWords(words, kind) {
  return words.length ? [{ kind, text: words.join("") }] : [];
}

function commonStart(a, b) {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a[length] === b[length]) length += 1;
  return length;
}

function commonEnd(a, b, head) {
  const most = Math.min(a.length, b.length) - head;
  let length = 0;
  while (length < most && a[a.length - 1 - length] === b[b.length - 1 - length]) length += 1;
  return length;
}

/** One piece per word, or null where more edits than allowed would be needed. */
function shortestEdit(a, b) {
  const most = Math.min(MOST_EDITS, Math.ceil(MOST_STEPS / (a.length + b.length + 1)));
  const middle = most + 1;
  const reached = new Int32Array(2 * most + 3);
  const trace = [];
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(reached.slice(middle - edits - 1, middle + edits + 2));
    for (let line = -edits; line <= edits; line += 2) {
      const down = goesDown(reached, middle, line, edits);
      let x = down ? reached[middle + line + 1] : reached[middle + line - 1] + 1;
      while (x < a.length && x - line < b.length && a[x] === b[x - line]) x += 1;
      reached[middle + line] = x;
      if (x >= a.length && x - line >= b.length) return retrace(a, b, trace);
    }
  }
  return null;
}

/** Whether the furthest way onto this diagonal adds a word (and does not drop one). */
function goesDown(reached, middle, line, edits) {
  if (line === -edits) return true;
  return line !== edits && reached[middle + line - 1] < reached[middle + line + 1];
}

function retrace(a, b, trace) {
  const pieces = [];
  let [x, y] = [a.length, b.length];
  const keepDownTo = (least) => {
    for (; x > least && y > 0; y -= 1) pieces.push({ kind: "same", text: a[(x -= 1)] });
  };
  for (let edits = trace.length - 1; edits > 0; edits -= 1) {
    const middle = edits + 1;
    const down = goesDown(trace[edits], middle, x - y, edits);
    const from = trace[edits][middle + x - y + (down ? 1 : -1)];
    keepDownTo(down ? from : from + 1);
    if (down) pieces.push({ kind: "new", text: b[(y -= 1)] });
    else pieces.push({ kind: "gone", text: a[(x -= 1)] });
  }
  keepDownTo(0);
  return pieces.reverse();
}

/** Neighbours of a kind as one piece. */
function joinPieces(pieces) {
  const runs = [];
  for (const piece of pieces) {
    const last = runs.at(-1);
    if (last?.kind === piece.kind) last.text += piece.text;
    else runs.push({ ...piece });
  }
  return runs;
}
