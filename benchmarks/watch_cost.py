"""What watching costs: time of a watched training against the same one without it, in the same run.

    python benchmarks/watch_cost.py [--cost 0.05] [--steps N] [--rounds N]

The same training (`Trainer`, a small Llama, random text) is run without and with `fm.watch`, in
turn. Seconds are processor time, as other programs may be running, and wall-clock time. The ratio
is the extra time of the watched training relative to the other one; the value in `watch.json` is
printed beside it.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from watch_speed import make_model

TEXT, BATCH = 96, 16


def train(suite: Any, folder: Path, steps: int, cost: float | None) -> tuple[float, float, Any]:
    """Return processor and wall-clock seconds, and the history."""
    from transformers import Trainer, TrainingArguments

    import forgetmap as fm

    model, tokenizer = make_model(suite, 128, 4)
    generator = torch.Generator().manual_seed(0)
    rows = [
        {"input_ids": row, "labels": row}
        for row in torch.randint(2, len(tokenizer), (512, TEXT), generator=generator)
    ]
    options = TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=BATCH, report_to=[],
        save_strategy="no", disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False,
        logging_steps=50, learning_rate=1e-4, bf16=False,
    )  # fmt: skip
    trainer = Trainer(model, options, train_dataset=rows, processing_class=tokenizer)
    seen = fm.watch(trainer, suite, cost=cost, quiet=True) if cost else None
    began = time.process_time(), time.perf_counter()
    trainer.train()
    return time.process_time() - began[0], time.perf_counter() - began[1], seen


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cost", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--items", type=int, default=200)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    from forgetmap.evaluation import load_suite
    from forgetmap.train.probe_items import part_of_suite

    suite = part_of_suite(load_suite("world"), given.items, seed=0)
    folder = Path(tempfile.mkdtemp())
    train(suite, folder / "first", 5, 0.5)  # imports and so on
    ratios = []
    for number in range(given.rounds):
        alone_cpu, alone, _ = train(suite, folder / f"alone-{number}", given.steps, None)
        with_cpu, watched, seen = train(suite, folder / f"with-{number}", given.steps, given.cost)
        history = seen.history
        ratios.append(with_cpu / alone_cpu - 1)
        last = history.curve[-1]
        print(
            f"alone {alone_cpu:.1f} s ({alone:.1f} s on the clock), watched {with_cpu:.1f} s "
            f"({watched:.1f} s): {100 * ratios[-1]:+.1f} % ({100 * (watched / alone - 1):+.1f} %); "
            f"asked for {100 * given.cost:g} %, watch.json says "
            f"{100 * last.probed_seconds / last.trained_seconds:.1f} % at step {last.step}; "
            f"{len(history.curve)} looks at {history.items} of {history.items_of_suite} items, "
            f"at steps {[look.step for look in history.curve]}; "
            f"gaps {[gap.message for gap in history.gaps]}",
            flush=True,
        )
    print(f"median {100 * statistics.median(ratios):+.1f} %")


if __name__ == "__main__":
    main()
