"""Several seeds of the same model and decoding are repeats of one run."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw

from forgetmap.errors import ManifestError
from forgetmap.records.run import Frame, Run

SAME = ("model", "stage", "harness", "template_hash", "system_prompt_hash", "protocol", "decoding")


def as_repeats(runs: Sequence[Run], *, origin: str) -> Run:
    """One run whose repeats are those of all `runs`, one after the other.

    Raises:
        ManifestError: they are not runs of the same model under the same conditions.
    """
    first = runs[0]
    for run in runs[1:]:
        for field in SAME:
            ours, theirs = getattr(first.info, field), getattr(run.info, field)
            if ours != theirs:
                raise ManifestError(
                    f"{first.name} and {run.name} differ in {field}: {ours} and {theirs}",
                    file=origin,
                    field=field,
                    hint="only seeds of one model are repeats; compare other runs one by one.",
                )
    counts = [_repeats(run) for run in runs]
    starts = [sum(counts[:index]) for index in range(len(runs))]
    scores = [_shifted(run.scores, start) for run, start in zip(runs, starts, strict=True)]
    texts = [
        _shifted(run.texts, start)
        for run, start in zip(runs, starts, strict=True)
        if run.texts is not None
    ]
    seeds = [seed for run in runs for seed in run.info.seeds]
    return Run(
        info=first.info.model_copy(update={"seeds": seeds}),
        scores=nw.concat(_common(scores)),
        texts=nw.concat(_common(texts)) if len(texts) == len(runs) else None,
        name=first.info.run_id or origin.rstrip("/").rsplit("/", 1)[-1],
        origin=origin,
    )


def _repeats(run: Run) -> int:
    if "repeat" not in run.columns:
        return 1
    return int(run.scores.select(nw.col("repeat").max()).collect().item() or 0) + 1


def _shifted(frame: Frame, start: int) -> Frame:
    names = frame.collect_schema().names()
    repeat = nw.col("repeat") if "repeat" in names else nw.lit(0)
    return frame.with_columns(repeat=(repeat + start).cast(nw.Int32))


def _common(frames: list[Frame]) -> list[Frame]:
    shared = set.intersection(*(set(frame.collect_schema().names()) for frame in frames))
    order = [name for name in frames[0].collect_schema().names() if name in shared]
    return [frame.select(*order) for frame in frames]
