"""Estimates from the answers to a probe, and their agreement with a full run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

from forgetmap.comparison import LEVEL, make_rule
from forgetmap.errors import FieldError, UsageError
from forgetmap.evaluation import PROBE_COLUMN, table_rows
from forgetmap.probe.choose import By, group_of
from forgetmap.probe.stable import DEFAULT_LEAD, Key, answered_items, known_stably, open_repeats
from forgetmap.sources import open_run
from forgetmap.stats import SampledShare, alarm_p, family_wise, sampled_share


@dataclass(frozen=True, slots=True)
class Full:
    """Results of full runs for the same group.

    Attributes:
        share: lost share of the stable items, which the probe estimates.
        forgetting: lost share of all items, stable or not.
        unseen: the part of it on items that are not stable, which a probe cannot detect.
        gained: gained share of all items, which a probe cannot detect.
    """

    share: float
    forgetting: float
    unseen: float
    gained: float


@dataclass(frozen=True, slots=True)
class GroupFinding:
    """Result of a probe for one group.

    Attributes:
        name: name of the group.
        lost: lost share of the stably known items, with its bounds.
        missing: number of chosen items without a scored answer.
        floor: wrong share of an unchanged model.
        p: probability of this many wrong answers from an unchanged model.
        alarm: whether p is significant, corrected for all groups.
        full: results of full runs; None if there are none.
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
        """Whether the interval contains the result of full runs; None if either is missing."""
        if self.full is None or not self.lost.asked:
            return None
        near = 1e-9
        return self.lost.low - near <= self.full.share <= self.lost.high + near


@dataclass(frozen=True, slots=True)
class ItemDesign:
    """One line of a probe."""

    key: Key
    group: str
    known: int
    floor: float
    by: By
    lead: float


def read_design(path: Path) -> list[ItemDesign]:
    """Read how the items of a probe were chosen."""
    designs = []
    for line, row in table_rows(path):
        mark = row.get(PROBE_COLUMN)
        try:
            designs.append(_design((str(row.get("task")), str(row.get("id"))), mark))
        except (KeyError, TypeError, ValueError) as error:
            raise FieldError(
                "not a line of a probe file",
                file=str(path),
                line=line,
                field=PROBE_COLUMN,
                hint="give the file written by `forgetmap probe RUN --out FILE`.",
            ) from error
    return designs


def _design(key: Key, mark: Any) -> ItemDesign:
    if mark["by"] not in get_args(By):
        raise ValueError
    return ItemDesign(
        key=key,
        group=str(mark["group"]),
        known=int(mark["known"]),
        floor=float(mark["floor"]),
        by=cast("By", mark["by"]),
        lead=float(mark.get("margin", DEFAULT_LEAD)),
    )


def check_probe(
    probe: Path,
    run: Any,
    *,
    before: Sequence[Any] = (),
    full: Any = None,
    metric: str | None = None,
    level: float = LEVEL,
) -> list[GroupFinding]:
    """Evaluate the run of a model on a probe, by group.

    Args:
        probe: the file of items.
        run: run of the model after on these items; further items are ignored.
        before: the full runs that the probe was chosen from.
        full: a full run of the model after, to compare with.
        metric: metric to use, if a run has several.
        level: confidence level of the bounds; an unchanged model raises any alarm at all with a
            probability of at most 1 - level.

    Raises:
        UsageError: no item of the probe is in the run, or the level is out of range.
    """
    make_rule({"level": level})
    designs = read_design(probe)
    answers = open_run(run)
    wrong = {item.key: 1 - item.share for item in answered_items(answers, metric)}
    if not any(design.key in wrong for design in designs):
        raise UsageError(
            f"{answers.name} has no scored answer to any item of {probe}",
            hint=f"run the model with --suite {probe} first.",
        )
    full_results = _full(designs, before, full, metric) if full is not None else {}
    names = sorted({design.group for design in designs})
    findings = [
        _finding(
            name,
            [design for design in designs if design.group == name],
            wrong,
            full_results.get(name),
            level,
        )
        for name in names
    ]
    adjusted = family_wise([finding.p for finding in findings])
    return [
        replace(finding, alarm=bool(p <= 1 - level))
        for finding, p in zip(findings, adjusted, strict=True)
    ]


def _finding(
    name: str,
    designs: Sequence[ItemDesign],
    wrong: Mapping[Key, float],
    full: Full | None,
    level: float,
) -> GroupFinding:
    tasks: dict[str, list[ItemDesign]] = {}
    for design in designs:
        tasks.setdefault(design.key[0], []).append(design)
    answers = {task: [wrong[d.key] for d in some if d.key in wrong] for task, some in tasks.items()}
    lost = sampled_share(
        [sum(values) for values in answers.values()],
        [len(values) for values in answers.values()],
        [some[0].known for some in tasks.values()],
        level=level,
    )
    count = sum(sum(values) for values in answers.values())
    floor = designs[0].floor
    p = alarm_p(count, lost.asked, floor) if lost.asked else 1.0
    return GroupFinding(name, lost, len(designs) - lost.asked, floor, p, alarm=False, full=full)


def _full(
    designs: Sequence[ItemDesign], before: Sequence[Any], full: Any, metric: str | None
) -> dict[str, Full]:
    """Compute the same shares from full runs, and the parts that a probe cannot detect."""
    if not before:
        raise UsageError(
            "--full needs --before",
            hint="pass the run from which the probe was chosen as --before.",
        )
    known = known_stably(open_repeats(before), lead=designs[0].lead, metric=metric)
    after = {item.key: item.share for item in answered_items(open_run(full), metric)}
    stable = {item.key for item in known.stable}
    groups: dict[str, list[tuple[float, float, bool]]] = {}
    for item in known.answered:
        if item.key in after:
            pair = (item.share, after[item.key], item.key in stable)
            groups.setdefault(group_of(item, designs[0].by), []).append(pair)
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


def findings_json(findings: Sequence[GroupFinding]) -> str:
    """Return all results as JSON."""
    groups = [
        asdict(finding) | {"agrees": finding.agrees, "lost": _without_nan(asdict(finding.lost))}
        for finding in findings
    ]
    return json.dumps({"groups": groups}, indent=2)


def _without_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    """Replace NaN by None, because JSON has no NaN."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}
