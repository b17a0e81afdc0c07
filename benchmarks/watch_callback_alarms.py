"""False alarms of real trainings: `fm.watch` inside `Trainer`, on a model that should lose nothing.

    python benchmarks/watch_callback_alarms.py START [--trainings N] [--steps N]

START is a start model of the tiny world (`forgetmap lab start --out START`). Each training draws
its own probe from the near and far questions and is (a) at learning rate 0, or (b) on replay only:
examples of the pool, with the answers of the start model, at a low rate. Then the model is
evaluated on all questions: the share of them that was forgotten is the truth. An alarm is false if
that is at most the margin plus the noise floor. Looks before the last one are compared with the
truth at the end, which is the worst of a training that drifts slowly.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainingArguments

RATES = {"rate 0": (0.0, 0.2), "replay only": (5e-5, 0.8)}
"""Learning rate, and share of the trainings: at rate 0 they are all the same."""
LOOKS = 5


def own_answers(recipe: Any) -> list[dict[str, Any]]:
    """Return the pool with answers of the start model: training on it teaches nothing new."""
    from forgetmap.lab.training import load_start
    from forgetmap.train import read_examples, sample_answers

    model, tokenizer = load_start(recipe.start)
    prompts = [tokenizer(row["prompt"]).input_ids for row in recipe.pool]
    answers = sample_answers(
        model, prompts, tokenizer, max_tokens=recipe.max_tokens, temperature=0.0, seed=0
    )
    rows = [
        {"prompt": row["prompt"], "completion": tokenizer.decode(answer, skip_special_tokens=True)}
        for row, answer in zip(recipe.pool, answers, strict=True)
    ]
    kept = [row for row in rows if row["completion"].strip()]
    examples = read_examples(kept, tokenizer, eos=False)
    return [{"input_ids": list(one.ids), "labels": one.labels} for one in examples]


def watch(
    recipe: Any, rows: Sequence[Any], rate: float, seed: int, steps: int, items: int
) -> tuple[int, float, float]:
    """Return alarms of one training, and the shares lost of all items and of the probe."""
    import forgetmap as fm
    from forgetmap.lab.measure import lab_suite
    from forgetmap.lab.training import PadRight, are_right, load_start
    from forgetmap.train import read_examples
    from forgetmap.train.probe_items import part_of_suite

    model, tokenizer = load_start(recipe.start)
    everything = read_examples(recipe.old_rows, tokenizer, eos=False)
    before = are_right(model, everything)
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=16, learning_rate=rate,
            report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
            use_cpu=True, dataloader_pin_memory=False, seed=seed, weight_decay=0.0,
        )  # fmt: skip
        trainer = Trainer(
            model, options, train_dataset=list(rows), processing_class=tokenizer,
            data_collator=PadRight(tokenizer.pad_token_id),
        )  # fmt: skip
        suite = part_of_suite(lab_suite(recipe), items, seed)
        live = fm.watch(
            trainer, suite, every=steps // LOOKS, quiet=True, kl=False, settings=recipe.settings
        )
        trainer.train()
        history = live.history
    after = are_right(model, everything)
    lost = sum(one and not other for one, other in zip(before, after, strict=True)) / len(before)
    return len(history.alarms), lost, history.curve[-1].total.forgotten or 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("start", type=Path)
    parser.add_argument("--trainings", type=int, default=200)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--items", type=int, default=150)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    from transformers.utils.logging import disable_progress_bar

    from forgetmap.lab.tiny_world import tiny_recipe

    disable_progress_bar()
    recipe = tiny_recipe(given.start)
    rows = own_answers(recipe)
    for kind, (rate, part) in RATES.items():
        began = time.perf_counter()
        alarms, lost, probed = [], [], []
        count_of_kind = round(part * given.trainings)
        for seed in range(count_of_kind):
            count, share, of_probe = watch(recipe, rows, rate, seed, given.steps, given.items)
            alarms.append(count)
            lost.append(share)
            probed.append(of_probe)
        harmless = [number for number, share in enumerate(lost) if share <= 0.025]
        print(
            f"{kind}: {count_of_kind} trainings of {given.steps} steps, {LOOKS} looks at "
            f"{given.items} items; lost {100 * min(lost):.1f} to {100 * max(lost):.1f} % of all "
            f"items ({len(harmless)} at most 2.5 %), {100 * max(probed):.1f} % of a probe at most; "
            f"a false alarm in {sum(alarms[number] > 0 for number in harmless)} of "
            f"{len(harmless)}, any in {sum(count > 0 for count in alarms)} "
            f"({time.perf_counter() - began:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
