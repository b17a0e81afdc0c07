"""Missing fields of samples: letters, positions, outcomes and hashes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
from forgetmap.sources.adapter import Sample

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
    wrong = []
    for score in sample.scores:
        outcome = score.outcome
        if score.value is None:
            score.outcome = outcome if outcome in MISSING else Outcome.UNSCORED
            continue
        if outcome is not None and (outcome in MISSING or (outcome in FAILED and score.value)):
            score.outcome = outcome = None  # it contradicts the value
        if score.value == 0 and (outcome is None or outcome is Outcome.INCORRECT):
            wrong.append(score)
    if wrong and sample.response:  # the harness gives no reason
        from forgetmap.sources.reasons import why_wrong  # large

        reason = why_wrong(sample)
        for score in wrong:
            score.outcome = reason or score.outcome


def hash_samples(samples: Sequence[Sample]) -> tuple[dict[str, HashColumn], list[int]]:
    """Return the hashes of samples by the names of their columns, and a number for each content.

    The number distinguishes items with the same id.
    """
    count = len(samples)
    both = text_hashes([s.question for s in samples] + [s.gold for s in samples])
    columns = {
        "question_hash": HashColumn(both.values[:count], both.known[:count]),
        "options_hash": options_hashes([sample.options for sample in samples]),
        "gold_hash": HashColumn(both.values[count:], both.known[count:]),
    }
    numbers = sum(
        columns[name].values.view(np.uint64) * np.uint64(factor)
        for name, factor in zip(CONTENT, _FACTORS, strict=True)
    )
    prompts = text_hashes([None if sample.prompt_key else sample.prompt for sample in samples])
    for row, sample in enumerate(samples):
        if sample.prompt_key is not None:
            prompts.values[row], prompts.known[row] = _key_hash(sample.prompt_key), True
    return {**columns, "prompt_hash": prompts}, np.asarray(numbers).tolist()


def _key_hash(key: str) -> int:
    """Return a number for a key: the first digits of a SHA-256 hash, else a hash of the text."""
    if len(key) == SHA256_DIGITS:
        try:
            return int(key[:HASH_DIGITS], 16)
        except ValueError:
            pass
    return text_hash(key)
