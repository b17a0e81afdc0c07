// Numbers and foreign texts as people read them.

const HIDDEN_CHARACTERS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Text from outside with what drives a terminal or turns the reading direction made visible.
 * @param {string} text
 */
function visible(text) {
  return text.replace(HIDDEN_CHARACTERS, (character) => {
    const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}

/**
 * A share; a dash where there is none, and never a false 0% or 100%.
 * @param {number | null | undefined} value
 * @returns {string}
 */
function percent(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0) {
    const text = percent(-value);
    return text.startsWith("<") ? `>−${text.slice(1)}` : `−${text}`;
  }
  const text = (100 * value).toFixed(1);
  if (value > 0 && Number(text) === 0) return "<0.1%";
  if (value < 1 && Number(text) === 100) return ">99.9%";
  return `${text}%`;
}

/** A setting such as a margin, as it was typed: 2%, not 2.0%. */
function settingPercent(value) {
  return `${Number((100 * value).toPrecision(6))}%`;
}

/** A number between 0 and 1: what is beyond is cut off where it is shown, and that is said. */
function clipped(value) {
  return value === null || value === undefined ? value : Math.min(Math.max(value, 0), 1);
}

/** A share of all items as it is shown. */
function share(value) {
  return percent(clipped(value));
}

/** A change of a share, with its sign; rounded, or floats would make a change of nothing. */
function signedPercent(value) {
  const change = value === null ? null : Math.round(value * 1e9) / 1e9;
  return `${change > 0 ? "+" : ""}${percent(change)}`;
}

/** @param {number} number */
function counted(number) {
  return number.toLocaleString("en-US");
}

/**
 * The start of a text, on one line.
 * @param {string} text
 * @param {number} most
 */
function snippet(text, most) {
  const line = text.slice(0, 2 * most).replace(/\s+/g, " ").trim();
  return line.length > most || text.length > 2 * most ? `${line.slice(0, most)}…` : line;
}

/** A name that people see, also where it is only spaces. */
function visibleName(name) {
  return String(name).trim() ? name : `“${name}”`;
}

/** Whether two texts are the same but for case and spaces. */
function sameText(one, other) {
  const plain = (text) => String(text).trim().replace(/\s+/g, " ").toLowerCase();
  return plain(one) === plain(other);
}
