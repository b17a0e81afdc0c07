"""Missing fields of samples: letters, positions, outcomes and hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from forgetmap.records import (
    FAILED,
    MISSING,
    HashColumn,
    Outcome,
    option_text,
    options_hashes,
    text_hash,
    text_hashes,
)
from forgetmap.sources.adapter import Sample, Score

SHA256_DIGITS = 64
HASH_DIGITS = 15
"""Hexadecimal digits kept of a hash: as many as fit into a signed 64-bit integer."""
CONTENT = ("question_hash", "options_hash", "gold_hash")
"""Columns of hashes that identify an item."""
HASHED = (*CONTENT, "prompt_hash")
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


def settle_answers(sample: Sample) -> None:
    """Complete a sample: letters become options, and indices and outcomes are filled in."""
    options = sample.options
    if options:
        if sample.gold_index is not None and 0 <= sample.gold_index < len(options):
            sample.gold = options[sample.gold_index]
        elif sample.gold is not None:
            sample.gold = option_text(sample.gold, options)
            sample.gold_index = options.index(sample.gold) if sample.gold in options else None
        if sample.choice is not None and sample.choice not in options:
            sample.choice = option_text(sample.choice, options)
        if sample.k is None and len(options) > 1:
            sample.k = len(options)
    for score in sample.scores:
        if score.value is None or score.outcome is not None:
            _settle_outcome(score)
    if sample.response:
        _settle_reasons(sample)


def _settle_outcome(score: Score) -> None:
    """Replace an outcome that contradicts the value."""
    outcome = score.outcome
    if score.value is None:
        score.outcome = outcome if outcome in MISSING else Outcome.UNSCORED
    elif outcome is not None and (outcome in MISSING or (outcome in FAILED and score.value)):
        score.outcome = None


def _settle_reasons(sample: Sample) -> None:
    """Set the outcome of answers with score 0 for which the harness gives no reason."""
    wrong = [s for s in sample.scores if s.value == 0 and s.outcome in (None, Outcome.INCORRECT)]
    if wrong:
        from forgetmap.sources.reasons import why_wrong  # large

        reason = why_wrong(sample)
        for score in wrong:
            score.outcome = reason or score.outcome


def hash_samples(samples: Sequence[Sample]) -> dict[str, HashColumn]:
    """Return the hashes of samples by the names of their columns."""
    columns = {
        "question_hash": text_hashes([sample.question for sample in samples]),
        "options_hash": options_hashes([sample.options for sample in samples]),
        "gold_hash": text_hashes([sample.gold for sample in samples]),
    }
    keys = [sample.prompt_key for sample in samples]
    if None in keys:
        prompts = text_hashes([None if s.prompt_key else s.prompt for s in samples])
        for row, key in enumerate(keys):
            if key is not None:
                prompts.values[row], prompts.known[row] = _key_hash(key), True
    else:
        numbers = np.array([_key_hash(key) for key in keys if key is not None])
        prompts = HashColumn(numbers, np.ones(len(keys), bool))
    return {**columns, "prompt_hash": prompts}


def contents(hashes: Mapping[str, HashColumn]) -> npt.NDArray[np.uint64]:
    """Return a number for each sample that distinguishes items with the same id."""
    first, *others = (
        hashes[name].values.view(np.uint64) * np.uint64(factor)
        for name, factor in zip(CONTENT, _FACTORS, strict=True)
    )
    return sum(others, start=first)


def _key_hash(key: str) -> int:
    """Return a number for a key: the first digits of a SHA-256 hash, else a hash of the text."""
    if len(key) == SHA256_DIGITS:
        try:
            return int(key[:HASH_DIGITS], 16)
        except ValueError:
            pass
    return text_hash(key)
