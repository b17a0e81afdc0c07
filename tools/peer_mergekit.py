"""Runs mergekit on many configurations in one process: JSON in, folders out.

    python tools/peer_mergekit.py JOBS.json

Runs in a separate environment with mergekit. A job names a configuration file and a folder; with
`shared_masks` the random numbers of DARE are those of `shared_generator`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch


def shared_generator(density: float) -> torch.Generator:
    """Return random numbers that both sides can generate, from the density."""
    return torch.Generator().manual_seed(round(density * 1_000_000))


@contextmanager
def shared_masks() -> Iterator[list[float]]:
    """Make torch.bernoulli use `shared_generator`; yield the requested densities."""
    asked: list[float] = []
    real = torch.bernoulli

    def bernoulli(chances: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        density = chances.flatten()[0].item()
        asked.append(density)
        drawn = torch.rand(chances.shape, generator=shared_generator(density)) < density
        return drawn.to(chances.dtype)

    torch.bernoulli = bernoulli  # type: ignore[assignment]
    try:
        yield asked
    finally:
        torch.bernoulli = real


def main() -> None:
    """Do all jobs, and print whether each succeeded."""
    for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        if job["shared_masks"]:
            with shared_masks() as asked:
                _merge(job)
            if not asked:
                sys.exit("mergekit drew nothing through torch.bernoulli: the masks differ")
        else:
            _merge(job)
        print("merged", job["out"], flush=True)


def _merge(job: dict[str, Any]) -> None:
    import yaml  # type: ignore[import-untyped]
    from mergekit.config import MergeConfiguration  # type: ignore[import-not-found]
    from mergekit.merge import run_merge  # type: ignore[import-not-found]
    from mergekit.options import MergeOptions  # type: ignore[import-not-found]

    text = Path(job["config"]).read_text(encoding="utf-8")
    run_merge(
        MergeConfiguration.model_validate(yaml.safe_load(text)),
        job["out"],
        MergeOptions(copy_tokenizer=False, write_model_card=False, quiet=True),
    )


if __name__ == "__main__":
    main()
