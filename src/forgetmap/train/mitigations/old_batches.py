"""Batches of old examples, and the model's logits at their answer positions.

A position counts if it predicts a token of the completion: for a prompt of p tokens and a
completion of c tokens these are the positions p - 1 to p + c - 2 (from 0). Sequences are padded on
the right and need no attention mask, as earlier positions cannot see later tokens; logits are
computed only for the positions that count, if the model supports it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from forgetmap.errors import ModelError
from forgetmap.train.examples import TokenExample

MOST_ROUNDS = 64
"""Number of random orders in the cache."""


@dataclass(frozen=True)
class OldBatch:
    """Examples as tensors.

    Attributes:
        input_ids: one row per example.
        columns: positions for which logits are computed, for all rows.
        rows: row of each position that counts ...
        slots: ... and its index in `columns`.
        targets: token that each position predicts.
        examples: number of examples.
    """

    input_ids: torch.Tensor
    columns: torch.Tensor
    rows: torch.Tensor
    slots: torch.Tensor
    targets: torch.Tensor
    examples: int


def first_position(example: TokenExample, *, whole: bool) -> int:
    """Return the first position that counts; with `whole`, those in the prompt count too."""
    return 0 if whole else max(example.begin - 1, 0)


def position_count(example: TokenExample, *, whole: bool = False) -> int:
    """Return the number of positions of an example that count."""
    return len(example.ids) - 1 - first_position(example, whole=whole)


def collate(
    examples: Sequence[TokenExample], device: torch.device | str = "cpu", *, whole: bool = False
) -> OldBatch:
    """Stack examples, padded with token 0 on the right, which no position sees."""
    width = max(len(example.ids) for example in examples) - 1  # the last token predicts nothing
    ids: list[tuple[int, ...]] = []
    rows: list[int] = []
    places: list[int] = []
    targets: list[int] = []
    for row, example in enumerate(examples):
        inputs = example.ids[:-1]
        first = first_position(example, whole=whole)
        ids.append(inputs + (0,) * (width - len(inputs)))
        rows += [row] * (len(inputs) - first)
        places += range(first, len(inputs))
        targets += example.ids[first + 1 :]
    columns = sorted(set(places))
    slot = {column: number for number, column in enumerate(columns)}
    return OldBatch(
        input_ids=torch.tensor(ids, device=device),
        columns=torch.tensor(columns, device=device),
        rows=torch.tensor(rows, device=device),
        slots=torch.tensor([slot[place] for place in places], device=device),
        targets=torch.tensor(targets, device=device),
        examples=len(examples),
    )


def predict(model: Any, batch: OldBatch) -> torch.Tensor:
    """Return logits at all positions that count: (positions, vocabulary), at least float32."""
    inputs = {"input_ids": batch.input_ids, "use_cache": False}
    if _makes_single_logits(model):
        logits: torch.Tensor = model(**inputs, logits_to_keep=batch.columns).logits[
            batch.rows, batch.slots
        ]
    else:
        logits = model(**inputs).logits[batch.rows, batch.columns[batch.slots]]
    return logits if logits.dtype == torch.float64 else logits.float()


def _makes_single_logits(model: Any) -> bool:
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    known = getattr(base, "_forgetmap_single_logits", None)
    if known is None:
        known = "logits_to_keep" in inspect.signature(base.forward).parameters
        base._forgetmap_single_logits = known  # noqa: SLF001  # inspecting is slow
    return bool(known)


def sum_by_example(values: torch.Tensor, batch: OldBatch) -> torch.Tensor:
    """Return the sum over the positions of each example: (examples,)."""
    return values.new_zeros(batch.examples).index_add(0, batch.rows, values)


class ExampleOrder:
    """Choice of the examples of a step: all in random order, then all again in another order.

    It depends only on the seed, the step and the process: a resumed training continues as if it had
    not stopped, and processes use different examples.
    """

    def __init__(self, count: int, batch_size: int, seed: int) -> None:
        self.count, self.batch_size, self.seed = count, min(batch_size, count), seed
        self._rounds: dict[int, list[int]] = {}

    def at(self, step: int, rank: int = 0, processes: int = 1) -> list[int]:
        """Return indices of examples."""
        first = (step * processes + rank) * self.batch_size
        return [self._pick(number) for number in range(first, first + self.batch_size)]

    def _pick(self, number: int) -> int:
        turn, place = divmod(number, self.count)
        if turn not in self._rounds:
            if len(self._rounds) >= MOST_ROUNDS:
                self._rounds.clear()
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + turn)
            self._rounds[turn] = torch.randperm(self.count, generator=generator).tolist()
        return self._rounds[turn][place]


def device_of(model: Any) -> torch.device:
    """Return the device of the inputs of a model."""
    return torch.device(next(iter(model.parameters())).device)


def predict_batches(
    model: Any,
    examples: Sequence[TokenExample],
    device: torch.device | str | None = None,
    *,
    whole: bool = False,
    batch_size: int = 128,
) -> Iterator[tuple[range, torch.Tensor]]:
    """Yield ranges of examples with the logits of the current model at their positions.

    Only the logits of one batch are in memory. The mode of the model is restored.
    """
    for first in range(0, len(examples), batch_size):
        chosen = range(first, min(first + batch_size, len(examples)))
        batch = collate([examples[at] for at in chosen], device or device_of(model), whole=whole)
        was_training = model.training
        model.eval()
        try:
            with torch.no_grad():
                logits = predict(model, batch)
        finally:
            model.train(was_training)
        yield chosen, logits


def survey(
    model: Any,
    examples: Sequence[TokenExample],
    device: torch.device | str,
    *,
    whole: bool = False,
    batch_size: int = 32,
) -> Iterator[torch.Tensor]:
    """Yield the logits of the start model for each example: (positions, vocabulary).

    Raises:
        ModelError: logits are not finite.
    """
    for chosen, logits in predict_batches(
        model, examples, device, whole=whole, batch_size=batch_size
    ):
        part = [examples[at] for at in chosen]
        if not torch.isfinite(logits).all():
            raise ModelError(
                "the start model's logits are not finite near "
                f"{part[0].place.file}, line {part[0].place.line}",
                hint="load the model again; its weights are broken, or overflow in float16.",
            )
        yield from torch.split(logits, [position_count(one, whole=whole) for one in part])
