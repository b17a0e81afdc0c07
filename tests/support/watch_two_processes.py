"""Training in two processes over gloo, with and without watching: `python FILE START FOLDER`."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import torch
from torch.multiprocessing.spawn import spawn

warnings.simplefilter("ignore")


def train(rank: int, start: str, folder: str, port: int) -> None:
    """Train in one of two processes and print its results."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    import forgetmap as fm
    from small_suites import small_suite
    from tiny_trainers import make_trainer

    weights = []
    for name in ("alone", "out"):
        trainer = make_trainer(
            "plain", Path(start), Path(folder, name), ddp_backend="gloo",
            ddp_find_unused_parameters=False, per_device_train_batch_size=2,
        )  # fmt: skip
        if name == "out":
            fm.watch(trainer, small_suite(6), every=2, quiet=True)
        trainer.train()
        weights.append([value.clone() for value in trainer.model.state_dict().values()])
    same = all(torch.equal(one, other) for one, other in zip(*weights, strict=True))
    history = trainer.state.log_history
    logged = [line["step"] for line in history if "loss" in line]
    looks = [line["step"] for line in history if "forgetting/total" in line]
    words = "same weights" if same else "other weights"
    print(f"{words}; logged {logged} and looks {looks}", flush=True)  # noqa: T201
    # Without this, destructors and a thread of gloo sometimes deadlock on the GIL.
    os._exit(0)


if __name__ == "__main__":
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    spawn(train, args=(sys.argv[1], sys.argv[2], number), nprocs=2)  # type: ignore[no-untyped-call]
