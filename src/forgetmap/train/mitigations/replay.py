"""Replay: old examples mixed into the new ones.

    Replay("old.jsonl", share=0.25)      examples at random, or those of `forgetmap export replay`
    SyntheticReplay(rows=1000)           texts that the start model writes itself: no old data
    SyntheticReplay(prompts="p.jsonl")   its answers to unlabelled prompts

`share` is the part of all training rows that is old. In trainers whose rows are tokens (`Trainer`,
`SFTTrainer`) old rows are mixed into the training data: an epoch has all new rows and share /
(1 - share) times as many old ones, others in each epoch, shuffled by the trainer. Trainers whose
rows are something else (DPO, GRPO, ...) get the cross-entropy of a batch of old examples as a
penalty, by default with weight share / (1 - share): what the share comes to in a mean over rows.

Under forward KL (SFT), replay moves the optimum itself: the old mode ends with the weight `share`
(docs/theory.md).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from forgetmap.errors import UsageError
from forgetmap.train.examples import IGNORED, ExampleSource, Place, TokenExample, context_of
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.kl import answered
from forgetmap.train.mitigations.mitigation import Mitigation, Protection
from forgetmap.train.mitigations.old_batches import ExampleOrder, collate, predict
from forgetmap.train.mitigations.sampling import first_token, sample_answers

How = Literal["auto", "mix", "loss"]
KNOWN_KEYS = ("input_ids", "attention_mask", "labels", "length")


@dataclass(frozen=True)
class Replay(Mitigation):
    """Train on old examples as well.

    Attributes:
        examples: rows with completions.
        share: of all training rows, how many are old.
        rows: use only so many of the examples, chosen at random.
        how: `mix` into the training data, add a `loss`, or `auto` by the trainer's data.
        weight: of the loss; share / (1 - share) if left out.
        batch_size: old examples per optimizer step and process, for the loss.
        eos: end completions with the end-of-sequence token.
        seed: of the choice and the order.
    """

    kind: ClassVar[str] = "replay"

    examples: ExampleSource
    share: float = 0.25
    rows: int | None = None
    how: How = "auto"
    weight: float | None = None
    batch_size: int = 16
    eos: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.share, self.how, self.rows, self.weight, self.batch_size)

    def apply(self, run: Protection) -> None:
        """Mix the examples in, or add their loss."""
        examples = run.read(self.examples, eos=self.eos)
        for example in examples:
            if not example.is_answered:
                raise UsageError(
                    f"{example.place.file}, line {example.place.line}: a prompt without completion",
                    hint="add completions, or let SyntheticReplay(prompts=...) write them.",
                )
        if self.rows is not None and self.rows < len(examples):
            examples = random.Random(self.seed).sample(examples, self.rows)  # noqa: S311
        replay(run, examples, self)


@dataclass(frozen=True)
class SyntheticReplay(Mitigation):
    """Train on what the start model says: no old data are needed.

    Attributes:
        rows: how many texts it writes; with `prompts`, answers to so many of them at most.
        prompts: unlabelled prompts to answer; without them it writes prompts as well.
        prompt: what every free text begins with; nothing but the first token if empty.
        share: of all training rows, how many are such texts.
        temperature: of sampling; 0 takes the likeliest token (only sensible with prompts).
        max_tokens: of a text or an answer.
        how: `mix` into the training data, add a `loss`, or `auto` by the trainer's data.
        weight: of the loss; share / (1 - share) if left out.
        batch_size: texts per optimizer step and process, for the loss.
        seed: of texts, choice and order.
    """

    kind: ClassVar[str] = "synthetic_replay"

    rows: int = 1000
    prompts: ExampleSource | None = None
    prompt: str = ""
    share: float = 0.25
    temperature: float = 1.0
    max_tokens: int = 64
    how: How = "auto"
    weight: float | None = None
    batch_size: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.share, self.how, self.rows, self.weight, self.batch_size)
        base.check_not_negative(temperature=self.temperature)
        base.check_above_zero(max_tokens=self.max_tokens)

    def apply(self, run: Protection) -> None:
        """Let the start model write, and mix it in or add its loss."""
        replay(run, self.write(run), self)

    def write(self, run: Protection) -> list[TokenExample]:
        """The texts, by the model as it is."""
        if self.prompts is None:
            return write_texts(run, self)
        asked = run.read(self.prompts)
        if self.rows < len(asked):
            asked = random.Random(self.seed).sample(asked, self.rows)  # noqa: S311
        return answered(
            run, asked, again=True, max_tokens=self.max_tokens, temperature=self.temperature,
            seed=self.seed,
        )  # fmt: skip


def write_texts(run: Protection, config: SyntheticReplay) -> list[TokenExample]:
    """Texts that the model writes from nothing, or from a common beginning."""
    if config.prompt:
        start = run.read([{"prompt": config.prompt}])[0].ids
    else:
        start = (first_token(run.model, run.tokenizer),)
    context = context_of(run.model, run.tokenizer)
    room = config.max_tokens if context is None else context - len(start)
    made = sample_answers(
        run.model,
        [start] * config.rows,
        run.tokenizer,
        max_tokens=min(config.max_tokens, room),
        temperature=config.temperature,
        seed=config.seed,
    )
    place = Place("synthetic texts", 0)
    return [TokenExample(start + tuple(text), len(start), place) for text in made]


def replay(
    run: Protection, examples: Sequence[TokenExample], config: Replay | SyntheticReplay
) -> None:
    """Mix examples into the training data, or add their loss."""
    rows = run.trainer.train_dataset
    mixes = config.how == "mix" or (config.how == "auto" and has_tokens(rows))
    if mixes:
        mix(run, examples, config.share, config.seed)
        return
    weight = config.share / (1 - config.share) if config.weight is None else config.weight
    order = ExampleOrder(len(examples), config.batch_size, config.seed)

    def penalty(model: Any) -> torch.Tensor:
        chosen = order.at(run.step, run.rank, run.processes)
        batch = collate([examples[at] for at in chosen], run.device)
        return torch.nn.functional.cross_entropy(predict(model, batch), batch.targets)

    run.add_penalty(config.kind, penalty, weight)


def _check(share: float, how: str, rows: int | None, weight: float | None, batch_size: int) -> None:
    base.check_below_one(share=share)
    base.check_choice("how", how, ("auto", "mix", "loss"))
    base.check_above_zero(rows=rows, batch_size=batch_size)
    base.check_not_negative(weight=weight)


# -------------------------------------------------------------------------------------- mixed data


def has_tokens(rows: Any) -> bool:
    """Whether rows can be mixed: they are tokens, and there is a known number of them."""
    if not hasattr(rows, "__len__") or not len(rows):
        return False
    first = rows[0]
    return hasattr(first, "keys") and "input_ids" in first.keys()  # noqa: SIM118  # BatchEncoding


def mix(run: Protection, examples: Sequence[TokenExample], share: float, seed: int) -> None:
    """Replace the trainer's data by new and old rows.

    Raises:
        UsageError: the rows are of another kind than old ones can take.
    """
    from transformers import TrainerCallback

    new = run.trainer.train_dataset
    if not has_tokens(new):
        raise UsageError(
            "the training data have no token ids, so old examples cannot be mixed in",
            hint='use how="loss", which adds old examples as a penalty.',
        )
    rows = [old_row(example, new[0], run) for example in examples]
    mixed = MixedRows(new, rows, share, seed)

    class NextRows(TrainerCallback):  # type: ignore[misc]
        """Other old rows in each epoch."""

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            mixed.set_epoch(int(state.epoch or 0))

    run.trainer.train_dataset = mixed
    run.trainer.add_callback(NextRows())


class MixedRows(torch.utils.data.Dataset[Any]):
    """All new rows, then the old ones of this epoch; the trainer's sampler shuffles them."""

    def __init__(self, new: Any, old: Sequence[Any], share: float, seed: int) -> None:
        self.new, self.old = new, old
        self.replayed = max(1, round(len(new) * share / (1 - share)))
        self._order = ExampleOrder(len(old), 1, seed)
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Which old rows come."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self.new) + self.replayed

    def __getitem__(self, index: int) -> Any:
        if index < len(self.new):
            return self.new[index]
        number = self._epoch * self.replayed + index - len(self.new)
        return self.old[self._order.at(number)[0]]


def old_row(example: TokenExample, like: Any, run: Protection) -> dict[str, Any]:
    """An old example with the keys and kinds of values of a new row.

    Raises:
        UsageError: new rows have keys that old ones cannot have, as packed rows do.
    """
    keys = list(like.keys())
    strange = [key for key in keys if key not in KNOWN_KEYS]
    needed = set(strange) & {"seq_lengths", "position_ids", "completion_mask", "assistant_masks"}
    if needed:
        raise UsageError(
            f"new rows have the column {min(needed)!r}, which old rows do not have",
            hint='switch packing off, or use how="loss".',
        )
    ids = list(example.ids)
    values: dict[str, Any] = {
        "input_ids": ids,
        "attention_mask": [1] * len(ids),
        "labels": example.labels,
        "length": len(ids),
    }
    if _has_fixed_width(run.trainer):
        values = _padded(values, len(like["input_ids"]), example)
    row = {key: values[key] for key in keys if key in values}
    if isinstance(like["input_ids"], torch.Tensor):
        return {key: torch.as_tensor(value) for key, value in row.items()}
    return row


def _has_fixed_width(trainer: Any) -> bool:
    """Whether the collator stacks rows as they are, so that all have one length."""
    from transformers import DefaultDataCollator, default_data_collator

    collator = trainer.data_collator
    return collator is default_data_collator or isinstance(collator, DefaultDataCollator)


def _padded(values: dict[str, Any], width: int, example: TokenExample) -> dict[str, Any]:
    missing = width - len(values["input_ids"])
    if missing < 0:
        raise UsageError(
            f"{example.place.file}, line {example.place.line}: the example is {-missing} "
            f"tokens longer than the fixed length of the new rows, {width}",
            hint="use a collator that pads, such as DataCollatorForSeq2Seq.",
        )
    fill = {"input_ids": 0, "attention_mask": 0, "labels": IGNORED}
    return {
        key: value + [fill[key]] * missing if key in fill else value
        for key, value in values.items()
    }
