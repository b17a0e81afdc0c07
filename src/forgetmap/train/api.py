"""The verb: watch what a model forgets while it is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from forgetmap.errors import UsageError
from forgetmap.evaluation import Suite
from forgetmap.train.callback import ForgettingCallback
from forgetmap.train.options import WatchOptions


def watch(
    trainer: Any, suite: str | Path | Suite, **options: Unpack[WatchOptions]
) -> ForgettingCallback:
    """Watch what the model of a trainer forgets, from the next `trainer.train()` on.

    Works with `Trainer` of transformers and the trainers of TRL. The model is asked at step 0, then
    as often as the cost allows, and is left as it was: weights after training are the same, bit for
    bit.

    Args:
        trainer: before training.
        suite: name of a suite, a file of items or a probe, or a suite.
        cost: most time in the probe per time in training, over the whole training; 0.05.
        every: steps between looks instead, whatever they cost.
        out: folder for run folders and `watch.json`; `forgetting` in the trainer's output folder.
        settings: how the model is asked.
        margin: share of all items that may be forgotten without an alarm; 0.02.
        noise_floor: share of answers that batching and hardware flip one way; 0.005.
        alpha: chance of any false alarm in a training; 0.05.
        on_alarm: `log` it, `stop` the training, or `lower-lr`.
        lr_factor: what `lower-lr` multiplies the learning rate by; 0.5.
        keep_best: keep the weights of the latest look that forgot at most the margin.
        kl: measure the KL to the start as well; True.
        tokenizer: where the trainer has none.
        seed: of the items that are kept where not all can be afforded.
        overwrite: put the history of another training in the same folder aside.
        quiet: print nothing.

    Returns:
        The callback; `history` has what was seen, `folder` where it is kept.

    Raises:
        FieldError: an item has no right answer.
        UsageError: an option makes no sense, or the trainer takes no callbacks.

    Example:
        >>> import forgetmap as fm
        >>> fm.watch(trainer, "basics")  # doctest: +SKIP
        >>> trainer.train()  # doctest: +SKIP
    """
    if not hasattr(trainer, "add_callback") or not hasattr(trainer, "callback_handler"):
        raise UsageError(
            f"{type(trainer).__name__} does not accept callbacks",
            hint="pass a transformers Trainer or a TRL trainer.",
        )
    callback = ForgettingCallback(suite, **options)
    callback.report_through(trainer.callback_handler)
    trainer.add_callback(callback)
    return callback
