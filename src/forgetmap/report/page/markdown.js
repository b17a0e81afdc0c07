// Markdown and LaTeX in questions and answers, as elements. Whatever is not known is text; there are
// no links, pictures or HTML. Words that a diff marks stay marked.

const MARKUP = new RegExp([
  "\\$[^$\\n]+\\$", "\\$\\$", "\\\\[(\\[]", "\\\\begin\\{", "\\*\\*[^*\\n]+\\*\\*", "`[^`\\n]+`", "^ {0,3}(?:```|~~~)",
  "^ {0,3}#{1,6} ", "^ {0,6}(?:[-*+]|\\d{1,3}[.)]) +\\S", "^ {0,3}> ", "^\\|.*\\|[ \\t]*$",
].join("|"), "m");
const INLINE = new RegExp([
  "(?<code>`+)(?!`)(?<coded>[\\s\\S]*?[^`])\\k<code>(?!`)",
  "\\$\\$(?<dollars>[^$]+)\\$\\$",
  "\\\\\\[(?<brackets>[\\s\\S]+?)\\\\\\]",
  "\\\\\\((?<parentheses>[\\s\\S]+?)\\\\\\)",
  "(?<environment>\\\\begin\\{(?<name>[a-zA-Z]+\\*?)\\}[\\s\\S]+?\\\\end\\{\\k<name>\\})",
  "(?<![\\\\$\\w])\\$(?<dollar>(?![\\s$])(?:\\\\[\\s\\S]|[^$\\\\]){0,1000}?)(?<!\\s)\\$(?![\\d$])",
  "(?<boxed>\\\\boxed\\{(?:[^{}]|\\{(?:[^{}]|\\{[^{}]*\\})*\\})*\\})",
  "\\*\\*(?<strong>(?!\\s)[^*\\n]+?(?<!\\s))\\*\\*",
  "(?<![\\w*])\\*(?<stress>(?![\\s*])[^*\\n]+?(?<![\\s*]))\\*(?![\\w*])",
  "(?<![\\w_])_(?<underscored>(?![\\s_])[^_\\n]+?(?<![\\s_]))_(?![\\w_])",
  "\\\\(?<escaped>[!-/:-@[-`{-~])",
].join("|"), "g");
const LIST_LINE = /^( *)([-*+]|\d{1,9}[.)])( +)(?=\S)/;
const TABLE_RULE = /^ *\|?(?: *:?-+:? *\|)+ *(?::?-+:?)? *$/;

/** Whether a text has anything in it that would be shown otherwise. */
function hasMarkup(text) {
  return MARKUP.test(text);
}

/** Words are no formula: two dollars in a sentence are money. */
function isFormula(source) {
  return /[\\^_=+<>]/.test(source) || !/\s/.test(source) || !/(?<!\w)[A-Za-z]{2,}(?!\w)/.test(source);
}

/**
 * Elements for a text.
 * @param {string} source
 * @param {(from: number, to: number) => Node[]} mark  the words between two places as nodes
 */
function markupNodes(source, mark) {
  const lines = linesOf(source);
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    const reader = BLOCKS.find(({ starts }) => starts(lines, at, source)) ?? PARAGRAPH;
    at = reader.read(lines, at, { source, mark, blocks });
  }
  return blocks;
}

function linesOf(source) {
  const lines = [];
  let from = 0;
  for (const text of source.split("\n")) {
    lines.push({ text, from, to: from + text.length });
    from += text.length + 1;
  }
  return lines;
}

const BLOCKS = [
  {
    starts: (lines, at) => !lines[at].text.trim(),
    read: (_lines, at) => at + 1,
  },
  {
    starts: (lines, at) => /^ {0,3}(```|~~~)/.test(lines[at].text),
    read: (lines, at, { mark, blocks }) => {
      const [fence] = /```|~~~/.exec(lines[at].text);
      let end = at + 1;
      while (end < lines.length && !lines[end].text.trim().startsWith(fence)) end += 1;
      const code = end > at + 1 ? mark(lines[at + 1].from, lines[end - 1].to) : [];
      blocks.push(make("pre", {}, make("code", {}, code)));
      return end + 1;
    },
  },
  {
    starts: (lines, at) => /^ {0,3}#{1,6} +\S/.test(lines[at].text),
    read: (lines, at, context) => {
      const { text, from, to } = lines[at];
      context.blocks.push(make("p", { class: "heading" }, inlineNodes(context, from + /^ *#+ +/.exec(text)[0].length, to)));
      return at + 1;
    },
  },
  {
    starts: (lines, at) => /^ {0,3}([-*_])( *\1){2,} *$/.test(lines[at].text),
    read: (_lines, at, { blocks }) => {
      blocks.push(make("hr"));
      return at + 1;
    },
  },
  {
    starts: (lines, at) => /^ {0,3}> ?/.test(lines[at].text),
    read: (lines, at, context) => {
      const quote = make("blockquote");
      let end = at;
      for (; end < lines.length && /^ {0,3}> ?/.test(lines[end].text); end += 1) {
        const { text, from, to } = lines[end];
        quote.append(make("p", {}, inlineNodes(context, from + /^ *> ?/.exec(text)[0].length, to)));
      }
      context.blocks.push(quote);
      return end;
    },
  },
  {
    starts: (lines, at) => LIST_LINE.test(lines[at].text),
    read: readList,
  },
  {
    starts: (lines, at) => lines[at].text.includes("|") && TABLE_RULE.test(lines[at + 1]?.text ?? ""),
    read: (lines, at, context) => {
      const body = [];
      let end = at + 2;
      for (; end < lines.length && lines[end].text.includes("|"); end += 1) body.push(tableCells(lines[end], "td", context));
      context.blocks.push(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, make("table", { class: "sheet" },
        make("thead", {}, tableCells(lines[at], "th", context)), make("tbody", {}, body))));
      return end;
    },
  },
];

const PARAGRAPH = {
  /** Up to an empty line or another block, but no formula is torn apart. */
  read: (lines, at, context) => {
    const isOther = (index) => BLOCKS.some(({ starts }) => starts(lines, index, context.source));
    const opened = openFormula(context.source, lines[at].from);
    let end = at + 1;
    while (end < lines.length && (lines[end].from < opened || !isOther(end))) end += 1;
    context.blocks.push(make("p", {}, inlineNodes(context, lines[at].from, lines[end - 1].to)));
    return end;
  },
};

/** Where a formula over several lines ends that starts in this paragraph; else the start. */
function openFormula(source, from) {
  const rest = source.slice(from, from + MOST_MATHS);
  const start = /^[^\n]*?(\$\$|\\\[|\\begin\{)/.exec(rest);
  if (!start) return from;
  const close = { "$$": "$$", "\\[": "\\]", "\\begin{": "\\end{" }[start[1]];
  const end = rest.indexOf(close, start[0].length);
  return end < 0 ? from : from + end + close.length;
}

/** Lines that begin with a mark or a number; deeper ones stand further right. */
function readList(lines, at, context) {
  const isOrdered = /\d/.test(LIST_LINE.exec(lines[at].text)[2]);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const start = LIST_LINE.exec(lines[end].text);
    if (!start || (/\d/.test(start[2]) !== isOrdered && start[1].length < 2)) break;
    const from = lines[end].from + start[0].length;
    const opened = openFormula(context.source, from);
    let last = end;
    while (last + 1 < lines.length && (lines[last + 1].from < opened
      || (/^ {2,}\S/.test(lines[last + 1].text) && !LIST_LINE.test(lines[last + 1].text)))) last += 1;
    const depth = Math.min(Math.floor(start[1].length / 2), 3);
    const number = /\d/.test(start[2]) ? parseInt(start[2], 10) : null;
    const look = { class: [depth ? `deep-${depth}` : "", isOrdered && number === null ? "bullet" : ""].join(" ").trim() || null, value: number };
    items.push(make("li", look, inlineNodes(context, from, lines[last].to)));
    end = last + 1;
    // An empty line between two of them does not end a list.
    if (!lines[end]?.text.trim() && LIST_LINE.test(lines[end + 1]?.text ?? "")) end += 1;
  }
  context.blocks.push(make(isOrdered ? "ol" : "ul", {}, items));
  return end;
}

function tableCells({ text, from }, tag, context) {
  const cells = [];
  let start = /^ *\|?/.exec(text)[0].length;
  for (let at = start; at <= text.length; at += 1) {
    const isEnd = at === text.length;
    if (!isEnd && (text[at] !== "|" || text[at - 1] === "\\")) continue;
    if (!isEnd || text.slice(start).trim()) cells.push(make(tag, {}, inlineNodes(context, from + start, from + at)));
    start = at + 1;
  }
  return make("tr", {}, cells);
}

/** What stands within a line. */
function inlineNodes(context, from, to) {
  const { source, mark } = context;
  const nodes = [];
  let last = from;
  INLINE.lastIndex = 0;
  for (const match of source.slice(from, to).matchAll(INLINE)) {
    const start = from + match.index;
    const end = start + match[0].length;
    const node = inlineNode(match, context, start, end);
    if (!node) continue;
    nodes.push(...mark(last, start), node);
    last = end;
  }
  return [...nodes, ...mark(last, to)];
}

function inlineNode({ 0: whole, groups }, context, from, to) {
  const inner = (text) => from + whole.indexOf(text);
  if (groups.coded !== undefined) return make("code", {}, context.mark(from + groups.code.length, to - groups.code.length));
  if (groups.escaped !== undefined) return make("span", {}, context.mark(from + 1, to));
  if (groups.strong !== undefined) return make("strong", {}, inlineNodes(context, from + 2, to - 2));
  const stress = groups.stress ?? groups.underscored;
  if (stress !== undefined) return make("em", {}, inlineNodes(context, inner(stress), to - 1));
  if (groups.dollar !== undefined && !isFormula(groups.dollar)) return null;
  const formula = groups.dollars ?? groups.brackets ?? groups.parentheses ?? groups.environment ?? groups.dollar ?? groups.boxed;
  const isDisplay = (groups.dollars ?? groups.brackets ?? groups.environment) !== undefined;
  const node = mathNode(formula, isDisplay);
  // A formula that cannot be read stands as it is; one that changed is marked as a whole.
  if (!node) return make("code", { class: "formula" }, context.mark(from, to));
  const change = context.mark(from, to).find((part) => /^(INS|DEL)$/.test(part.nodeName));
  return change ? make(change.nodeName.toLowerCase(), {}, node) : node;
}

/** Marks for pieces of a diff: the words between two places, those that changed in elements. */
function markerOf(pieces) {
  let end = 0;
  const spans = pieces.map(({ kind, text }) => ({ kind, from: end, to: (end += text.length), text }));
  return (from, to) => spans
    .filter((span) => span.from < to && span.to > from)
    .map(({ kind, text, from: start }) => markedPiece({ kind, text: text.slice(Math.max(from - start, 0), to - start) }));
}

/** A short text on a line: an option, an answer. Those are often a formula without dollars. */
function shortMarkup(text) {
  if (isRaw()) return text;
  if (hasMarkup(text)) return inlineNodes({ source: text, mark: markerOf([{ kind: "same", text }]) }, 0, text.length);
  return (/\\[a-zA-Z]{2,}|[\^_]\{/.test(text) && mathNode(text)) || text;
}

/** Whether the reader wants texts as they are written. */
function isRaw() {
  return currentState().texts === "raw";
}
