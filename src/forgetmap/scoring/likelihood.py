"""Which option a model finds most likely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from forgetmap.errors import UsageError
from forgetmap.records import Outcome
from forgetmap.scoring.grades import Judged, failed, graded, undecided
from forgetmap.scoring.options import right_options

Normalise = Literal["none", "tokens", "chars"]
"""What a log-likelihood is divided by, so that long options do not lose for their length."""


def choose(
    logprobs: Sequence[float],
    tokens: Sequence[int],
    options: Sequence[str],
    *,
    gold: str,
    also_right: Sequence[str] = (),
    normalise: Normalise = "none",
) -> Judged:
    """The most likely option, judged.

    If several different options share the first place, none was chosen: taking the first of them
    would be a preference for a letter that the model does not have.

    Args:
        logprobs: sum of the log-probabilities of each option.
        tokens: how many tokens each option has.
        options: as shown, in order.
        gold: text of the right option.
        also_right: texts of further right options.
        normalise: by nothing, by tokens, or by characters of the option's text.

    Returns:
        The verdict; a value that is no number makes it missing, never wrong.
    """
    right = right_options(tuple(options), gold, tuple(also_right))
    if not len(logprobs) == len(tokens) == len(options):
        raise UsageError(
            f"{len(logprobs)} log-likelihoods and {len(tokens)} lengths for {len(options)} options",
            hint="pass one of each per option, in the order of the options.",
        )
    if any(math.isnan(value) or value == math.inf for value in logprobs):
        return undecided("a log-likelihood is not a number")
    if normalise == "tokens" and min(tokens) < 1:
        return undecided("an option has no tokens")
    lengths = _lengths(tokens, options, normalise)
    values = [value / length for value, length in zip(logprobs, lengths, strict=True)]
    best = max(values)
    chosen = [place for place, value in enumerate(values) if value == best]
    if len({options[place] for place in chosen}) > 1:
        return failed(Outcome.NO_ANSWER)
    choice = options[chosen[0]]
    return graded(choice, right=chosen[0] in right, choice=choice)


def _lengths(tokens: Sequence[int], options: Sequence[str], by: Normalise) -> list[int]:
    if by == "tokens":
        return list(tokens)
    if by == "chars":
        return [max(len(option), 1) for option in options]
    return [1] * len(options)
