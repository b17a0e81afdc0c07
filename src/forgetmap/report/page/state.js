// What the reader chose. It lives in the address, so that a link shows the same.

/**
 * @typedef {Object} State
 * @property {number} comparison  index in the payload
 * @property {string} estimator
 * @property {string} scale
 * @property {string} by  which groups the table shows
 * @property {string} theme  "light", "dark", or "" to follow the system
 * @property {string} task  filters of the flip browser; "" is any
 * @property {string} category
 * @property {string} metric
 * @property {string} transition
 * @property {string} reason
 * @property {string} q  free text
 * @property {string} sort
 * @property {number} page
 * @property {string} capability  the one that is open, or ""
 * @property {string} texts  "raw" shows Markdown and LaTeX as they are written
 * @property {string} item  key of the open item, or ""
 */

/** @type {State} */
const FIRST_STATE = {
  comparison: 0,
  estimator: "flips",
  scale: "items",
  by: "",
  theme: "",
  task: "",
  category: "",
  metric: "",
  transition: "",
  reason: "",
  q: "",
  sort: "",
  page: 0,
  capability: "",
  texts: "",
  item: "",
};
const FILTERS = ["task", "category", "metric", "transition", "reason", "q"];

/** @returns {State} */
function stateFrom(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...FIRST_STATE };
  for (const [name, first] of Object.entries(FIRST_STATE)) {
    const value = parameters.get(name);
    if (value === null) continue;
    state[name] = typeof first === "number" ? wholeNumber(value) : value;
  }
  return state;
}

function wholeNumber(text) {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

/** The address of a state: only what differs from the first one. */
function hashOf(state) {
  const changes = Object.entries(state).filter(([name, value]) => value !== FIRST_STATE[name]);
  return `#${new URLSearchParams(changes.map(([name, value]) => [name, String(value)]))}`;
}

function currentState() {
  return stateFrom(location.hash);
}

/** Change the address; the page follows it. Only what `opens` something can be gone back from. */
function goTo(change, opens = false) {
  const hash = hashOf({ ...currentState(), ...change });
  if (opens) location.hash = hash;
  else location.replace(hash);
}

/** Whether any of these differ. */
function differs(one, other, names) {
  return !one || names.some((name) => one[name] !== other[name]);
}
