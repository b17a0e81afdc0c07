"""Completions, and the log-probabilities that the model before and the model after give them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.errors import (
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
Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion of one prompt, weighed by both models.

    Attributes:
        prompt: id of the prompt.
        side: which model wrote it.
        number: 0, 1, ...: which of that model's completions of the prompt.
        before: log-probability of each of its tokens under the model before.
        after: the same under the model after.
        kl: at each token, KL of the writer's next-token distribution from the other model's; None
            where the whole distributions are not known.
        ended: it ends in an end token and was not cut.
        group: of the prompt, such as `old` or `new`.
        expert: log-probability of the whole under a model of the new behaviour alone.
        tokens: which tokens.
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
        """What tells it from every other sample."""
        return self.prompt, self.side, self.number


@dataclass(frozen=True, slots=True)
class Table:
    """Samples as columns.

    Attributes:
        prompts: ids; `place` points into them.
        groups: of each prompt.
        place: prompt of each sample.
        wrote_before: whether the model before wrote it.
        ratio: log before - log after, of the whole completion.
        kl: KL of the writer from the other, summed over the tokens; NaN where not known.
        tokens: how many; 0 where only sums are known.
        ended: whether it was not cut.
        expert: log before - log expert; NaN where there is none.
    """

    prompts: tuple[str, ...]
    groups: tuple[str | None, ...]
    place: Places
    wrote_before: NDArray[np.bool_]
    ratio: Floats
    kl: Floats
    tokens: Places
    ended: NDArray[np.bool_]
    expert: Floats

    def rows_of(self, side: Side) -> list[Places]:
        """Of each prompt, the places of the samples that one model wrote."""
        written = np.flatnonzero(self.wrote_before == (side == "before"))
        order = written[np.argsort(self.place[written], kind="stable")]
        ends = np.searchsorted(self.place[order], np.arange(1, len(self.prompts)))
        return np.split(order, ends)

    def of_prompts(self, chosen: Iterable[int]) -> Table:
        """Only some prompts."""
        kept = sorted(chosen)
        new = np.full(len(self.prompts), -1)
        new[kept] = np.arange(len(kept))
        rows = new[self.place] >= 0
        return Table(
            tuple(self.prompts[each] for each in kept),
            tuple(self.groups[each] for each in kept),
            new[self.place[rows]],
            self.wrote_before[rows],
            self.ratio[rows],
            self.kl[rows],
            self.tokens[rows],
            self.ended[rows],
            self.expert[rows],
        )


def table_of(samples: Iterable[Sample], *, first: int | None = None) -> Table:
    """Samples as columns, in the order of their keys.

    Args:
        samples: of any number of prompts.
        first: look only at so many tokens at the start of each completion.

    Raises:
        EmptyInputError: there are none.
        PairingError: completions of one prompt were cut at different lengths.
    """
    rows = sorted(samples, key=lambda each: each.key)
    if not rows:
        raise EmptyInputError("There are no samples.", hint="give at least one completion.")
    if first is not None:
        rows = [_beginning(each, first) for each in rows]
    _check_cuts(rows)
    names = list(dict.fromkeys(each.prompt for each in rows))
    places = {name: place for place, name in enumerate(names)}
    groups = {each.prompt: each.group for each in rows}
    before = np.array([math.fsum(each.before) for each in rows])
    return Table(
        tuple(names),
        tuple(groups[name] for name in names),
        np.array([places[each.prompt] for each in rows]),
        np.array([each.side == "before" for each in rows]),
        log_ratio(before, [math.fsum(each.after) for each in rows]),
        np.array([np.nan if each.kl is None else math.fsum(each.kl) for each in rows]),
        np.array([len(each.before) for each in rows]),
        np.array([each.ended for each in rows]),
        before - np.array([np.nan if each.expert is None else each.expert for each in rows]),
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
) -> Table:
    """Log-probabilities of whole completions, one entry per completion in every array.

    Args:
        prompt: any label of the prompt.
        wrote_before: whether the model before (rather than the one after) wrote the completion.
        before: its log-probability under the model before, summed over tokens, end token included.
        after: the same under the model after.
        kl: KL of the writer from the other, summed over the tokens: better than the ratio alone.
        tokens_before: tokens that the model before cut it into.
        tokens_after: tokens that the model after cut it into; must be as many.
        group: of the prompt, such as `old` and `new`.

    Raises:
        FieldError: something is not a log-probability, or belongs to other tokens.
        EmptyInputError: there are no completions.
    """
    labels = np.asarray(prompt).ravel()
    if not labels.size:
        raise EmptyInputError("There are no samples.", hint="give at least one completion.")
    ratio = log_ratio(before, after, tokens_before, tokens_after).ravel()
    names, place = np.unique(labels, return_inverse=True)
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
                hint="give one value per completion in every array.",
            )
    first = np.unique(place, return_index=True)[1]
    return Table(
        tuple(str(name) for name in names),
        tuple(None if each is None else str(each) for each in columns["group"][first]),
        place,
        columns["wrote_before"],
        ratio,
        columns["kl"],
        columns["tokens_before"],
        np.full(ratio.size, fill_value=True),
        np.full(ratio.size, np.nan),
    )


def read_samples(path: Path) -> list[Sample]:
    """Samples from JSON lines: those that `forgetmap overlap --out` kept, or your own.

    A line has `prompt`, `side` (`before` or `after`: who wrote it), `before` and `after` (lists of
    log-probabilities, one per token, or one number for the whole), and may have `number`, `kl`,
    `ended`, `group`, `expert` and `tokens`.
    """
    found = [_sample(line, number, path) for number, line in _lines(path)]
    if not found:
        raise EmptyInputError("There are no samples.", file=str(path), hint="give a line for each.")
    return _numbered(found, path)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingInputError(f"There is no file {path}.", hint="check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"It cannot be read: {error}.", file=str(path), hint="give JSON lines in UTF-8."
        ) from None
    for number, raw in enumerate(text.splitlines(), start=1):
        try:
            line = json.loads(raw) if raw.strip() else {}
        except ValueError as error:
            raise UnreadableError(
                f"This is not JSON: {error}.", file=str(path), line=number,
                hint="give one JSON object per line.",
            ) from None  # fmt: skip
        if not isinstance(line, dict):
            raise UnreadableError(
                "This is no JSON object.", file=str(path), line=number,
                hint="give one JSON object per line.",
            )  # fmt: skip
        # The first line of a journal says what it is of.
        if line.keys() - {"fingerprint"}:
            yield number, line


def _sample(line: dict[str, Any], number: int, path: Path) -> Sample:
    place: dict[str, Any] = {"file": str(path), "line": number}
    missing = [name for name in ("prompt", "side", "before", "after") if name not in line]
    if missing:
        raise ColumnError(
            f"There is no {missing[0]!r}.", **place, field=missing[0],
            hint="each line needs prompt, side, before and after.",
        )  # fmt: skip
    unknown = line.keys() - Sample.__dataclass_fields__.keys()
    if unknown:
        raise ColumnError(
            f"Nobody knows what {min(unknown)!r} is.", **place, field=min(unknown),
            hint="a line may have " + ", ".join(Sample.__dataclass_fields__) + ".",
        )  # fmt: skip
    values = {"number": -1} | line
    values["prompt"] = str(values["prompt"])
    for name in ("before", "after", "kl"):
        if isinstance(values.get(name), int | float):
            values[name] = [values[name]]
    try:
        return Sample(**values)
    except InputError as error:
        error.file, error.line = str(path), number
        raise
    except PairingError as error:
        raise type(error)(f"{path}, line {number}: {error.message}", hint=error.hint) from None


def _numbered(samples: Sequence[Sample], path: Path) -> list[Sample]:
    """Samples without a number get the next; two of one key are an error."""
    counts: dict[tuple[str, str], int] = {}
    keys: set[tuple[str, str, int]] = set()
    numbered = []
    for each in samples:
        count = counts.get((each.prompt, each.side), 0)
        counts[each.prompt, each.side] = count + 1
        sample = each if each.number >= 0 else replace(each, number=count)
        if sample.key in keys:
            raise FieldError(
                f"Sample {sample.number} of prompt {sample.prompt!r} by the model {sample.side} "
                "is there twice.", file=str(path), field="number", hint="number them 0, 1, ...",
            )  # fmt: skip
        keys.add(sample.key)
        numbered.append(sample)
    return numbered


def _check(sample: Sample) -> None:
    if sample.side not in get_args(Side):
        raise FieldError(
            f"The side is {sample.side!r}.", field="side", hint="it is `before` or `after`."
        )
    for name in ("before", "after"):
        check_log_probs(getattr(sample, name), name)
    if len(sample.before) != len(sample.after):
        raise PairingError(
            f"A completion of prompt {sample.prompt!r} has {len(sample.before)} tokens for the "
            f"model before and {len(sample.after)} for the model after.",
            hint="compare models with the same tokenizer, and weigh all tokens with both.",
        )
    if sample.kl is not None:
        _checked_kl(sample.kl)
        if len(sample.kl) not in {1, len(sample.before)}:
            raise FieldError(
                f"{len(sample.kl)} divergences for {len(sample.before)} tokens",
                field="kl",
                hint="give one per token, or their sum.",
            )
    if math.isinf(math.fsum(getattr(sample, sample.side))):
        raise FieldError(
            f"The model {sample.side} wrote this and gives it the probability 0.",
            field=sample.side,
            hint="weigh completions as they were sampled: temperature 1, without top-k and top-p.",
        )


def _checked_kl(values: ArrayLike) -> Floats:
    found: Floats = np.asarray(values, float).ravel()
    wrong = np.isnan(found) | (found < -ROUNDING)
    if wrong.any():
        raise FieldError(
            f"A divergence is {found[wrong][0]:g}.",
            field="kl",
            hint="KL of whole distributions is never negative; sampled ratios are not KL.",
        )
    return found.clip(min=0.0)


def _check_cuts(samples: Sequence[Sample]) -> None:
    """All completions of a prompt must be of one kind: whole, or up to the same length."""
    cuts: dict[str, int] = {}
    for sample in samples:
        length = len(sample.before)
        if not sample.ended and cuts.setdefault(sample.prompt, length) != length:
            raise PairingError(
                f"Completions of prompt {sample.prompt!r} are cut at {cuts[sample.prompt]} and at "
                f"{length} tokens.",
                hint="use the same limit for both models, or look at the first tokens only "
                f"(--first {min(length, cuts[sample.prompt])}).",
            )
    for sample in samples:
        if len(sample.before) > cuts.get(sample.prompt, len(sample.before)):
            raise PairingError(
                f"A completion of prompt {sample.prompt!r} has {len(sample.before)} tokens, but "
                f"others are cut at {cuts[sample.prompt]}.",
                hint="use the same limit for both models, or look at the first tokens only "
                f"(--first {cuts[sample.prompt]}).",
            )


def _beginning(sample: Sample, first: int) -> Sample:
    """The first tokens of a completion: a sample of the first tokens of all completions."""
    kl = sample.kl
    if kl is not None:
        kl = kl[:first] if len(kl) == len(sample.before) else None
    return Sample(
        sample.prompt, sample.side, sample.number, sample.before[:first], sample.after[:first],
        kl, sample.ended and len(sample.before) <= first, sample.group,
    )  # fmt: skip
