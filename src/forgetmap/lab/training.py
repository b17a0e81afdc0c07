"""One training run: from the start model to a matched score on the new examples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from forgetmap.lab.recipe import LabRecipe, Row
from forgetmap.train import TokenExample, as_finished, predict_batches, read_examples

INTERVALS = ((0.02, 1), (0.1, 4), (1.0, 10))
"""Distance from the target -> number of steps between evaluations of the score."""
GENERATIONS = 8
"""Number of answers per question in training with rewards."""


class ComputeCounter:
    """Counts tokens that pass through a model; a pass with gradients counts three times."""

    def __init__(self, model: Any) -> None:
        self.tokens = 0
        self._is_paused = False
        self.add(model)

    def add(self, model: Any) -> None:
        """Count the tokens of this model too."""
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def __deepcopy__(self, _: Any) -> ComputeCounter:
        """Return self: a copy of a model, such as a teacher, is counted too."""
        return self

    def _count(self, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = kwargs.get("input_ids", args[0] if args else None)
        if ids is None or self._is_paused:
            return
        self.tokens += ids.numel() * (3 if torch.is_grad_enabled() else 1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause counting: evaluation is not part of a method."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False


def load_start(start: str | Path) -> tuple[Any, Any]:
    """Load the start model and its tokenizer.

    Weights are in full precision, as small steps would be lost in half precision.
    """
    model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(start)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # always masked
    return model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer


def are_right(model: Any, examples: Sequence[TokenExample]) -> list[bool]:
    """Whether greedy decoding would generate the completion of each example.

    One pass is enough: greedy decoding gives the completion if and only if its token is the most
    likely one at every position.
    """
    right: list[bool] = []
    for chosen, logits in predict_batches(model, examples):
        guesses = logits.argmax(-1).tolist()
        for at in chosen:
            answer = list(examples[at].ids[examples[at].begin :])
            right.append(guesses[: len(answer)] == answer)
            guesses = guesses[len(answer) :]
    return right


@torch.no_grad()
def is_finite(model: Any) -> bool:
    """Whether all weights are finite; they are not after an infinite loss."""
    return all(bool(weight.isfinite().all()) for weight in model.parameters())


def share_right(model: Any, examples: Sequence[TokenExample]) -> float:
    """Return the share of the examples that greedy decoding gets right."""
    right = are_right(model, examples)
    return sum(right) / len(right)


class StopAtScore(TrainerCallback):  # type: ignore[misc]
    """Ends training as soon as the new examples are known.

    Args:
        examples: new examples.
        target: share of them that must be known.
        counter: counter of compute, paused during evaluation.
        trainer: if given, the final weights, such as an average, are evaluated instead of the
            trained ones.
    """

    def __init__(
        self,
        examples: Sequence[TokenExample],
        target: float,
        counter: ComputeCounter | None = None,
        trainer: Any = None,
    ) -> None:
        self.examples, self.target, self.counter = examples, target, counter
        self.trainer = trainer
        self.score, self.step = math.nan, 0

    @classmethod
    def of(cls, recipe: LabRecipe, seed: int, tokenizer: Any) -> StopAtScore:
        """Create it for the new examples of a recipe, without counting compute."""
        examples = read_examples(recipe.new_rows(seed), tokenizer, eos=False)
        return cls(examples, recipe.target)

    def on_step_end(self, _: Any, state: Any, control: Any, *, model: Any, **__: Any) -> None:
        """Evaluate the score if it is due; end training if weights are not finite."""
        self.step = state.global_step
        if self.step % self._interval and self.step < state.max_steps:
            return
        if not is_finite(model):
            control.should_training_stop = True
            return
        finished = as_finished(self.trainer) if self.trainer else nullcontext(model)
        with self.counter.paused() if self.counter else nullcontext(), finished as ended:
            self.score = share_right(ended, self.examples)
        if self.score >= self.target:
            control.should_training_stop = True

    @property
    def _interval(self) -> int:
        missing = self.target - self.score
        return next((steps for within, steps in INTERVALS if missing <= within), 10)


def trainer_options(recipe: LabRecipe, *, rate: float, seed: int) -> dict[str, Any]:
    """Return options of all trainers: constant learning rate, full precision, no saving or logging.

    Trainers of TRL would use bf16 by default, which not every processor supports.
    """
    return {
        "max_steps": recipe.max_steps,
        "per_device_train_batch_size": recipe.batch_size,
        "learning_rate": rate,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": recipe.warm_up,
        "weight_decay": 0.0,
        "seed": seed,
        "data_seed": seed,
        "save_strategy": "no",
        "report_to": "none",
        "logging_strategy": "no",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "bf16": False,
        "gradient_checkpointing": False,
    }


def supervised_trainer(
    recipe: LabRecipe, model: Any, tokenizer: Any, *, rate: float, seed: int, folder: Path
) -> Trainer:
    """Return a trainer for plain fine-tuning on the new examples."""
    rows = [
        {"input_ids": list(example.ids), "labels": example.labels}
        for example in read_examples(recipe.new_rows(seed), tokenizer)
    ]
    trainer = Trainer(
        model=model,
        args=TrainingArguments(str(folder), **trainer_options(recipe, rate=rate, seed=seed)),
        train_dataset=rows,
        data_collator=PadRight(tokenizer.pad_token_id),
        processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)  # prints a line for every training
    return trainer


def reward_trainer(
    recipe: LabRecipe,
    model: Any,
    tokenizer: Any,
    *,
    rate: float,
    seed: int,
    folder: Path,
    beta: float,
) -> Any:
    """Return TRL's GRPO on the new examples: reward 1 for the right answer; beta weights the KL."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = [
        {"prompt": row["prompt"], "answer": row["completion"].strip()}
        for row in recipe.new_rows(seed)
    ]
    options = trainer_options(recipe, rate=rate, seed=seed)
    options["per_device_train_batch_size"] = GENERATIONS * recipe.batch_size
    return GRPOTrainer(
        model=model,
        reward_funcs=_right_answer,
        args=GRPOConfig(
            str(folder),
            num_generations=GENERATIONS,
            max_completion_length=recipe.max_tokens,
            beta=beta,
            temperature=1.0,
            **options,
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )


def _right_answer(completions: Sequence[str], answer: Sequence[str], **_: Any) -> list[float]:
    """Return 1 for each completion whose first line is the answer, else 0."""
    return [
        float(text.strip().split("\n")[0].strip() == gold)
        for text, gold in zip(completions, answer, strict=True)
    ]


@dataclass(frozen=True)
class PadRight:
    """Stacks rows of tokens into one tensor, padded at the end."""

    pad: int

    def __call__(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Return a batch."""
        longest = max(len(row["input_ids"]) for row in rows)
        fill = {"input_ids": self.pad, "labels": -100}
        batch = {
            key: torch.tensor([[*row[key], *[value] * (longest - len(row[key]))] for row in rows])
            for key, value in fill.items()
        }
        lengths = torch.tensor([len(row["input_ids"]) for row in rows])
        batch["attention_mask"] = (torch.arange(longest) < lengths[:, None]).long()
        return batch
