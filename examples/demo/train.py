"""Teach the demo's start model new facts, twice: plainly, and protected against forgetting.

Run: .venv/bin/python examples/demo/train.py --start demo/models/start --out demo/models
     (needs `pip install "forgetmap[train]"`; about a minute on two cores)

Both are ordinary trainings of transformers' `Trainer` with two lines more: `fm.watch` asks the live
model old questions as it goes, `fm.protect` adds a mitigation. Both stop as soon as 95 % of the new
facts are known, so what they forgot can be compared. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

import forgetmap as fm
from forgetmap.lab import LabRecipe, StopAtScore, load_start, supervised_trainer, tiny_recipe
from forgetmap.train import KLToStart, Mitigation

RATE = 4e-4
SEED = 0
"""The facts that the suite `world-badges` asks for."""
COST = 0.1
"""Share of the training time that may go into looking."""


def fine_tune(recipe: LabRecipe, out: Path, *mitigations: Mitigation) -> None:
    """Train until the new facts are known, and save the model beside its history."""
    model, tokenizer = load_start(recipe.start)
    trainer = supervised_trainer(
        recipe, model, tokenizer, rate=RATE, seed=SEED, folder=out / "trainer"
    )
    fm.watch(trainer, "world-near", cost=COST, out=out / "forgetting")
    if mitigations:
        fm.protect(trainer, *mitigations)
    stop = StopAtScore.of(recipe, SEED, tokenizer)
    trainer.add_callback(stop)
    trainer.train()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "new-task.json").write_text(json.dumps({"score": stop.score}), encoding="utf-8")
    print(f"{out}: knows {stop.score:.1%} of the new facts after {stop.step} steps")


def main() -> None:
    """Both trainings from the same start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=Path, default=Path("demo/models/start"))
    parser.add_argument("--out", type=Path, default=Path("demo/models"))
    arguments = parser.parse_args()
    torch.set_num_threads(2)  # the same sums in the same order on every machine
    recipe = tiny_recipe(arguments.start)
    fine_tune(recipe, arguments.out / "plain")
    prompts = [{"prompt": row["prompt"]} for row in recipe.pool]
    fine_tune(recipe, arguments.out / "protected", KLToStart(prompts, max_tokens=recipe.max_tokens))


if __name__ == "__main__":
    main()
