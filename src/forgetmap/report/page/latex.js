// LaTeX as MathML, which browsers draw themselves. Elements are made one by one, so that nothing in
// a formula can become anything else; what is not understood is left to be shown as it stands.

const MOST_MATHS = 4_000;
const DEEPEST_MATHS = 40;
const MATHS_TOKEN = /\\[a-zA-Z]+\*?|\\[\s\S]|\d+(?:[.,]\d+)*|\s+|[\s\S]/gu;

const MATHS_LETTERS = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", varepsilon: "ε", zeta: "ζ", eta: "η", theta: "θ",
  vartheta: "ϑ", iota: "ι", kappa: "κ", lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", varpi: "ϖ", rho: "ρ",
  varrho: "ϱ", sigma: "σ", varsigma: "ς", tau: "τ", upsilon: "υ", phi: "ϕ", varphi: "φ", chi: "χ", psi: "ψ",
  omega: "ω", Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π", Sigma: "Σ", Upsilon: "Υ",
  Phi: "Φ", Psi: "Ψ", Omega: "Ω", infty: "∞", ell: "ℓ", hbar: "ℏ", imath: "ı", jmath: "ȷ", Re: "ℜ", Im: "ℑ",
  aleph: "ℵ", emptyset: "∅", varnothing: "∅", partial: "∂", nabla: "∇", wp: "℘", top: "⊤", bot: "⊥",
  degree: "°", circ: "∘", prime: "′", angle: "∠", triangle: "△", square: "□", checkmark: "✓", pounds: "£", S: "§",
};
const MATHS_SIGNS = {
  cdot: "⋅", times: "×", div: "÷", pm: "±", mp: "∓", ast: "∗", star: "⋆", bullet: "∙", oplus: "⊕", ominus: "⊖",
  otimes: "⊗", odot: "⊙", cup: "∪", cap: "∩", setminus: "∖", wedge: "∧", land: "∧", vee: "∨", lor: "∨", neg: "¬",
  lnot: "¬", le: "≤", leq: "≤", leqslant: "≤", ge: "≥", geq: "≥", geqslant: "≥", ne: "≠", neq: "≠", ll: "≪",
  gg: "≫", equiv: "≡", approx: "≈", sim: "∼", simeq: "≃", cong: "≅", propto: "∝", prec: "≺", succ: "≻", in: "∈",
  notin: "∉", ni: "∋", subset: "⊂", supset: "⊃", subseteq: "⊆", supseteq: "⊇", subsetneq: "⊊", perp: "⟂",
  parallel: "∥", mid: "∣", nmid: "∤", models: "⊨", vdash: "⊢", forall: "∀", exists: "∃", nexists: "∄",
  to: "→", rightarrow: "→", leftarrow: "←", gets: "←", leftrightarrow: "↔", Rightarrow: "⇒", Leftarrow: "⇐",
  Leftrightarrow: "⇔", iff: "⟺", implies: "⟹", impliedby: "⟸", longrightarrow: "⟶", longleftarrow: "⟵",
  Longrightarrow: "⟹", longleftrightarrow: "⟷", mapsto: "↦", longmapsto: "⟼", uparrow: "↑", downarrow: "↓", hookrightarrow: "↪",
  rightleftharpoons: "⇌", cdots: "⋯", ldots: "…", dots: "…", dotsc: "…", dotsb: "⋯", vdots: "⋮", ddots: "⋱",
  therefore: "∴", because: "∵", colon: ":", lbrace: "{", rbrace: "}", lbrack: "[", rbrack: "]", langle: "⟨",
  rangle: "⟩", lfloor: "⌊", rfloor: "⌋", lceil: "⌈", rceil: "⌉", lvert: "|", rvert: "|", vert: "|", lVert: "‖",
  rVert: "‖", Vert: "‖", backslash: "\\", surd: "√", coloneqq: "≔", doteq: "≐", bmod: "mod", lhd: "⊲", rhd: "⊳",
  "{": "{", "}": "}", "|": "‖",
};
const MATHS_SUMS = {
  sum: "∑", prod: "∏", coprod: "∐", bigcup: "⋃", bigcap: "⋂", bigoplus: "⨁", bigotimes: "⨂", bigvee: "⋁", bigwedge: "⋀",
};
const MATHS_INTEGRALS = { int: "∫", iint: "∬", iiint: "∭", oint: "∮" };
const MATHS_FUNCTIONS = new Set(("sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan exp ln log lg "
  + "deg dim ker hom arg sgn").split(" "));
const MATHS_LIMITS = new Set("lim max min sup inf gcd lcm det Pr limsup liminf argmax argmin".split(" "));
const MATHS_SPACES = { ",": 0.17, ":": 0.22, ";": 0.28, " ": 0.25, "!": -0.17, quad: 1, qquad: 2, enspace: 0.5, thinspace: 0.17 };
const MATHS_ACCENTS = {
  hat: "^", widehat: "^", bar: "‾", vec: "→", overrightarrow: "→", tilde: "~", widetilde: "~",
  dot: "˙", ddot: "¨", check: "ˇ", acute: "´", grave: "`", breve: "˘", overbrace: "⏞",
};
const MATHS_BELOW = { underbrace: "⏟" };
const MATHS_LINES = { overline: "overlined", underline: "underlined" };
const MATHS_NAME_LOOK = { lspace: "0.17em", rspace: "0.17em", movablelimits: "false" };
const MATHS_FENCES = {
  matrix: ["", ""], smallmatrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], Bmatrix: ["{", "}"],
  vmatrix: ["|", "|"], Vmatrix: ["‖", "‖"], cases: ["{", ""], array: ["", ""],
};
const MATHS_ROWS = new Set(["align", "aligned", "alignat", "gather", "gathered", "split", "equation", "eqnarray", "multline"]);
const MATHS_IGNORED = new Set(["limits", "nolimits", "displaystyle", "textstyle", "scriptstyle", "hline", "nonumber",
  "notag", "bigskip", "medskip", "smallskip", "noindent", "allowbreak", "strut"]);
const MATHS_TEXT = new Set(["text", "textrm", "textnormal", "mbox", "textit", "textbf", "textsf", "texttt", "emph", "textup"]);
const MATHS_BIG = /^(?:[bB]ig{1,2})[lrm]?$/;
/** Alphabet -> code points of A, a and 0, and letters that stand elsewhere. */
const MATHS_ALPHABETS = {
  mathbb: [0x1d538, 0x1d552, 0x1d7d8, { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ" }],
  mathbf: [0x1d400, 0x1d41a, 0x1d7ce, {}],
  mathcal: [0x1d49c, 0x1d4b6, 0, { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ", g: "ℊ", o: "ℴ" }],
  mathfrak: [0x1d504, 0x1d51e, 0, { C: "ℭ", H: "ℌ", I: "ℑ", R: "ℜ", Z: "ℨ" }],
  mathsf: [0x1d5a0, 0x1d5ba, 0x1d7e2, {}],
  mathtt: [0x1d670, 0x1d68a, 0x1d7f6, {}],
};
Object.assign(MATHS_ALPHABETS, { mathscr: MATHS_ALPHABETS.mathcal, boldsymbol: MATHS_ALPHABETS.mathbf, bm: MATHS_ALPHABETS.mathbf,
  Bbb: MATHS_ALPHABETS.mathbb, bold: MATHS_ALPHABETS.mathbf, mathit: null, mathrm: null, rm: null, operatorname: null });

class MathsError extends Error {}

function makeMath(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/1998/Math/MathML", tag), attributes, children);
}

/**
 * A formula as MathML; null where it cannot be read.
 * @param {string} source  without its dollars
 * @param {boolean} display  on a line of its own
 */
function mathNode(source, display = false) {
  if (!source.trim() || source.length > MOST_MATHS) return null;
  try {
    const reader = { tokens: source.match(MATHS_TOKEN), at: 0, depth: 0, alphabet: undefined, display };
    const rows = mathRows(reader, null);
    const content = rows.length === 1 && rows[0].length === 1 ? mathGroup(rows[0][0]) : mathTable(rows, "aligned");
    const look = { display: display ? "block" : "inline", class: "maths" };
    return makeMath("math", look, content);
  } catch (problem) {
    if (problem instanceof MathsError) return null;
    throw problem;
  }
}

/** One element for what stands together. */
function mathGroup(nodes) {
  return nodes.length === 1 ? nodes[0] : makeMath("mrow", {}, nodes);
}

function mathTable(rows, look) {
  return makeMath("mtable", { class: look, displaystyle: String(look === "aligned") },
    rows.map((cells) => makeMath("mtr", {}, cells.map((cell) => makeMath("mtd", {}, cell)))));
}

/** Cells between & and lines between \\, up to \end of the environment. */
function mathRows(reader, environment) {
  const rows = [[[]]];
  while (true) {
    const token = reader.tokens[reader.at];
    if (token === undefined) {
      if (environment) throw new MathsError();
      break;
    }
    if (token === "&") rows.at(-1).push([]);
    else if (token === "\\\\" || token === "\\newline") rows.push([[]]);
    else if (token === "\\end") {
      reader.at += 1;
      if (!environment || plainArgument(reader) !== environment) throw new MathsError();
      break;
    } else {
      rows.at(-1).at(-1).push(...mathScripted(reader));
      continue;
    }
    reader.at += 1;
  }
  if (rows.length > 1 && rows.at(-1).every((cell) => !cell.length)) rows.pop();
  return rows;
}

/** What stands up to a token that closes. */
function mathUntil(reader, close) {
  const nodes = [];
  if ((reader.depth += 1) > DEEPEST_MATHS) throw new MathsError();
  while (reader.tokens[reader.at] !== close) {
    const token = reader.tokens[reader.at];
    if (token === undefined || token === "}") throw new MathsError();
    if (token === "\\over" || token === "\\choose") return [mathInfix(reader, nodes, token, close)];
    nodes.push(...mathScripted(reader));
  }
  reader.at += 1;
  reader.depth -= 1;
  return nodes;
}

/** {a \over b} and {a \choose b}. */
function mathInfix(reader, over, token, close) {
  reader.at += 1;
  const below = mathGroup(mathUntil(reader, close));
  reader.depth -= 1;
  if (token === "\\over") return makeMath("mfrac", {}, mathGroup(over), below);
  return makeMath("mrow", {}, makeMath("mo", {}, "("), makeMath("mfrac", { linethickness: "0" }, mathGroup(over), below), makeMath("mo", {}, ")"));
}

/** An atom with what stands above and below it; nothing for a space. */
function mathScripted(reader) {
  const first = reader.tokens[reader.at];
  let base = first === "^" || first === "_" ? makeMath("mrow") : mathAtom(reader);
  if (base === null) return [];
  const scripts = {};
  while (true) {
    while (/^\s+$/.test(reader.tokens[reader.at] ?? "")) reader.at += 1;
    const token = reader.tokens[reader.at];
    if (token === "\\limits" || token === "\\nolimits") reader.at += 1;
    else if (token === "'") {
      reader.at += 1;
      scripts["^"] = mathGroup([...(scripts["^"] ? [scripts["^"]] : []), makeMath("mo", {}, "′")]);
    } else if ((token === "^" || token === "_") && !scripts[token]) {
      reader.at += 1;
      scripts[token] = mathArgument(reader);
    } else break;
  }
  const { "^": above, _: below } = scripts;
  if (!above && !below) return [base];
  const stacked = base.dataset?.limits === "stack" && (reader.display || base.dataset.always);
  const tags = stacked ? ["munderover", "munder", "mover"] : ["msubsup", "msub", "msup"];
  if (above && below) return [makeMath(tags[0], {}, base, below, above)];
  return [makeMath(below ? tags[1] : tags[2], {}, base, below ?? above)];
}

/** The argument of a command: a group or one atom. */
function mathArgument(reader) {
  while (/^\s+$/.test(reader.tokens[reader.at] ?? "")) reader.at += 1;
  const node = reader.at < reader.tokens.length ? mathAtom(reader) : null;
  if (node === null) throw new MathsError();
  return node;
}

/** The letters of a group, in which nothing is read. */
function plainArgument(reader, [open, close] = ["{", "}"]) {
  while (/^\s+$/.test(reader.tokens[reader.at] ?? "")) reader.at += 1;
  if (reader.tokens[reader.at] !== open) throw new MathsError();
  const from = (reader.at += 1);
  for (let depth = 1; ; reader.at += 1) {
    const token = reader.tokens[reader.at];
    if (token === undefined) throw new MathsError();
    if (token === open) depth += 1;
    else if (token === close && (depth -= 1) === 0) break;
  }
  reader.at += 1;
  return reader.tokens.slice(from, reader.at - 1).join("");
}

/** @returns {Element | null}  null for what is not drawn */
function mathAtom(reader) {
  const token = reader.tokens[reader.at];
  reader.at += 1;
  if (/^\s/.test(token)) return null;
  if (token === "{") return mathGroup(mathUntil(reader, "}"));
  if (token === "}" || token === "&" || token === "^" || token === "_" || token === "$") throw new MathsError();
  if (token === "~") return mathSpace(0.25);
  if (token.startsWith("\\")) return mathCommand(reader, token.slice(1).replace(/\*$/, ""));
  if (/^\d/.test(token)) return makeMath("mn", {}, [...token].map((digit) => inAlphabet(digit, reader.alphabet)).join(""));
  if (/^\p{L}/u.test(token)) return mathLetter(token, reader);
  return mathSign(token === "-" ? "−" : token === "*" ? "∗" : token);
}

function mathLetter(letter, reader) {
  if (reader.alphabet === null) return makeMath("mi", { mathvariant: "normal" }, letter);
  return makeMath("mi", {}, inAlphabet(letter, reader.alphabet));
}

function inAlphabet(letter, alphabet) {
  if (!alphabet) return letter;
  const [upper, lower, digit, others] = alphabet;
  if (Object.hasOwn(others, letter)) return others[letter];
  if (/[A-Z]/.test(letter)) return String.fromCodePoint(upper + letter.charCodeAt(0) - 65);
  if (/[a-z]/.test(letter)) return String.fromCodePoint(lower + letter.charCodeAt(0) - 97);
  return digit && /\d/.test(letter) ? String.fromCodePoint(digit + Number(letter)) : letter;
}

/** Signs are as large as letters, unless \left and \right say so. */
function mathSign(sign, look = {}) {
  return makeMath("mo", { stretchy: "false", ...look }, sign);
}

/** Words; spaces at their ends would be dropped. */
function mathText(words) {
  return makeMath("mtext", {}, words.replaceAll(" ", "\u00a0"));
}

function mathSpace(width) {
  return makeMath("mspace", { width: `${width}em` });
}

function mathCommand(reader, name) {
  if (Object.hasOwn(MATHS_LETTERS, name)) return makeMath("mi", {}, MATHS_LETTERS[name]);
  if (Object.hasOwn(MATHS_LINES, name)) return makeMath("mrow", { class: MATHS_LINES[name] }, mathArgument(reader));
  if (Object.hasOwn(MATHS_SIGNS, name)) return mathSign(MATHS_SIGNS[name]);
  if (Object.hasOwn(MATHS_SUMS, name)) return makeMath("mo", { "data-limits": "stack" }, MATHS_SUMS[name]);
  if (Object.hasOwn(MATHS_INTEGRALS, name)) return makeMath("mo", {}, MATHS_INTEGRALS[name]);
  if (Object.hasOwn(MATHS_SPACES, name)) return mathSpace(MATHS_SPACES[name]);
  if (Object.hasOwn(MATHS_ACCENTS, name)) {
    const base = mathArgument(reader);
    return makeMath("mover", { accent: "true", "data-limits": "stack", "data-always": "yes" }, base, makeMath("mo", {}, MATHS_ACCENTS[name]));
  }
  if (Object.hasOwn(MATHS_BELOW, name)) {
    const base = mathArgument(reader);
    return makeMath("munder", { "data-limits": "stack", "data-always": "yes" }, base, makeMath("mo", {}, MATHS_BELOW[name]));
  }
  if (Object.hasOwn(MATHS_ALPHABETS, name)) return mathInAlphabet(reader, name);
  if (MATHS_FUNCTIONS.has(name)) return makeMath("mo", MATHS_NAME_LOOK, name);
  if (MATHS_LIMITS.has(name)) return makeMath("mo", { "data-limits": "stack", ...MATHS_NAME_LOOK }, name);
  if (MATHS_TEXT.has(name)) return mathText(plainArgument(reader).replace(/\$|\\(?=[$%&#_{}])/g, ""));
  if (/^[%$#&_]$/.test(name)) return mathText(name);
  if (MATHS_IGNORED.has(name)) return null;
  if (MATHS_BIG.test(name)) return mathDelimiter(reader, { minsize: "1.4em", stretchy: "true" });
  const read = MATHS_COMMANDS[name];
  if (!Object.hasOwn(MATHS_COMMANDS, name)) throw new MathsError();
  return read(reader);
}

function mathInAlphabet(reader, name) {
  const outer = reader.alphabet;
  reader.alphabet = MATHS_ALPHABETS[name];
  const node = mathArgument(reader);
  reader.alphabet = outer;
  // A word set upright is one name.
  const letters = [...node.querySelectorAll("mi")].map((letter) => letter.textContent).join("");
  return MATHS_ALPHABETS[name] === null && letters === node.textContent
    ? makeMath("mi", { mathvariant: "normal" }, letters) : node;
}

function mathDelimiter(reader, look) {
  const token = reader.tokens[reader.at] ?? "";
  reader.at += 1;
  const name = token.replace(/^\\/, "");
  const sign = token === "." ? "" : token.startsWith("\\") ? MATHS_SIGNS[name] : token;
  if (sign === undefined || [...sign].length > 1 || /[\w\s\\{}&^_]/.test(token.startsWith("\\") ? "" : token)) throw new MathsError();
  return makeMath("mo", { fence: "true", ...look }, sign);
}

function mathFenced(reader) {
  const nodes = [mathDelimiter(reader, { stretchy: "true", form: "prefix" })];
  if ((reader.depth += 1) > DEEPEST_MATHS) throw new MathsError();
  while (reader.tokens[reader.at] !== "\\right") {
    if (reader.at >= reader.tokens.length) throw new MathsError();
    if (reader.tokens[reader.at] === "\\middle") {
      reader.at += 1;
      nodes.push(mathDelimiter(reader, { stretchy: "true" }));
    } else nodes.push(...mathScripted(reader));
  }
  reader.at += 1;
  reader.depth -= 1;
  return makeMath("mrow", {}, nodes, mathDelimiter(reader, { stretchy: "true", form: "postfix" }));
}

function mathEnvironment(reader) {
  const environment = plainArgument(reader);
  const name = environment.replace(/\*$/, "");
  if ((reader.depth += 1) > DEEPEST_MATHS) throw new MathsError();
  if (name === "array" || name === "alignat") plainArgument(reader);
  const isKnown = MATHS_ROWS.has(name) || Object.hasOwn(MATHS_FENCES, name);
  if (!isKnown) throw new MathsError();
  const rows = mathRows(reader, environment);
  reader.depth -= 1;
  if (MATHS_ROWS.has(name)) return mathTable(rows, "aligned");
  const [open, close] = MATHS_FENCES[name].map((sign) => sign && makeMath("mo", { fence: "true", stretchy: "true" }, sign));
  return makeMath("mrow", {}, open, mathTable(rows, name === "cases" ? "cases" : "matrix"), close);
}

function mathFraction(reader) {
  const over = mathArgument(reader);
  return makeMath("mfrac", {}, over, mathArgument(reader));
}

function mathRoot(reader) {
  let index = null;
  if (reader.tokens[reader.at] === "[") {
    reader.at += 1;
    index = mathGroup(mathUntil(reader, "]"));
  }
  const base = mathArgument(reader);
  return index ? makeMath("mroot", {}, base, index) : makeMath("msqrt", {}, base);
}

function mathBinomial(reader) {
  const over = mathArgument(reader);
  return makeMath("mrow", {}, makeMath("mo", {}, "("), makeMath("mfrac", { linethickness: "0" }, over, mathArgument(reader)), makeMath("mo", {}, ")"));
}

/** What stands above or below: the argument first, then the base. */
function mathStacked(tag) {
  return (reader) => {
    const script = mathArgument(reader);
    return makeMath(tag, {}, mathArgument(reader), script);
  };
}

function mathColoured(reader) {
  plainArgument(reader);
  return mathArgument(reader);
}

const MATHS_COMMANDS = {
  frac: mathFraction, dfrac: mathFraction, tfrac: mathFraction, cfrac: mathFraction,
  binom: mathBinomial, dbinom: mathBinomial, tbinom: mathBinomial,
  sqrt: mathRoot,
  left: mathFenced,
  begin: mathEnvironment,
  overset: mathStacked("mover"), stackrel: mathStacked("mover"), underset: mathStacked("munder"),
  xrightarrow: (reader) => makeMath("mover", {}, makeMath("mo", { stretchy: "true" }, "→"), mathArgument(reader)),
  xleftarrow: (reader) => makeMath("mover", {}, makeMath("mo", { stretchy: "true" }, "←"), mathArgument(reader)),
  boxed: (reader) => makeMath("mrow", { class: "boxed" }, mathArgument(reader)),
  fbox: (reader) => makeMath("mrow", { class: "boxed" }, mathArgument(reader)),
  not: (reader) => mathSign(`${mathArgument(reader).textContent.slice(0, 1)}\u0338`),
  pmod: (reader) => makeMath("mrow", {}, mathSpace(0.5), mathSign("("), makeMath("mi", { mathvariant: "normal" }, "mod"), mathSpace(0.25), mathArgument(reader), mathSign(")")),
  mod: () => makeMath("mrow", {}, mathSpace(0.5), makeMath("mi", { mathvariant: "normal" }, "mod"), mathSpace(0.25)),
  textcolor: mathColoured,
  color: (reader) => (plainArgument(reader), null),
  phantom: (reader) => makeMath("mphantom", {}, mathArgument(reader)),
  substack: (reader) => mathArgument(reader),
  tag: (reader) => mathText(` (${plainArgument(reader)})`),
  label: (reader) => (plainArgument(reader), null),
  hspace: (reader) => (plainArgument(reader), mathSpace(1)),
};
