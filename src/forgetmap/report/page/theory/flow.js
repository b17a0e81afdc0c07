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

// Gradient of a method at a model.
function gradientOf(setting) {
  const { method, separation, share, fraction, temperature } = setting;
  const base = startOf(setting);
  const fits = {
    sft: () => (model) => forwardGradient(model, [[1, separation]]),
    replay: () => (model) => forwardGradient(model, [[fraction, 0], [1 - fraction, separation]]),
    rl: () => reverseTo(mixtureTarget(share, separation)),
    "rl-new": () => reverseTo(newTarget(separation)),
    "kl-rl": () => reverseTo(tiltedTarget(base, share, separation, 1, temperature)),
  };
  return fits[method]();
}

function reverseTo(target) {
  return (model) => reverseGradient(model, target);
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
  const gradient = gradientOf(setting);
  const move = (model) => gradient(model).map((value) => -value);
  let model = startOf(setting);
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
      const wrong = addScaled([0, 0, 0], slopes, ERROR, length);
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
    states.push(model);
  }
  return states;
}
