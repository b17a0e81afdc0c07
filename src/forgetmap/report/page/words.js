// Names for people, and what to do about a warning.

// ESTIMATORS, name -> label, comes from the table of estimators: see html/shell.py.
const SCALES = {
  items: "share of all items",
  right_before: "share of what was right before (gained: wrong before)",
};
/** Direction of an estimate -> what was counted, which is also how it looks. */
const DIRECTIONS = { forgetting: "forgotten", backward_transfer: "gained" };
const TRANSITIONS = { forgotten: "forgotten", gained: "gained", kept: "kept", never: "never right", less: "less", more: "more" };
const REASONS = {
  wrong: "wrong answer",
  incorrect: "wrong answer",
  partial: "partly right",
  correct: "right",
  no_answer: "no answer found",
  refused: "refused",
  truncated: "cut at the token limit",
  degenerate: "endless repetition",
  misread: "right, but not extracted",
  unknown: "not recorded",
  error: "failed: missing, not wrong",
  unscored: "not scored: missing, not wrong",
};
const DRIFT_LEVELS = { capability: "capability", metric: "metric", group: "group", deep_dive: "deep dive" };
const LEVELS = {
  model: "model",
  stage: "stage",
  category: "category",
  task: "task",
  tag: "tag",
};
const ADVICE = {
  one_sided: "Evaluate both models on the same items, or interpret the numbers for the common items only.",
  conflict: "Check that both sides used the same version of the data.",
  duplicates: "Remove repeated questions from the task, or give each a unique id.",
  unscored: "Find out why they failed and evaluate them again.",
  prompts: "Evaluate both models with the same prompt before blaming the training.",
  thin_task: "Exclude these tasks, or evaluate the missing items.",
  lopsided: "Shuffle the options, then evaluate again.",
  options_vary: "Check the number of options of these items.",
  options_doubted: "Check the number of options of these items.",
  template: "Use the same chat template on both sides.",
  system_prompt: "Use the same system prompt on both sides.",
  protocol: "Use the same prompts for both models.",
  harness: "Use one version of one harness for both models.",
  decoding: "Use the same decoding settings on both sides.",
  n_shot: "Use the same number of examples on both sides.",
  metric: "Choose one metric for both sides.",
  sampled: "Evaluate each model several times: repeats show what is noise.",
  copies: "Answer again with another seed, batch order or engine.",
  identical: "Check that these are two runs of two models.",
  repeats: "Answer every item equally often on both sides.",
  loosened: "Check that some of these items are the same on both sides.",
  problems: "Check the rows that could not be read.",
  unknown_tasks: "Rename the task as in the taxonomy, or add it to your own taxonomy.",
  reading: "Check the log it was read from.",
  unpaired: "Evaluate both models on the same items.",
  constant: "Exclude this metric, or check that its scorer reads these responses.",
  few_items: "Evaluate more items before acting on this metric.",
  failures: "Read some of these answers: the format may have changed, not the ability.",
  errors: "Find out why scoring failed, and score again.",
  scorers: "Score both models with the same scorer.",
  averages: "Use responses or scores instead of averages to get intervals, tests and flips.",
  zero: "Read the change in points instead.",
  tiny: "Evaluate more items; `forgetmap plan` shows how many.",
  below_chance: "Check the prompt and the extraction of answers before interpreting these.",
  ceiling: "Use harder items; there is little left to gain here.",
  failures_differ: "Read some of the failed answers; fix the prompt, the limit or the extraction.",
  log: "Check the log it was read from.",
};
const REDACTED = "Texts of items are left out or redacted in this report.";
const OTHER_ADVICE = "Check the affected items before you act on the numbers.";

/** What people call something; foreign names stay as they are. */
function labelFor(names, name) {
  return Object.hasOwn(names, name) ? names[name] : name;
}

/**
 * Limits in words.
 * @param {{low: number | null, high: number | null}} limits
 */
function limitsOf({ low, high }) {
  return low === null || high === null ? "–" : `${share(low)} to ${share(high)}`;
}
