"""Blocks of samples as columns, into which the common rows of large logs are read.

A block holds samples of the same form. Code that takes blocks must give the same result as with
the single samples of the block, which `SampleColumns.samples` returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from forgetmap.records import HashColumn, Outcome, hash_column, normalise_texts, signed_hashes
from forgetmap.sources.adapter import Sample, Score

Whole = npt.NDArray[np.int64]
SHA256_DIGITS = 64
HASH_DIGITS = 15
"""Hexadecimal digits kept of a hash: as many as fit into a signed 64-bit integer."""


class SampleColumns(msgspec.Struct, kw_only=True):
    """Samples of one task, scorer and set of metrics; all of them have options, or none has.

    Columns are named like the fields of `Sample`; a column without values is None.

    Attributes:
        repeat: repeat of all samples; None if answers to the same item are numbered in order.
        metrics: names of the metrics.
        values: for each metric, the scores of all samples.
        outcome: how each answer ended, if known.
        picks: for each metric, the indices of the chosen options; a row of the log whose metrics
            choose different options is several samples.
        choice: for each metric, the texts of these options, if reliable.
        logprob_answer: for each metric, the log-likelihoods of these options, if reliable.
    """

    task: str
    scorer: str
    metrics: Sequence[str]
    file: str
    line: Sequence[int]
    item: list[str]
    values: list[list[float]]
    question: Sequence[str | None]
    gold: list[str | None]
    repeat: int | None = 0
    prompt_key: list[str] | None = None
    category: list[str | None] | None = None
    options: list[list[str]] | None = None
    gold_index: list[int] | None = None
    answer: list[str | None] | None = None
    outcome: list[Outcome | None] | None = None
    tokens_in: list[int | None] | None = None
    tokens_out: list[int | None] | None = None
    finish_reason: list[str | None] | None = None
    logprob_gold: list[float | None] | None = None
    picks: list[list[int]] | None = None
    choice: list[list[str | None]] | None = None
    logprob_answer: list[list[float | None]] | None = None
    prompt: list[str | None] | None = None
    response: list[str | None] | None = None

    def __len__(self) -> int:
        """Number of rows of the log."""
        return len(self.item)

    @property
    def sample_count(self) -> int:
        """Number of samples; a row may be several."""
        if self.picks is None or len(self.picks) == 1:
            return len(self)
        return sum(map(len, map(set, zip(*self.picks, strict=True))))

    def groups(self, row: int) -> list[list[int]]:
        """Group the metrics of a row by the option they choose: one list of indices per sample."""
        if self.picks is None:
            return [list(range(len(self.metrics)))]
        picks = [of_metric[row] for of_metric in self.picks]
        return [
            [index for index, pick in enumerate(picks) if pick == chosen]
            for chosen in dict.fromkeys(picks)
        ]

    def samples(self) -> Iterator[Sample]:
        """Iterate over the samples."""
        for row in range(len(self)):
            for indexes in self.groups(row):
                yield self.sample(row, indexes)

    def sample(self, row: int, indexes: Sequence[int]) -> Sample:
        """Return the sample of a row with the metrics at these indexes."""
        outcome, first = _cell(self.outcome, row), indexes[0]
        return Sample(
            task=self.task,
            item=self.item[row],
            scores=[
                Score(self.metrics[index], self.values[index][row], self.scorer, outcome)
                for index in indexes
            ],
            repeat=self.repeat,
            question=self.question[row],
            options=_cell(self.options, row),
            gold=self.gold[row],
            gold_index=_cell(self.gold_index, row),
            choice=_cell(self.choice and self.choice[first], row),
            answer=_cell(self.answer, row),
            category=_cell(self.category, row),
            tokens_in=_cell(self.tokens_in, row),
            tokens_out=_cell(self.tokens_out, row),
            finish_reason=_cell(self.finish_reason, row),
            logprob_answer=_cell(self.logprob_answer and self.logprob_answer[first], row),
            logprob_gold=_cell(self.logprob_gold, row),
            prompt=_cell(self.prompt, row),
            response=_cell(self.response, row),
            prompt_key=_cell(self.prompt_key, row),
            file=self.file,
            line=self.line[row],
        )


def _cell(column: Sequence[Any] | None, row: int) -> Any:
    return None if column is None else column[row]


def option_hashes(
    options: Sequence[Sequence[str]], golds: Sequence[int]
) -> tuple[HashColumn, HashColumn]:
    """Return `records.options_hash` of each set of options, and the hash of each right option."""
    texts = list(chain.from_iterable(options))
    plain = normalise_texts(texts)
    starts = [0, *accumulate(map(len, options))]
    sets = ["\x1f".join(sorted(plain[start:end])) for start, end in pairwise(starts)]
    indexes = [start + gold for start, gold in zip(starts[:-1], golds, strict=True)]
    every = HashColumn(signed_hashes(sets), np.ones(len(sets), bool))
    return every, hash_column([plain[at] for at in indexes], [texts[at] for at in indexes])


def key_hashes(keys: Sequence[str]) -> Whole | None:
    """Return the first digits of hexadecimal SHA-256 hashes as integers; None if any is not one."""
    if set(map(len, keys)) != {SHA256_DIGITS}:
        return None
    try:
        digits = bytes.fromhex("".join([key[: HASH_DIGITS + 1] for key in keys]))
    except ValueError:
        return None
    if len(digits) != len(keys) * (HASH_DIGITS + 1) // 2:
        return None
    return (np.frombuffer(digits, ">u8") >> np.uint64(4)).astype(np.int64)
