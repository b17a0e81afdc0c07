// Gradients of the methods and the flow down them.

const STEP = 0.1;
const REACH = 9;
const NODES = Array.from({ length: Math.round((2 * REACH) / STEP) + 1 }, (_, k) => -REACH + k * STEP);
const BELL = (() => {
  const raw = NODES.map((z) => Math.exp(-0.5 * z * z));
  const sum = raw.reduce((a, b) => a + b, 0);
  return raw.map((value) => value / sum);
})();

// KL(data||model): data are [weight, mean] pairs.
function forwardGradient(model, data) {
  const [b, old, fresh] = model;
  let onOld = 0;
  let pullOld = 0;
  let mean = 0;
  for (const [weight, centre] of data) {
    mean += weight * centre;
    for (let k = 0; k < NODES.length; k += 1) {
      const x = centre + NODES[k];
      const share = weight * BELL[k] * sigmoid(b + (old - fresh) * (x - (old + fresh) / 2));
      onOld += share;
      pullOld += share * x;
    }
  }
  return [sigmoid(b) - onOld, onOld * old - pullOld, (1 - onOld) * fresh - (mean - pullOld)];
}

// KL(model||target): target(x) gives its log-density, up to a constant, and the slope of that.
function reverseGradient(model, target) {
  const [b, old, fresh] = model;
  const excess = [0, 0];
  const slope = [0, 0];
  for (let side = 0; side < 2; side += 1) {
    for (let k = 0; k < NODES.length; k += 1) {
      const x = model[1 + side] + NODES[k];
      const [log, share] = logDensityAndNew(x, b, old, fresh);
      const [goal, pull] = target(x);
      excess[side] += BELL[k] * (log - goal);
      slope[side] += BELL[k] * (old - x + share * (fresh - old) - pull);
    }
  }
  const beta = sigmoid(b);
  return [beta * (1 - beta) * (excess[0] - excess[1]), beta * slope[0], (1 - beta) * slope[1]];
}

function mixtureTarget(share, separation) {
  const b = logit(share);
  return (x) => {
    const [log, onNew] = logDensityAndNew(x, b, 0, separation);
    return [log, -x + onNew * separation];
  };
}

function newTarget(separation) {
  return (x) => [-0.5 * (x - separation) ** 2 - HALF_LOG_TWO_PI, separation - x];
}

// The base model tilted by a reward for new behaviour.
function tiltedTarget(base, share, separation, gap, temperature) {
  const odds = -logit(share);
  return (x) => {
    const [log, onNew] = logDensityAndNew(x, ...base);
    const isNew = sigmoid(odds + separation * (x - separation / 2));
    const scale = gap / temperature;
    const score = base[1] - x + onNew * (base[2] - base[1]);
    return [log + scale * isNew, score + scale * isNew * (1 - isNew) * separation];
  };
}

function startOf(setting) {
  return [logit(setting.start), 0, setting.separation - setting.offset];
}

// Reward for new behaviour: gap times how surely the true target takes x for new.
function rewardOf({ share, separation, gap }) {
  const odds = -logit(share);
  return (x) => gap * sigmoid(odds + separation * (x - separation / 2));
}

// -log E[exp(eta R)] plus strength times KL(model||base): TTT-Discover.
function entropicGradient(model, setting, pull) {
  const reward = rewardOf(setting);
  const tilt = [0, 0];
  const slope = [0, 0];
  for (let side = 0; side < 2; side += 1) {
    for (let k = 0; k < NODES.length; k += 1) {
      const value = BELL[k] * Math.exp(setting.eta * reward(model[1 + side] + NODES[k]));
      tilt[side] += value;
      slope[side] += value * NODES[k];
    }
  }
  const beta = sigmoid(model[0]);
  const both = beta * tilt[0] + (1 - beta) * tilt[1];
  const gain = [beta * (1 - beta) * (tilt[0] - tilt[1]), beta * slope[0], (1 - beta) * slope[1]];
  return pull(model).map((back, i) => setting.strength * back - gain[i] / both);
}

function targetOf(model) {
  return (x) => {
    const [log, onNew] = logDensityAndNew(x, ...model);
    return [log, model[1] - x + onNew * (model[2] - model[1])];
  };
}

// Gradient of a method at a model.
function gradientOf(setting) {
  const { method, separation, share, fraction, temperature, gap } = setting;
  const base = startOf(setting);
  const fits = {
    sft: () => (model) => forwardGradient(model, [[1, separation]]),
    replay: () => (model) => forwardGradient(model, [[fraction, 0], [1 - fraction, separation]]),
    rl: () => reverseTo(mixtureTarget(share, separation)),
    "rl-new": () => reverseTo(newTarget(separation)),
    "kl-rl": () => reverseTo(tiltedTarget(base, share, separation, gap, temperature)),
    "ttt-discover": () => {
      const pull = reverseTo(targetOf(base));
      return (model) => entropicGradient(model, setting, pull);
    },
  };
  return fits[method]();
}

function reverseTo(target) {
  return (model) => reverseGradient(model, target);
}

// What moves and where it starts. Of SDFT a student and the moving average behind its teacher, which is
// pulled toward the demonstrator, parameter by parameter.
function flowOf(setting) {
  const start = startOf(setting);
  if (setting.method !== "sdft") {
    const gradient = gradientOf(setting);
    return { start, move: (model) => gradient(model).map((value) => -value) };
  }
  const { anchor, refresh } = setting;
  const goal = [logit(setting.demo), 0, setting.separation];
  const move = (pair) => {
    const student = pair.slice(0, 3);
    const average = pair.slice(3);
    const teacher = average.map((value, i) => (1 - anchor) * value + anchor * goal[i]);
    const down = reverseGradient(student, targetOf(teacher));
    return [...down.map((value) => -value), ...average.map((value, i) => refresh * (student[i] - value))];
  };
  return { start: [...start, ...start], move };
}

// Dormand and Prince's pair, with steps that keep the error below a tolerance.
const STAGES = [
  [1 / 5],
  [3 / 40, 9 / 40],
  [44 / 45, -56 / 15, 32 / 9],
  [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
  [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
];
const ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];
const TOLERANCE = 1e-7;
const MOST_STEPS = 20000;

function addScaled(model, slopes, factors, step) {
  return model.map((value, i) => value + step * factors.reduce((sum, f, j) => sum + f * slopes[j][i], 0));
}

// States at the given times; null where the flow cannot be followed.
function follow(setting, times) {
  if (setting.method === "oapl") return refreshed(setting, times);
  const { start, move } = flowOf(setting);
  let model = start;
  let first = move(model);
  let now = 0;
  let step = times[0] / 4;
  const states = [];
  let spent = 0;
  for (const time of times) {
    while (now < time) {
      spent += 1;
      if (spent > MOST_STEPS) return null;
      const length = Math.min(step, time - now);
      const slopes = [first];
      let next = model;
      for (const factors of STAGES) {
        next = addScaled(model, slopes, factors, length);
        slopes.push(move(next));
      }
      const wrong = addScaled(model.map(() => 0), slopes, ERROR, length);
      const size = Math.max(...wrong.map((e, i) => Math.abs(e) / (TOLERANCE * (1e-2 + Math.abs(next[i])))));
      if (!Number.isFinite(size)) return null;
      if (size <= 1) {
        now = length === step ? now + length : Math.min(time, now + length);
        model = next;
        first = slopes[6];
      }
      const grown = 0.9 * (size || 1e-9) ** -0.2;
      if (size > 1 || length === step) step = length * Math.min(5, Math.max(0.2, grown));
    }
    states.push(model.slice(0, 3));
  }
  return states;
}

// Models after so many refreshes of OAPL's lagged policy, each round solved to its optimum; null where
// one has none.
function refreshed(setting, counts) {
  const states = [startOf(setting)];
  while (states.length <= counts[counts.length - 1]) {
    const next = regressionOptimum(setting, states[states.length - 1]);
    if (next === null) return null;
    states.push(next);
  }
  return counts.map((count) => states[count]);
}

// Points that the lagged policy writes: where, how often, and how far each reward is above the baseline.
function writtenBy(lagged, setting) {
  const reward = rewardOf(setting);
  const beta = sigmoid(lagged[0]);
  const points = [beta, 1 - beta].flatMap((weight, side) =>
    NODES.map((z, k) => {
      const x = lagged[1 + side] + z;
      return { x, weight: weight * BELL[k], log: logDensityAndNew(x, ...lagged)[0], reward: reward(x) };
    }));
  const { temperature } = setting;
  const tilt = points.reduce((sum, point) => sum + point.weight * Math.exp(point.reward / temperature), 0);
  const baseline = temperature * Math.log(tilt);
  for (const point of points) point.advantage = point.reward - baseline;
  return points;
}

function missAt(point, model, temperature) {
  const [log, onNew] = logDensityAndNew(point.x, ...model);
  return [temperature * (log - point.log) - point.advantage, onNew];
}

function regressionLoss(points, model, temperature) {
  return points.reduce((sum, point) => sum + point.weight * missAt(point, model, temperature)[0] ** 2, 0);
}

const MOST_ROUNDS = 300;
const STILL = 1e-11;

// Levenberg and Marquardt's steps to the least squares of the regression.
function regressionOptimum(setting, lagged) {
  const { temperature } = setting;
  const points = writtenBy(lagged, setting);
  let model = lagged;
  let loss = regressionLoss(points, model, temperature);
  let damping = 1e-3;
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const [matrix, pull] = normalEquations(points, model, temperature);
    const step = solve(matrix.map((row, i) => row.map((value, j) => (i === j ? value * (1 + damping) : value))), pull);
    if (!step.every(Number.isFinite)) return null;
    const next = model.map((value, i) => value - step[i]);
    const changed = regressionLoss(points, next, temperature);
    if (Math.max(...step.map(Math.abs)) < STILL) return model;
    if (changed <= loss) {
      [model, loss] = [next, changed];
      damping = Math.max(damping / 10, 1e-12);
    } else {
      damping *= 10;
      if (damping > 1e12) return model;
    }
  }
  return null;
}

function normalEquations(points, model, temperature) {
  const matrix = [[0, 0, 0], [0, 0, 0], [0, 0, 0]];
  const pull = [0, 0, 0];
  const beta = sigmoid(model[0]);
  for (const point of points) {
    const [miss, onNew] = missAt(point, model, temperature);
    const slopes = [1 - onNew - beta, (1 - onNew) * (point.x - model[1]), onNew * (point.x - model[2])]
      .map((value) => temperature * value);
    for (let i = 0; i < 3; i += 1) {
      pull[i] += point.weight * slopes[i] * miss;
      for (let j = 0; j < 3; j += 1) matrix[i][j] += point.weight * slopes[i] * slopes[j];
    }
  }
  return [matrix, pull];
}

// Gauss's elimination with pivots.
function solve(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  const size = rows.length;
  for (let i = 0; i < size; i += 1) {
    const best = rows.slice(i).reduce((top, row, k) => (Math.abs(row[i]) > Math.abs(rows[top][i]) ? i + k : top), i);
    [rows[i], rows[best]] = [rows[best], rows[i]];
    for (let k = i + 1; k < size; k += 1) {
      const factor = rows[k][i] / rows[i][i];
      rows[k] = rows[k].map((value, j) => value - factor * rows[i][j]);
    }
  }
  const found = Array(size).fill(0);
  for (let i = size - 1; i >= 0; i -= 1) {
    const known = found.reduce((sum, value, j) => (j > i ? sum + rows[i][j] * value : sum), 0);
    found[i] = (rows[i][size] - known) / rows[i][i];
  }
  return found;
}
