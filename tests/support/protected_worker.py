"""Train a tiny model with penalties, alone or as one of several processes; save its weights.

Usage: protected_worker.py FOLDER BATCH
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

import forgetmap as fm
from forgetmap.train import L2SP, GradientProjection, KLToStart
from protected_training import make_trainer, prompts


def train_protected(folder: Path, batch: int) -> None:
    together = {"ddp_backend": "gloo"} if "WORLD_SIZE" in os.environ else {}
    trainer = make_trainer(
        folder, max_steps=3, per_device_train_batch_size=batch, max_grad_norm=0.5,
        gradient_accumulation_steps=2, optim="sgd", learning_rate=0.05, **together,
    )  # fmt: skip
    run = fm.protect(
        trainer,
        KLToStart(prompts(16), max_tokens=3, batch_size=batch, weight=5.0),
        GradientProjection(prompts(16, seed=6), max_tokens=3, batch_size=batch),
        L2SP(0.1),
    )
    trainer.train()
    if run.rank == 0:
        torch.save(run.model.state_dict(), folder / f"weights-{run.processes}.pt")


if __name__ == "__main__":
    train_protected(Path(sys.argv[1]), int(sys.argv[2]))
    # Without this, destructors and a thread of gloo sometimes deadlock on the GIL.
    os._exit(0)
