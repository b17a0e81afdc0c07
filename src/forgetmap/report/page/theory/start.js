// Controls, and what they change.

const METHODS = {
  sft: "Fine-tuning on new data",
  replay: "Fine-tuning with replay",
  rl: "RL toward old and new",
  "rl-new": "RL toward new alone",
  "kl-rl": "RL with a KL penalty",
  sdft: "Self-distillation (SDFT)",
  "ttt-discover": "TTT-Discover",
  oapl: "OAPL",
};
const SLIDERS = [
  { name: "separation", title: "Separation of the modes", from: 1, to: 9, step: 0.1, value: 4 },
  { name: "start", title: "Old weight before", from: 0.05, to: 0.95, step: 0.01, value: 0.5 },
  { name: "share", title: "Old weight of the true target", from: 0.05, to: 0.95, step: 0.01, value: 0.5 },
  { name: "offset", title: "Start of the new component, below its mode", from: -1, to: 3, step: 0.1, value: 1 },
  { name: "fraction", title: "Replayed fraction", from: 0.01, to: 0.9, step: 0.01, value: 0.1, only: ["replay"] },
  { name: "gap", title: "Reward of new minus old", from: 0, to: 5, step: 0.1, value: 1, only: ["kl-rl", "ttt-discover", "oapl"] },
  { name: "temperature", title: "Temperature of the penalty", from: 0.2, to: 5, step: 0.1, value: 1, only: ["kl-rl", "oapl"] },
  { name: "eta", title: "Inverse temperature of the utility", from: 0.1, to: 10, step: 0.1, value: 2, only: ["ttt-discover"] },
  { name: "strength", title: "Strength of the KL penalty", from: 0, to: 3, step: 0.05, value: 0.5, only: ["ttt-discover"] },
  { name: "anchor", title: "Anchor of the teacher to demonstrations", from: 0, to: 1, step: 0.01, value: 0.2, only: ["sdft"] },
  { name: "refresh", title: "Rate of the teacher's moving average", from: 0.01, to: 1, step: 0.01, value: 0.2, only: ["sdft"] },
  { name: "demo", title: "Old weight of the demonstrator", from: 0.02, to: 0.98, step: 0.01, value: 0.3, only: ["sdft"] },
  { name: "when", title: "Time shown, as a share of the run", from: 0, to: 1, step: 0.01, value: 1 },
];
const LAST = 3;
const TIMES = Array.from({ length: 81 }, (_, k) => 10 ** (-1 + ((LAST + 1) * k) / 80));
const REFRESHES = Array.from({ length: 10 }, (_, k) => k + 1);
const ROWS = 10;

// OAPL counts refreshes of its lagged policy, all others time.
function momentsOf({ method }) {
  return method === "oapl" ? REFRESHES : TIMES;
}

function addControls(form, changed) {
  const label = document.createElement("label");
  label.textContent = "Method";
  const select = document.createElement("select");
  select.name = "method";
  for (const [value, text] of Object.entries(METHODS)) select.append(new Option(text, value));
  label.append(select);
  form.append(label);
  for (const options of SLIDERS) form.append(slider(options));
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
}

function slider({ name, title, from, to, step, value }) {
  const label = document.createElement("label");
  const output = document.createElement("output");
  const input = document.createElement("input");
  Object.assign(input, { type: "range", name, min: from, max: to, step });
  input.value = value;
  label.append(title, output, input);
  return label;
}

function settingOf(form) {
  const setting = { method: form.elements.method.value };
  for (const { name, only } of SLIDERS) {
    const input = form.elements[name];
    setting[name] = Number(input.value);
    input.previousElementSibling.textContent = input.value;
    input.parentElement.hidden = Boolean(only) && !only.includes(setting.method);
  }
  return setting;
}

let cache = { key: "", states: null };

// The states of a setting; only a moved parameter, not the moment shown, computes them anew.
function statesOf(setting) {
  const { when, ...parameters } = setting;
  const key = JSON.stringify(parameters);
  if (cache.key !== key) {
    cache = { key, states: follow(parameters, momentsOf(parameters)) };
    drawFour(parameters);
  }
  return cache.states;
}

function show(form) {
  const setting = settingOf(form);
  const states = statesOf(setting);
  const outcome = document.getElementById("outcome");
  outcome.classList.toggle("problem", states === null);
  if (states === null) {
    outcome.textContent = "The simulation failed for these parameters: change the separation or the temperature.";
    return;
  }
  const all = [startOf(setting), ...states];
  const times = [0, ...momentsOf(setting)];
  const counts = setting.method === "oapl";
  const index = Math.round(setting.when * (all.length - 1));
  const first = oldMass(all[0], setting.separation);
  const shareLeft = oldMass(all[index], setting.separation) / first;
  const when = Number(times[index].toPrecision(3));
  outcome.textContent = `${counts ? `After ${when} refreshes` : `At time ${when}`}, ${(100 * shareLeft).toFixed(1)}% of the old mass is left; ` +
    `the old component has moved by ${drift(all[index], setting.separation).toFixed(3)}.`;
  drawAll(setting, all, times, index);
  writeNumbers(setting, all, times);
  document.body.dataset.ready = cache.key;
}

// A model's density as points, from beyond one mode to beyond the other.
function curveOver(separation, steps) {
  const line = Array.from({ length: steps + 1 }, (_, k) => -4 + (k * (separation + 8)) / steps);
  return (model) => line.map((x) => [x, density(x, model)]);
}

// Width of a chart alone in its row, and of one of two where there is room for two.
function widthsIn(box) {
  const full = Math.max(280, box.clientWidth);
  return { full, half: full > 680 ? (full - 16) / 2 : full };
}

// The axis of a chart over time: powers of ten, or refreshes.
function timeAxis(setting) {
  if (setting.method === "oapl") {
    return { x: { from: 1, to: REFRESHES.length, title: "refreshes" }, along: REFRESHES, logarithmic: false };
  }
  return { x: { from: -1, to: LAST, title: "time" }, along: TIMES.map(Math.log10), logarithmic: true };
}

function drawAll(setting, all, times, index) {
  const { separation, share } = setting;
  const goal = [logit(share), 0, separation];
  const curve = curveOver(separation, 240);
  const top = Math.max(...[all[0], all[index], goal].flatMap((model) => curve(model).map(([, y]) => y)));
  const shapes = [
    { kind: "target", points: curve(goal) },
    { kind: "before", points: curve(all[0]) },
    { kind: "now", points: curve(all[index]) },
  ];
  const { x: time, along, logarithmic } = timeAxis(setting);
  const over = (what) => all.slice(1).map((model, k) => [along[k], what(model, separation)]);
  const mark = index ? along[index - 1] : null;
  const weight = (model) => sigmoid(model[0]);
  const moved = over(drift);
  const most = Math.max(0.01, ...moved.map(([, value]) => value));
  const shares = [{ kind: "weight", points: over(weight) }, { kind: "mass", points: over(oldMass) }];
  const plots = document.getElementById("plots");
  const { full, half: width } = widthsIn(plots);
  const behaviour = { from: -4, to: separation + 4, title: "behaviour, in standard deviations" };
  plots.replaceChildren(
    figure(chart({ lines: shapes, x: behaviour, y: { from: 0, to: top * 1.05 }, label: "Densities", width: full }),
      "Grey area: true target. Dashed: the model before. Line: the model at this time."),
    figure(chart({ lines: shares, x: time, y: { from: 0, to: 1 }, label: "Old mass over time", logarithmic, mark, width }),
      "Mass near the old mode (line) and weight of the old component (dashed)."),
    figure(chart({ lines: [{ kind: "drift", points: moved }], x: time, y: { from: 0, to: most * 1.05 }, label: "Drift over time", logarithmic, mark, width }),
      "Distance of the old component from the old mode."),
  );
}

const FOUR = [
  ["sft", "Forward KL toward new alone"],
  ["replay", "Forward KL toward both"],
  ["rl-new", "Reverse KL toward new alone"],
  ["rl", "Reverse KL toward both"],
];

// Either direction of KL to either target, from the same start.
function drawFour(setting) {
  const { separation, share } = setting;
  const curve = curveOver(separation, 120);
  const before = startOf(setting);
  const box = document.getElementById("four");
  const { half: width } = widthsIn(box);
  const panels = FOUR.map(([method, title]) => {
    const states = follow({ ...setting, method, fraction: share }, [10 ** LAST]);
    const lines = [{ kind: "before", points: curve(before) }];
    const x = { from: -4, to: separation + 4, title: "behaviour" };
    const panel = (outcome) => figure(chart({ lines, x, y: { from: 0, to: 0.42 }, label: title, width }), `${title}: ${outcome}.`);
    if (states === null) return panel("the simulation failed");
    lines.push({ kind: "now", points: curve(states[0]) });
    const left = oldMass(states[0], separation);
    const drawing = panel(`${left.toFixed(3)} old mass left`);
    drawing.dataset.left = String(left);
    return drawing;
  });
  box.replaceChildren(...panels);
}

function writeNumbers(setting, all, times) {
  const table = document.getElementById("numbers");
  const rows = all.map((model, k) => [times[k], sigmoid(model[0]), oldMass(model, setting.separation), drift(model, setting.separation)]);
  const head = document.createElement("tr");
  for (const name of [setting.method === "oapl" ? "refreshes" : "time", "old weight", "old mass", "drift"]) head.append(cell("th", name));
  const every = Math.round(rows.length / ROWS);
  table.replaceChildren(head, ...rows.filter((_, k) => k % every === 0).map((row) => {
    const line = document.createElement("tr");
    for (const value of row) {
      const entry = cell("td", value.toPrecision(6));
      entry.dataset.value = String(value);
      line.append(entry);
    }
    return line;
  }));
}

function cell(kind, text) {
  const node = document.createElement(kind);
  node.textContent = text;
  return node;
}

const controls = document.getElementById("controls");
addControls(controls, () => show(controls));
show(controls);
window.addEventListener("resize", () => {
  cache.key = "";
  show(controls);
});
