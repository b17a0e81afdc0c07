// Two unit Gaussians on a line: densities, responsibilities, masses. A model is [b, old, new].
"use strict";

const HALF_LOG_TWO_PI = 0.5 * Math.log(2 * Math.PI);

function sigmoid(value) {
  return 1 / (1 + Math.exp(-value));
}

function logit(share) {
  return Math.log(share) - Math.log1p(-share);
}

// Log-density of the model at x, and the share of its new component there.
function logDensityAndNew(x, b, old, fresh) {
  const line = b + (old - fresh) * (x - (old + fresh) / 2);
  const small = Math.exp(-Math.abs(line));
  const logNew = -(Math.max(b, 0) + Math.log1p(Math.exp(-Math.abs(b)))) - HALF_LOG_TWO_PI;
  const log = logNew - 0.5 * (x - fresh) ** 2 + Math.max(line, 0) + Math.log1p(small);
  return [log, (line > 0 ? small : 1) / (1 + small)];
}

function density(x, model) {
  return Math.exp(logDensityAndNew(x, ...model)[0]);
}

// Distribution function of the standard Gaussian, by the continued fraction or the series.
function normalCdf(z) {
  if (z < 0) return 1 - normalCdf(-z);
  const bell = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
  if (z > 5) {
    let tail = z;
    for (let k = 60; k > 0; k -= 1) tail = z + k / tail;
    return 1 - bell / tail;
  }
  let term = z;
  let sum = z;
  for (let k = 1; k < 120; k += 1) {
    term *= (z * z) / (2 * k + 1);
    sum += term;
  }
  return 0.5 + bell * sum;
}

// Mass nearer to the old mode than to the new one.
function oldMass([b, old, fresh], separation) {
  const beta = sigmoid(b);
  const border = separation / 2;
  return beta * normalCdf(border - old) + (1 - beta) * normalCdf(border - fresh);
}

// Distance of the old component from the old mode, once components are matched to modes.
function drift([, old, fresh], separation) {
  const inOrder = Math.abs(old) + Math.abs(fresh - separation);
  const exchanged = Math.abs(fresh) + Math.abs(old - separation);
  return Math.abs(exchanged < inOrder ? fresh : old);
}
