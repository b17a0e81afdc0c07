"""Training with mitigations: `fm.protect(trainer, ...)`.

    fm.protect(trainer, KLToStart("prompts.jsonl", weight=1.0), Replay("replay.jsonl", share=0.25))
    trainer.train()

A penalty is computed once per optimizer step, independent of gradient accumulation, with a separate
backward pass before that of the last micro-batch. So its weight means the same for 1 x 16 and 4 x
4, for losses that are means and for losses that are divided by the tokens of all micro-batches; the
two graphs are never in memory together; and the `loss` of the trainer stays the loss of the new
task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from forgetmap.errors import UsageError
from forgetmap.train.mitigations.ema import put
from forgetmap.train.mitigations.l2sp import trained_weights
from forgetmap.train.mitigations.mitigation import Mitigation, Protection

ATTRIBUTE = "_forgetmap_protection"
SIGNS_OF_SHARDS = (
    "is_deepspeed_enabled",
    "is_fsdp_enabled",
    "is_distributed_loading_by_transformers",
)


def protect(trainer: Any, *mitigations: Mitigation, tokenizer: Any = None) -> Protection:
    """Add mitigations against forgetting to a trainer; call it before `trainer.train()`.

    The current model is the start model to which penalties compare. Further calls add mitigations.

    Args:
        trainer: a transformers `Trainer`, or TRL's SFT, DPO, GRPO, ...
        mitigations: any number, in any order; penalties add up.
        tokenizer: tokenizer for rows of text; by default that of the trainer.

    Returns:
        The applied mitigations with their measurements; save them with `to_json()`.

    Raises:
        UsageError: the trainer shards its weights, or does not support a mitigation.
        InputError: a file of prompts or examples is invalid.
    """
    _check_trainer(trainer, mitigations)
    run = getattr(trainer, ATTRIBUTE, None) or _install(trainer)
    if tokenizer is not None or run.tokenizer is None:
        run.tokenizer = tokenizer or _tokenizer_of(trainer)
    for mitigation in mitigations:
        mitigation.apply(run)
        run.mitigations.append(mitigation)
    return run


@contextmanager
def as_finished(trainer: Any) -> Iterator[Any]:
    """Yield the model as it would be if training ended now, such as an average of weights.

    Afterwards the trained weights are restored exactly.
    """
    run: Protection | None = getattr(trainer, ATTRIBUTE, None)
    if run is None or not run.endings:
        yield trainer.model
        return
    trained = trained_weights(run.model)
    try:
        for ending in run.endings:
            ending()
        yield run.model
    finally:
        put(trained, run.model)


def _check_trainer(trainer: Any, mitigations: tuple[Mitigation, ...]) -> None:
    wrong = [one for one in mitigations if not isinstance(one, Mitigation)]
    if wrong:
        raise UsageError(
            f"{wrong[0]!r:.60} is not a mitigation",
            hint="pass configurations such as KLToStart(...) from forgetmap.train.",
        )
    if any(getattr(trainer, sign, False) for sign in SIGNS_OF_SHARDS):
        raise UsageError(
            "the trainer shards the weights (DeepSpeed, FSDP or tensor parallelism)",
            hint="train on one device or with DDP; protect does not support sharded weights.",
        )
    if getattr(trainer, "model_init", None) is not None:
        raise UsageError(
            "the trainer creates its model when training starts (model_init)",
            hint="pass a model to the trainer; protect needs the start model.",
        )
    if getattr(trainer, "is_in_train", False):
        raise UsageError(
            "training has already started", hint="call protect before trainer.train()."
        )


def _tokenizer_of(trainer: Any) -> Any:
    processor = getattr(trainer, "processing_class", None)
    return getattr(processor, "tokenizer", processor)  # processors contain a tokenizer


def _install(trainer: Any) -> Protection:
    """Wrap the methods of this trainer that are called at each step and for each log line."""
    run = Protection(trainer, None)
    setattr(trainer, ATTRIBUTE, run)
    training_step, log = trainer.training_step, trainer.log

    def protected_step(*args: Any, **kwargs: Any) -> Any:
        if run.penalties and trainer.accelerator.sync_gradients:
            run.descend()
        return training_step(*args, **kwargs)

    def log_with_penalties(logs: dict[str, float], *args: Any, **kwargs: Any) -> Any:
        if "loss" in logs:
            logs.update(run.take_metrics())
        return log(logs, *args, **kwargs)

    trainer.training_step, trainer.log = protected_step, log_with_penalties
    trainer.add_callback(_trainer_callback(run))
    return run


def _trainer_callback(run: Protection) -> Any:
    from transformers import TrainerCallback

    class ProtectionHooks(TrainerCallback):  # type: ignore[misc]
        """Calls the gradient hooks and endings of mitigations."""

        def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
            """Call the gradient hooks; gradients are complete and clipped."""
            for hook in run.gradient_hooks:
                hook(run.model)

        def on_train_end(self, *_: Any, **__: Any) -> None:
            for ending in run.endings:
                ending()

    return ProtectionHooks()
