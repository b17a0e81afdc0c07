"""The public function `watch`."""

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
    """Monitor forgetting during the next `trainer.train()`.

    Works with `Trainer` of transformers and the trainers of TRL. The model is evaluated at step 0,
    and then as often as the cost allows. It is not changed: the weights after training are
    bit-for-bit the same.

    Args:
        trainer: the trainer, before training.
        suite: name of a suite, a file of items, a probe, or a `Suite`.
        cost: maximum time in the probe as a share of the training time; 0.05.
        every: number of steps between looks, instead of a cost limit.
        out: folder for run folders and `watch.json`; `forgetting` in the trainer's output folder.
        settings: settings of the evaluation.
        margin: share of all items that may be lost without an alarm; 0.02.
        noise_floor: share of answers that batching and hardware flip one way at most, if you know
            it: adds a limit that holds only if this is true.
        alpha: probability of any false alarm in a training; 0.025.
        on_alarm: `log`, `stop` the training, or `lower-lr`.
        lr_factor: factor of the learning rate with `lower-lr`; 0.5.
        keep_best: keep the weights of the latest look that forgot at most the margin.
        kl: also measure the KL to the start model; True.
        tokenizer: tokenizer, if the trainer has none.
        seed: random seed for choosing items if not all are affordable.
        overwrite: replace the history of another training in the same folder.
        quiet: print nothing.

    Returns:
        The callback, with the attributes `history` and `folder`.

    Raises:
        FieldError: an item has no right answer.
        UsageError: an option is invalid, or the trainer does not accept callbacks.

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
