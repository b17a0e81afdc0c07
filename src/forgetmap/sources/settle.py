"""Missing fields of samples: letters, positions, outcomes and hashes, by sample or by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from forgetmap.records import (
    FAILED,
    MISSING,
    HashColumn,
    Outcome,
    option_text,
    options_hash,
    text_hash,
    text_hashes,
)
from forgetmap.sources.adapter import Sample, Score
from forgetmap.sources.columns import (
    HASH_DIGITS,
    SHA256_DIGITS,
    SampleColumns,
    key_hashes,
    option_hashes,
)

MAX_ITEMS_CACHED = 1 << 15
"""Cached hashes of items without options."""
HASHED = ("question_hash", "options_hash", "gold_hash", "prompt_hash")
"""Columns of hashes; the first three identify an item."""
_FACTORS, _WORD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9), (1 << 64) - 1


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


def sample_hashes(sample: Sample) -> tuple[int | None, ...]:
    """Return the hashes of a sample in the order of `HASHED`."""
    key = sample.prompt_key
    prompt = _text_hash(sample.prompt) if key is None else _key_hash(key)
    if not sample.options:
        return *_open_hashes(sample.question, sample.gold), prompt
    question, gold = _text_hash(sample.question), _text_hash(sample.gold)
    return question, options_hash(sample.options), gold, prompt


@lru_cache(MAX_ITEMS_CACHED)
def _open_hashes(question: str | None, gold: str | None) -> tuple[int | None, None, int | None]:
    """Hash an item without options; cached, since a log repeats the item for each filter."""
    return _text_hash(question), None, _text_hash(gold)


def hash_columns(columns: SampleColumns) -> dict[str, HashColumn]:
    """Return hashes by the names of their columns."""
    hashes = {"question_hash": text_hashes(columns.question)}
    if columns.prompt_key is not None:
        hashes["prompt_hash"] = _key_hashes(columns.prompt_key)
    elif columns.prompt is not None:
        hashes["prompt_hash"] = text_hashes(columns.prompt)
    if columns.options is not None and columns.gold_index is not None:
        both = option_hashes(columns.options, columns.gold_index)
        hashes["options_hash"], hashes["gold_hash"] = both
    else:
        hashes["gold_hash"] = text_hashes(columns.gold)
    return hashes


def content_of(hashes: Sequence[int | None]) -> int:
    """Return a number that distinguishes items with the same id."""
    parts = zip(hashes, _FACTORS, strict=False)
    return sum((part or 0) * factor for part, factor in parts) & _WORD


def contents(hashes: Mapping[str, HashColumn]) -> list[int]:
    """Return `content_of` for each row."""
    parts = [
        hashes[name].values.view(np.uint64) * np.uint64(factor)
        for name, factor in zip(HASHED, _FACTORS, strict=False)
        if name in hashes
    ]
    numbers: list[int] = sum(parts[1:], start=parts[0]).tolist()
    return numbers


def settled_outcomes(columns: SampleColumns) -> list[list[Outcome | None]] | None:
    """Return for each metric the outcomes, as `settle_answers` sets them; None if unknown."""
    if columns.outcome is None and not any(columns.response or ()):
        return None
    outcomes = columns.outcome or [None] * len(columns)
    by_metric = [
        [None if value else outcome for value, outcome in zip(values, outcomes, strict=True)]
        for values in columns.values
    ]
    every = list(range(len(columns.metrics)))
    for row, response in enumerate(columns.response or ()):
        if response and any(of_metric[row] == 0 for of_metric in columns.values):
            sample = columns.sample(row, every)
            settle_answers(sample)
            for index, score in enumerate(sample.scores):
                by_metric[index][row] = score.outcome
    return by_metric


def _key_hashes(keys: Sequence[str]) -> HashColumn:
    hashes = key_hashes(keys)
    if hashes is None:
        hashes = np.array([_key_hash(key) for key in keys])
    return HashColumn(hashes, np.ones(len(keys), bool))


def _key_hash(key: str) -> int:
    """Return a number for a key: the first digits of a SHA-256 hash, else a hash of the text."""
    if len(key) == SHA256_DIGITS:
        try:
            return int(key[:HASH_DIGITS], 16)
        except ValueError:
            pass
    return text_hash(key)


def digest_of(hashes: Sequence[int | None]) -> int:
    """Combine several hashes into one number."""
    return int.from_bytes(blake2b(repr(list(hashes)).encode(), digest_size=8).digest(), "big")


def _text_hash(text: str | None) -> int | None:
    return text_hash(text) if text and not text.isspace() else None
