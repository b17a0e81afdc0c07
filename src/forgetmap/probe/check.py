"""What the answers to a probe say, and whether a full run says the same."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast, get_args

from forgetmap.errors import FieldError, UsageError
from forgetmap.evaluation import MARK, table_rows
from forgetmap.probe.choose import By, group_of
from forgetmap.probe.stable import MARGIN, Key, asked_items, known_stably, open_repeats
from forgetmap.sources import open_run
from forgetmap.stats import SampledShare, alarm_p, family_wise, sampled_share

ALARM = 0.05


@dataclass(frozen=True, slots=True)
class Full:
    """What full runs say of the same group.

    Attributes:
        share: lost of the stable items; what the probe estimates.
        forgetting: lost of all items, stable or not.
        unseen: the part of it on items that are not stable, which no probe sees.
        gained: of all items, which no probe sees.
    """

    share: float
    forgetting: float
    unseen: float
    gained: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe says of one group.

    Attributes:
        name: of the group.
        lost: share of the stably known items, with its limits.
        missing: chosen items without a scored answer.
        floor: share that an unchanged model would have wrong.
        p: chance of so many wrong answers from an unchanged model.
        alarm: whether that is too small to believe, all groups considered.
        full: what full runs say; None if there are none.
    """

    name: str
    lost: SampledShare
    missing: int
    floor: float
    p: float
    alarm: bool
    full: Full | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether the limits hold what full runs say; None if either says nothing."""
        if self.full is None or not self.lost.asked:
            return None
        near = 1e-9
        return self.lost.low - near <= self.full.share <= self.lost.high + near


@dataclass(frozen=True, slots=True)
class Design:
    """One line of a probe."""

    key: Key
    group: str
    known: int
    floor: float
    by: By
    margin: float


def read_design(path: Path) -> list[Design]:
    """How the items of a probe were chosen."""
    designs = []
    for line, row in table_rows(path):
        mark = row.get(MARK)
        try:
            designs.append(_design((str(row.get("task")), str(row.get("id"))), mark))
        except (KeyError, TypeError, ValueError) as error:
            raise FieldError(
                "this is no line of a probe",
                file=str(path),
                line=line,
                field=MARK,
                hint="give the file that `forgetmap probe RUN --out FILE` wrote.",
            ) from error
    return designs


def _design(key: Key, mark: Any) -> Design:
    if mark["by"] not in get_args(By):
        raise ValueError
    return Design(
        key=key,
        group=str(mark["group"]),
        known=int(mark["known"]),
        floor=float(mark["floor"]),
        by=cast("By", mark["by"]),
        margin=float(mark.get("margin", MARGIN)),
    )


def check_probe(
    probe: Path,
    run: Any,
    *,
    before: Sequence[Any] = (),
    full: Any = None,
    metric: str | None = None,
) -> list[Finding]:
    """What the run of a model on a probe says of each group.

    Args:
        probe: the file of items.
        run: of the model after, on these items; further items in it are not looked at.
        before: the full runs that the probe was chosen from.
        full: a full run of the model after, to compare with.
        metric: where a run has several.

    Raises:
        UsageError: no item of the probe is in the run.
    """
    designs = read_design(probe)
    found = open_run(run)
    wrong = {each.key: 1 - each.share for each in asked_items(found, metric)}
    if not any(each.key in wrong for each in designs):
        raise UsageError(
            f"{found.name} has no scored answer to any item of {probe}",
            hint=f"run the model with --suite {probe} first.",
        )
    told = _full(designs, before, full, metric) if full is not None else {}
    names = sorted({each.group for each in designs})
    findings = [
        _finding(name, [each for each in designs if each.group == name], wrong, told.get(name))
        for name in names
    ]
    adjusted = family_wise([each.p for each in findings])
    return [
        Finding(each.name, each.lost, each.missing, each.floor, each.p, bool(p <= ALARM), each.full)
        for each, p in zip(findings, adjusted, strict=True)
    ]


def _finding(
    name: str, designs: Sequence[Design], wrong: Mapping[Key, float], full: Full | None
) -> Finding:
    tasks: dict[str, list[Design]] = {}
    for each in designs:
        tasks.setdefault(each.key[0], []).append(each)
    had = {task: [wrong[d.key] for d in some if d.key in wrong] for task, some in tasks.items()}
    lost = sampled_share(
        [sum(values) for values in had.values()],
        [len(values) for values in had.values()],
        [some[0].known for some in tasks.values()],
    )
    count = sum(sum(values) for values in had.values())
    floor = designs[0].floor
    p = alarm_p(count, lost.asked, floor) if lost.asked else 1.0
    return Finding(name, lost, len(designs) - lost.asked, floor, p, alarm=False, full=full)


def _full(
    designs: Sequence[Design], before: Sequence[Any], full: Any, metric: str | None
) -> dict[str, Full]:
    """The same shares from full runs, and what a probe cannot see of them."""
    if not before:
        raise UsageError(
            "a full run of the model after alone does not say what was known",
            hint="give the run that the probe was chosen from with --before.",
        )
    known = known_stably(open_repeats(before), margin=designs[0].margin, metric=metric)
    after = {each.key: each.share for each in asked_items(open_run(full), metric)}
    stable = {each.key for each in known.stable}
    groups: dict[str, list[tuple[float, float, bool]]] = {}
    for each in known.asked:
        if each.key in after:
            pair = (each.share, after[each.key], each.key in stable)
            groups.setdefault(group_of(each, designs[0].by), []).append(pair)
    return {name: _summed(pairs) for name, pairs in groups.items() if any(p[2] for p in pairs)}


def _summed(pairs: Sequence[tuple[float, float, bool]]) -> Full:
    n = len(pairs)
    lost = [(b * (1 - a), sure) for b, a, sure in pairs]
    among = [1 - a for _, a, sure in pairs if sure]
    return Full(
        share=sum(among) / len(among),
        forgetting=sum(value for value, _ in lost) / n,
        unseen=sum(value for value, sure in lost if not sure) / n,
        gained=sum((1 - b) * a for b, a, _ in pairs) / n,
    )


def findings_json(findings: Sequence[Finding]) -> str:
    """All of it."""
    told = [
        asdict(each) | {"agrees": each.agrees, "lost": _without_nan(asdict(each.lost))}
        for each in findings
    ]
    return json.dumps({"groups": told}, indent=2)


def _without_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no word for it."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}
