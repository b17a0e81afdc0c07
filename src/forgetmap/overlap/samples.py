"""Completions with their log-probabilities under the model before and the model after."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap._disk import CHECKSUM, read_line
from forgetmap.errors import (
    ChecksumError,
    ColumnError,
    EmptyInputError,
    FieldError,
    InputError,
    MissingInputError,
    PairingError,
    UnreadableError,
)
from forgetmap.theory import ROUNDING, check_log_probs, log_ratio

Side = Literal["before", "after"]
SIDES: tuple[Side, ...] = ("before", "after")
"""Model that wrote a completion."""
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class CompletionSample:
    """One completion of a prompt, with log-probabilities under both models.

    Attributes:
        prompt: id of the prompt.
        side: the model that wrote it.
        number: index of the completion among those of this model and prompt.
        before: log-probability of each of its tokens under the model before.
        after: the same under the model after.
        kl: at each token, KL of the next-token distribution of the writer from that of the other
            model; None if the whole distributions are not known.
        ended: it has an end token and was not cut.
        group: group of the prompt, such as `old` or `new`.
        expert: log-probability of the completion under a model of the new behaviour alone.
        tokens: token ids.
    """

    prompt: str
    side: Side
    number: int
    before: Sequence[float]
    after: Sequence[float]
    kl: Sequence[float] | None = None
    ended: bool = True
    group: str | None = None
    expert: float | None = None
    tokens: Sequence[int] | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def key(self) -> tuple[str, str, int]:
        """Unique key of the sample."""
        return self.prompt, self.side, self.number


@dataclass(frozen=True, slots=True)
class SampleTable:
    """Samples as columns.

    Attributes:
        prompts: ids of prompts; `prompt_index` points into them.
        groups: group of each prompt.
        prompt_index: prompt of each sample.
        wrote_before: whether the model before wrote it.
        ratio: log before - log after, of the whole completion.
        kl: KL of the writer from the other, summed over the tokens; NaN if not known.
        tokens: number of tokens; 0 if only sums are known.
        ended: whether it was not cut.
        expert: log before - log expert; NaN if there is none.
    """

    prompts: tuple[str, ...]
    groups: tuple[str | None, ...]
    prompt_index: Indices
    wrote_before: NDArray[np.bool_]
    ratio: Floats
    kl: Floats
    tokens: Indices
    ended: NDArray[np.bool_]
    expert: Floats

    def rows_of(self, side: Side) -> list[Indices]:
        """Return for each prompt the indices of the samples that one model wrote."""
        written = np.flatnonzero(self.wrote_before == (side == "before"))
        order = written[np.argsort(self.prompt_index[written], kind="stable")]
        ends = np.searchsorted(self.prompt_index[order], np.arange(1, len(self.prompts)))
        return np.split(order, ends)

    def of_prompts(self, chosen: Iterable[int]) -> SampleTable:
        """Return the samples of some prompts."""
        prompts = sorted(chosen)
        new = np.full(len(self.prompts), -1)
        new[prompts] = np.arange(len(prompts))
        rows = new[self.prompt_index] >= 0
        return SampleTable(
            tuple(self.prompts[index] for index in prompts),
            tuple(self.groups[index] for index in prompts),
            new[self.prompt_index[rows]],
            self.wrote_before[rows],
            self.ratio[rows],
            self.kl[rows],
            self.tokens[rows],
            self.ended[rows],
            self.expert[rows],
        )


def table_of(samples: Iterable[CompletionSample], *, first: int | None = None) -> SampleTable:
    """Return samples as columns, in the order of their keys.

    Args:
        samples: samples of any number of prompts.
        first: use only this many tokens at the start of each completion.

    Raises:
        EmptyInputError: there are none.
        PairingError: completions of one prompt were cut at different lengths.
    """
    rows = sorted(samples, key=lambda sample: sample.key)
    if not rows:
        raise EmptyInputError("There are no samples.", hint="add at least one completion.")
    if first is not None:
        rows = [_beginning(sample, first) for sample in rows]
    _check_cuts(rows)
    names = list(dict.fromkeys(sample.prompt for sample in rows))
    indices = {name: index for index, name in enumerate(names)}
    groups = {sample.prompt: sample.group for sample in rows}
    before = np.array([math.fsum(sample.before) for sample in rows])
    return SampleTable(
        tuple(names),
        tuple(groups[name] for name in names),
        np.array([indices[sample.prompt] for sample in rows]),
        np.array([sample.side == "before" for sample in rows]),
        log_ratio(before, [math.fsum(sample.after) for sample in rows]),
        np.array([np.nan if sample.kl is None else math.fsum(sample.kl) for sample in rows]),
        np.array([len(sample.before) for sample in rows]),
        np.array([sample.ended for sample in rows]),
        before - np.array([np.nan if row.expert is None else row.expert for row in rows]),
    )


def table_of_arrays(
    prompt: ArrayLike,
    wrote_before: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    *,
    kl: ArrayLike | None = None,
    tokens_before: ArrayLike | None = None,
    tokens_after: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> SampleTable:
    """Build a table from log-probabilities of whole completions, one entry per completion.

    Args:
        prompt: any label of the prompt.
        wrote_before: whether the model before (rather than the one after) wrote the completion.
        before: its log-probability under the model before, summed over tokens, end token included.
        after: the same under the model after.
        kl: KL of the writer from the other, summed over the tokens: more precise than the ratio
            alone.
        tokens_before: number of tokens of the completion for the model before.
        tokens_after: number of tokens for the model after; must be the same.
        group: group of the prompt, such as `old` and `new`.

    Raises:
        FieldError: a value is not a log-probability, or belongs to different tokens.
        EmptyInputError: there are no completions.
    """
    labels = np.asarray(prompt).ravel()
    if not labels.size:
        raise EmptyInputError("There are no samples.", hint="add at least one completion.")
    ratio = log_ratio(before, after, tokens_before, tokens_after).ravel()
    names, prompt_index = np.unique(labels, return_inverse=True)
    columns: dict[str, NDArray[Any]] = {
        "wrote_before": np.asarray(wrote_before, bool).ravel(),
        "before": ratio,
        "kl": np.full(ratio.size, np.nan) if kl is None else _checked_kl(kl),
        "tokens_before": np.zeros(ratio.size, int)
        if tokens_before is None
        else np.asarray(tokens_before).ravel(),
        "group": np.full(ratio.size, None) if group is None else np.asarray(group).ravel(),
    }
    for name, column in columns.items():
        if column.size != labels.size:
            raise FieldError(
                f"{column.size} values for {labels.size} completions",
                field=name,
                hint="pass one value per completion in every array.",
            )
    first = np.unique(prompt_index, return_index=True)[1]
    return SampleTable(
        tuple(str(name) for name in names),
        tuple(None if name is None else str(name) for name in columns["group"][first]),
        prompt_index,
        columns["wrote_before"],
        ratio,
        columns["kl"],
        columns["tokens_before"],
        np.full(ratio.size, fill_value=True),
        np.full(ratio.size, np.nan),
    )


def read_samples(path: Path) -> list[CompletionSample]:
    """Read samples from JSON lines: those that `forgetmap overlap --out` wrote, or your own.

    A line has `prompt`, `side` (`before` or `after`: the model that wrote it), `before` and `after`
    (lists of log-probabilities, one per token, or one number for the whole), and may have `number`,
    `kl`, `ended`, `group`, `expert` and `tokens`.
    """
    samples = [_sample(line, number, path) for number, line in _lines(path)]
    if not samples:
        raise EmptyInputError(
            "There are no samples.", file=str(path), hint="write one line per sample."
        )
    return _number(samples, path)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingInputError(
            f"The file {path} does not exist.", hint="check the path."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"The file cannot be read: {error}.",
            file=str(path),
            hint="pass a JSON Lines file in UTF-8.",
        ) from None
    fingerprint = None
    for number, raw in enumerate(text.split("\n"), start=1):
        try:
            line = json.loads(raw) if raw.strip() else {}
        except ValueError as error:
            raise UnreadableError(
                f"Invalid JSON: {error}.", file=str(path), line=number,
                hint="write one JSON object per line.",
            ) from None  # fmt: skip
        if not isinstance(line, dict):
            raise UnreadableError(
                "The line is not a JSON object.", file=str(path), line=number,
                hint="write one JSON object per line.",
            )  # fmt: skip
        if number == 1 and line.keys() == {"fingerprint", CHECKSUM}:
            fingerprint = str(line["fingerprint"])  # a journal, whose lines have checksums
        elif (
            fingerprint is not None and raw and read_line(f"{raw}\n".encode(), fingerprint) is None
        ):
            raise ChecksumError(
                "The line was changed after it was written.", file=str(path), line=number,
                hint="run `forgetmap overlap` with this --out to sample it again.",
            )  # fmt: skip
        elif line:
            line.pop(CHECKSUM, None)
            yield number, line


def _sample(line: dict[str, Any], number: int, path: Path) -> CompletionSample:
    location: dict[str, Any] = {"file": str(path), "line": number}
    missing = [name for name in ("prompt", "side", "before", "after") if name not in line]
    if missing:
        raise ColumnError(
            f"The field {missing[0]!r} is missing.", **location, field=missing[0],
            hint="add prompt, side, before and after to each line.",
        )  # fmt: skip
    unknown = line.keys() - CompletionSample.__dataclass_fields__.keys()
    if unknown:
        raise ColumnError(
            f"Unknown field {min(unknown)!r}.", **location, field=min(unknown),
            hint="a line may have " + ", ".join(CompletionSample.__dataclass_fields__) + ".",
        )  # fmt: skip
    values = {"number": -1} | line
    values["prompt"] = str(values["prompt"])
    for name in ("before", "after", "kl"):
        if isinstance(values.get(name), int | float):
            values[name] = [values[name]]
    try:
        return CompletionSample(**values)
    except InputError as error:
        error.file, error.line = str(path), number
        raise
    except PairingError as error:
        raise type(error)(f"{path}, line {number}: {error.message}", hint=error.hint) from None


def _number(samples: Sequence[CompletionSample], path: Path) -> list[CompletionSample]:
    """Number samples without a number; two samples with one key are an error."""
    counts: dict[tuple[str, str], int] = {}
    keys: set[tuple[str, str, int]] = set()
    numbered = []
    for entry in samples:
        count = counts.get((entry.prompt, entry.side), 0)
        counts[entry.prompt, entry.side] = count + 1
        sample = entry if entry.number >= 0 else replace(entry, number=count)
        if sample.key in keys:
            raise FieldError(
                f"Sample {sample.number} of prompt {sample.prompt!r} by the model {sample.side} "
                "occurs twice.", file=str(path), field="number", hint="number them 0, 1, ...",
            )  # fmt: skip
        keys.add(sample.key)
        numbered.append(sample)
    return numbered


def _check(sample: CompletionSample) -> None:
    if sample.side not in get_args(Side):
        raise FieldError(
            f"The side is {sample.side!r}.", field="side", hint="use `before` or `after`."
        )
    for name in ("before", "after"):
        check_log_probs(getattr(sample, name), name)
    if len(sample.before) != len(sample.after):
        raise PairingError(
            f"A completion of prompt {sample.prompt!r} has {len(sample.before)} tokens for the "
            f"model before and {len(sample.after)} for the model after.",
            hint="compare models with the same tokenizer, and score all tokens with both.",
        )
    if sample.kl is not None:
        _checked_kl(sample.kl)
        if len(sample.kl) not in {1, len(sample.before)}:
            raise FieldError(
                f"{len(sample.kl)} divergences for {len(sample.before)} tokens",
                field="kl",
                hint="pass one per token, or their sum.",
            )
    if math.isinf(math.fsum(getattr(sample, sample.side))):
        raise FieldError(
            f"The model {sample.side} wrote this completion but assigns it the probability 0.",
            field=sample.side,
            hint="score completions as they were sampled: temperature 1, without top-k and top-p.",
        )


def _checked_kl(values: ArrayLike) -> Floats:
    kl: Floats = np.asarray(values, float).ravel()
    wrong = np.isnan(kl) | (kl < -ROUNDING)
    if wrong.any():
        raise FieldError(
            f"A divergence is {kl[wrong][0]:g}.",
            field="kl",
            hint="use the KL of full distributions, which is never negative; sampled ratios are "
            "not KL.",
        )
    return kl.clip(min=0.0)


def _check_cuts(samples: Sequence[CompletionSample]) -> None:
    """Check that all completions of a prompt are whole, or cut at the same length."""
    cuts: dict[str, int] = {}
    for sample in samples:
        length = len(sample.before)
        if not sample.ended and cuts.setdefault(sample.prompt, length) != length:
            raise PairingError(
                f"Completions of prompt {sample.prompt!r} are cut at {cuts[sample.prompt]} and at "
                f"{length} tokens.",
                hint="use the same limit for both models, or only the first tokens (--first "
                f"{min(length, cuts[sample.prompt])}).",
            )
    for sample in samples:
        if len(sample.before) > cuts.get(sample.prompt, len(sample.before)):
            raise PairingError(
                f"A completion of prompt {sample.prompt!r} has {len(sample.before)} tokens, but "
                f"others are cut at {cuts[sample.prompt]}.",
                hint="use the same limit for both models, or only the first tokens (--first "
                f"{cuts[sample.prompt]}).",
            )


def _beginning(sample: CompletionSample, first: int) -> CompletionSample:
    """Return the first tokens of a completion, as a sample of the beginnings of all completions."""
    kl = sample.kl
    if kl is not None:
        kl = kl[:first] if len(kl) == len(sample.before) else None
    return CompletionSample(
        sample.prompt, sample.side, sample.number, sample.before[:first], sample.after[:first],
        kl, sample.ended and len(sample.before) <= first, sample.group,
    )  # fmt: skip
