"""Hand-made runs of a lab."""

from __future__ import annotations

from forgetmap.lab.result import Divergences, LabCell, LabRun


def make_run(
    method: str = "sft",
    *,
    rate: float = 0.1,
    seed: int = 0,
    lost: tuple[int, int] = (20, 10),
    strength: float = 0.0,
    score: float = 0.95,
    reached: bool = True,
    compute: int = 1000,
    diverged: bool = False,
) -> LabRun:
    """Return a run with 100 near and 100 far items known before; none if it diverged."""
    cells = [
        LabCell(part=part, category=part.title(), items=125, known=100, forgotten=count, gained=5)
        for part, count in zip(("near", "far"), lost, strict=True)
    ]
    kl = Divergences(
        old_forward=sum(lost) / 100, old_reverse=sum(lost) / 50, new_forward=1.0, new_reverse=2.0
    )
    return LabRun(
        method=method, strength=strength, rate=rate, seed=seed,
        score=None if diverged else score, reached=reached and not diverged, steps=10,
        compute=compute, seconds=1.0, cells=[] if diverged else cells,
        kl=None if diverged else kl, diverged=diverged,
        folder=f"{method}-{strength:g}-rate{rate:g}-seed{seed}",
    )  # fmt: skip
