"""SDFT: on-policy self-distillation from the model that sees a demonstration (TRL).

    sdft = SDFT(teacher="base")
    trainer = sdft.make_trainer(model, "new.jsonl", tokenizer, output_dir="out", max_steps=500)
    trainer.train()

The student answers a prompt; the teacher is the same network, but its prompt also contains the
demonstration; the student's tokens are moved toward the teacher's distributions (Shenfeld et al.
2026, arXiv 2601.19897). The student retains what the teacher shows: a teacher fixed at the start
(`base`) or averaged (`ema`) keeps old behaviour only as far as it still shows it with the
demonstration in its prompt; `live` has no anchor at all (docs/theory.md, SDFT). `alpha` 0 is
forward KL (teacher || student), as in the published results, 1 is reverse KL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from forgetmap._lazy import require
from forgetmap.errors import FieldError, UsageError
from forgetmap.train.examples import ExampleSource, read_rows
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.mitigation import Mitigation, Protection


@dataclass(frozen=True)
class SDFT(Mitigation):
    """A config for TRL's SDFTTrainer, and the trainer; `protect` checks that it is used.

    Attributes:
        teacher: `base` is the start model, `ema` an average of the student, `live` the student
            itself.
        alpha: 0 is forward KL, 1 reverse KL, values between are a mixture.
        mode: tokens of a distribution that are compared, as TRL's `distillation_mode`.
        update_rate: update rate of the `ema` teacher.
        template: template of the teacher's prompt, with {prompt} and {privileged_context}.
        generations: number of answers of the student per prompt.
        max_tokens: maximum length of an answer.
    """

    kind: ClassVar[str] = "sdft"

    teacher: Literal["base", "ema", "live"] = "base"
    alpha: float = 0.0
    mode: Literal["full_logits", "topk_logits", "sampled_token"] = "full_logits"
    update_rate: float = 0.05
    template: str = "{prompt}\n\n{privileged_context}"
    generations: int = 1
    max_tokens: int = 64

    def __post_init__(self) -> None:
        base.check_choice("teacher", self.teacher, ("base", "ema", "live"))
        base.check_choice("mode", self.mode, ("full_logits", "topk_logits", "sampled_token"))
        base.check_above_zero(
            update_rate=self.update_rate, generations=self.generations, max_tokens=self.max_tokens
        )
        if not 0 <= self.alpha <= 1:
            raise UsageError(f"alpha is {self.alpha}", hint="use a value from 0 to 1.")
        if "{prompt}" not in self.template or "{privileged_context}" not in self.template:
            raise UsageError(
                "the template lacks {prompt} or {privileged_context}",
                hint="keep both: the teacher must see the prompt and the demonstration.",
            )

    def config(self, output_dir: str, **options: Any) -> Any:
        """Return TRL's `SDFTConfig`, with any further options."""
        sdft = require("trl.experimental.sdft", "SDFT")
        return sdft.SDFTConfig(
            output_dir=output_dir,
            teacher_model_kind=self.teacher,
            teacher_update_rate=self.update_rate,
            teacher_prompt_template=self.template,
            distillation_alpha=self.alpha,
            distillation_mode=self.mode,
            num_generations=self.generations,
            max_completion_length=self.max_tokens,
            **options,
        )

    def rows(self, source: ExampleSource) -> list[dict[str, Any]]:
        """Return new examples for SDFTTrainer: the completion is the demonstration.

        Raises:
            InputError: a row has no prompt or no completion.
        """
        return [_row(place, row) for place, row in read_rows(source)]

    def make_trainer(
        self, model: Any, source: ExampleSource, tokenizer: Any, output_dir: str, **options: Any
    ) -> Any:
        """Return TRL's SDFTTrainer for new examples."""
        datasets = require("datasets", "SDFT")
        return require("trl.experimental.sdft", "SDFT").SDFTTrainer(
            model=model,
            args=self.config(output_dir, **options),
            train_dataset=datasets.Dataset.from_list(self.rows(source)),
            processing_class=tokenizer,
        )

    def apply(self, run: Protection) -> None:
        """Check the trainer; TRL creates the teacher when the trainer is built.

        Raises:
            UsageError: it is another trainer.
        """
        trainer = require("trl.experimental.sdft", "SDFT").SDFTTrainer
        if not isinstance(run.trainer, trainer):
            raise UsageError(
                f"SDFT is its own trainer and cannot be added to {type(run.trainer).__name__}",
                hint="create it with SDFT(...).make_trainer(model, rows, tokenizer, output_dir).",
            )


def _row(place: Any, row: Any) -> dict[str, Any]:
    if "messages" in row:
        row = {"prompt": row["messages"][:-1], "completion": row["messages"][-1:]}
    for field in ("prompt", "completion"):
        if not row.get(field):
            raise FieldError(
                f"the row has no {field}",
                hint="add prompts with completions, which SDFT uses as demonstrations.",
                file=place.file,
                line=place.line,
                field=field,
            )
    return {"prompt": row["prompt"], "privileged_context": row["completion"]}
