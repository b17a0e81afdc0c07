"""Callback for trainers of transformers and TRL that watches forgetting."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, Unpack

from transformers import TrainerCallback

from forgetmap.errors import UsageError
from forgetmap.evaluation import Suite
from forgetmap.train.actions import lower_learning_rate
from forgetmap.train.history import WatchHistory
from forgetmap.train.options import WatchOptions, make_watch_settings
from forgetmap.train.processes import decide_together
from forgetmap.train.reports import LOGGER, Reporters
from forgetmap.train.watcher import Moment, WatchDecision, Watcher


class ForgettingCallback(TrainerCallback):  # type: ignore[misc]
    """Evaluates a probe on the live model at step 0 and as often as the cost allows.

        trainer = SFTTrainer(..., callbacks=[ForgettingCallback("probe.jsonl")])

    `fm.watch(trainer, "probe.jsonl")` does the same and uses the loggers of the trainer; without a
    trainer, new loggers of the same kinds are created.

    Args:
        suite: name of a suite, a file of items, a probe, or a `Suite`.
        options: as for `fm.watch`.

    Attributes:
        history: the history so far, in the first process after training has started.
        folder: the folder of the history.

    Raises:
        FieldError: an item has no right answer.
        UsageError: an option is invalid.
    """

    def __init__(self, suite: str | Path | Suite, **options: Unpack[WatchOptions]) -> None:
        self._settings = make_watch_settings(suite, options)
        self._reporters = Reporters()
        self._watcher: Watcher | None = None
        self._loss: float | None = None
        self._next = 0
        self._looked = -1

    def report_through(self, handler: Any) -> None:
        """Pass values to the callbacks of a trainer instead of new loggers."""
        self._reporters = Reporters(handler)

    @property
    def history(self) -> WatchHistory:
        """The history so far."""
        return self._first.history

    @property
    def folder(self) -> Path:
        """The folder of the history."""
        return self._first.folder

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look at the start model, or resume the history of an interrupted training."""
        self._loss, self._looked = None, state.global_step
        model, tokenizer = given["model"], self._tokenizer(given)
        self._watcher = None

        def begin() -> WatchDecision:
            out = self._settings.out or Path(args.output_dir) / "forgetting"
            self._watcher = Watcher(self._settings, out, model, tokenizer)
            return self._watcher.begin(self._moment(state, given))

        self._next = 0
        self._act(begin, args, state, control, given)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look if a look is due."""
        if state.global_step < min(self._next, state.max_steps):
            return
        self._looked = state.global_step
        moment = self._moment(state, given)
        self._act(lambda: self._first.look_if_due(moment), args, state, control, given)

    def on_log(
        self, _args: Any, state: Any, _control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Store the training loss."""
        loss = (logs or {}).get("loss")
        if not isinstance(loss, int | float):
            return
        self._loss = float(loss) if math.isfinite(loss) else None
        if self._loss is None and self._watcher is not None:
            self._watcher.miss(state.global_step, "loss", f"the training loss is {loss}")

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look once more if training ended early, unless other weights were loaded."""
        if self._looked < state.global_step and not args.load_best_model_at_end:
            moment = self._moment(state, given)
            self._act(lambda: self._first.look_at_end(moment), args, state, control, given)
        if self._watcher is not None:
            self._watcher.write_rest()
        self._reporters.close()

    def _act(self, decide: Any, args: Any, state: Any, control: Any, given: dict[str, Any]) -> None:
        """Decide in the first process, act in all processes, and measure the time."""
        began = time.perf_counter()
        is_first = state.is_world_process_zero
        decision: WatchDecision = decide_together(decide, args.world_size, is_first=is_first)
        self._next = decision.next_step
        if decision.values is not None:
            problems = self._reporters.send(decision.values, args, state, control, given)
            for problem in problems:
                LOGGER.warning("a logger rejected the values: %s", problem)
                if self._watcher is not None:
                    self._watcher.miss(state.global_step, "logger", problem)
        if decision.stop:
            control.should_training_stop = True
            control.should_save = control.should_save or str(args.save_strategy) != "no"
        if decision.lr_factor is not None:
            lower_learning_rate(given["optimizer"], given["lr_scheduler"], decision.lr_factor)
        if self._watcher is not None:
            self._watcher.count(time.perf_counter() - began)

    @property
    def _first(self) -> Watcher:
        """The watcher, which exists only in the first process."""
        if self._watcher is None:
            raise UsageError(
                "this process has no history yet",
                hint="call trainer.train() first; with several processes, use the first.",
            )
        return self._watcher

    def _tokenizer(self, given: dict[str, Any]) -> Any:
        tokenizer = self._settings.tokenizer or given.get("processing_class")
        if tokenizer is None:
            raise UsageError(
                "the trainer has no tokenizer, which the probe needs",
                hint="pass processing_class= to the trainer, or tokenizer= here.",
            )
        return getattr(tokenizer, "tokenizer", tokenizer)  # processors contain a tokenizer

    def _moment(self, state: Any, given: dict[str, Any]) -> Moment:
        optimizer = given.get("optimizer")
        rate = optimizer.param_groups[0]["lr"] if optimizer is not None else None
        return Moment(
            step=state.global_step,
            max_steps=state.max_steps,
            epoch=state.epoch,
            learning_rate=None if rate is None else float(rate),
            loss=self._loss,
        )
