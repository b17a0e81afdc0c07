"""Estimates from the answers to a probe, and their agreement with a full run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

import narwhals as nw

from forgetmap.comparison import (
    LEVEL,
    MARGIN,
    ExchangeResult,
    GroupResult,
    Options,
    compare,
    make_rule,
)
from forgetmap.errors import FieldError, UsageError
from forgetmap.evaluation import PROBE_COLUMN, table_rows
from forgetmap.probe.choose import By, group_of
from forgetmap.probe.stable import DEFAULT_LEAD, Key, answered_items, join_repeats, known_stably
from forgetmap.records import Run
from forgetmap.sources import open_run
from forgetmap.stats import SampledShare, Verdict, look_share, sampled_share

SEPARATOR = "\x1f"
LEAST_PAIRED = 0.01
"""Items without an answer are counted and told, so they need not stop the check."""


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
        forgotten: share of the reliably known items that are wrong now, with its bounds; noise
            included.
        missing: number of chosen items without a scored answer.
        verdict: verdict on the chosen items; `cannot_tell` unless the model before was asked again
            after it had helped to choose them.
        low: what is proven to be lost of the chosen items.
        high: upper limit of it.
        margin: largest acceptable loss.
        exchange: items that went either way while accuracy held.
        full: results of full runs; None if there are none.
    """

    name: str
    forgotten: SampledShare
    missing: int
    verdict: Verdict = "cannot_tell"
    low: float | None = None
    high: float | None = None
    margin: float = MARGIN
    exchange: ExchangeResult | None = None
    full: Full | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether the interval contains the result of full runs; None if either is missing."""
        if self.full is None or not self.forgotten.asked:
            return None
        near = 1e-9
        return self.forgotten.low - near <= self.full.share <= self.forgotten.high + near


@dataclass(frozen=True, slots=True)
class ItemDesign:
    """One line of a probe."""

    key: Key
    group: str
    known: int
    by: By
    lead: float
    chosen_by: tuple[str | None, ...]


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
        by=cast("By", mark["by"]),
        lead=float(mark.get("margin", DEFAULT_LEAD)),
        chosen_by=tuple(mark.get("chosen_by", ())),
    )


def check_probe(
    probe: Path,
    run: Any,
    *,
    before: Any = None,
    look: int = 1,
    chosen_from: Sequence[Any] = (),
    full: Any = None,
    metric: str | None = None,
    level: float = LEVEL,
) -> list[GroupFinding]:
    """Evaluate the run of a model on a probe, by group.

    Answers that helped to choose the items are lucky, so they prove nothing: a verdict needs a run
    of the model before on the probe, made after it was chosen.

    Args:
        probe: the file of items.
        run: run of the model after on these items; further items are ignored.
        before: run of the model before on these items, made after they were chosen.
        look: which check with this probe it is; later checks are stricter.
        chosen_from: the full runs that the probe was chosen from, to compare with.
        full: a full run of the model after, to compare with.
        metric: metric to use, if a run has several.
        level: confidence level of the bounds and the verdicts.

    Raises:
        UsageError: no item of the probe is in the run, the run before helped to choose the items,
            or the level is out of range.
    """
    make_rule({"level": level, "look": look})
    designs = read_design(probe)
    answers = open_run(run)
    wrong = {item.key: 1 - item.share for item in answered_items(answers, metric)}
    if not any(design.key in wrong for design in designs):
        raise UsageError(
            f"{answers.name} has no scored answer to any item of {probe}",
            hint=f"run the model with --suite {probe} first.",
        )
    full_results = _full(designs, chosen_from, full, metric) if full is not None else {}
    groups: dict[str, list[ItemDesign]] = {}
    for design in designs:
        groups.setdefault(design.group, []).append(design)
    findings = [_finding(name, groups[name], wrong, level) for name in sorted(groups)]
    findings = [replace(each, full=full_results.get(each.name)) for each in findings]
    if before is None:
        return findings
    # A probe is made for many checks, so the first one has no more than half of the error rate.
    level = 1 - (1 - level) * look_share(look)
    options: Options = {
        "metric": metric, "level": level, "selected": False, "min_paired": LEAST_PAIRED
    }  # fmt: skip
    verdicts = _compare(groups, open_run(before), answers, options)
    return [_judged(finding, verdicts.get(finding.name)) for finding in findings]


def _compare(
    groups: Mapping[str, Sequence[ItemDesign]], before: Run, after: Run, options: Options
) -> dict[str, GroupResult]:
    """Compare two runs on the items of a probe; its groups are the categories."""
    chosen_by = {name for designs in groups.values() for name in designs[0].chosen_by}
    if before.info.run_id is not None and before.info.run_id in chosen_by:
        raise UsageError(
            f"{before.name} helped to choose the items, so its answers to them are lucky",
            hint="run the model before again, with the probe as --suite, and pass that run.",
        )
    result = compare(_only(before, groups), _only(after, groups), **options).result
    return {group.name: group for group in result.categories}


def _only(run: Run, groups: Mapping[str, Sequence[ItemDesign]]) -> Run:
    """Return the items of a probe, with their groups as categories."""
    key = nw.concat_str(nw.col("task"), nw.col("item").cast(nw.String), separator=SEPARATOR)
    category: nw.Expr = nw.lit(None, dtype=nw.String)
    for name, designs in groups.items():
        keys = [SEPARATOR.join(design.key) for design in designs]
        category = nw.when(key.is_in(keys)).then(nw.lit(name)).otherwise(category)
    scores = run.scores.with_columns(category=category)
    return replace(run, scores=scores.filter(~nw.col("category").is_null()))


def _judged(finding: GroupFinding, group: GroupResult | None) -> GroupFinding:
    if group is None:
        return finding
    return replace(
        finding,
        verdict=group.verdict,
        low=group.loss.low,
        high=group.loss.high,
        margin=group.margin,
        exchange=group.exchange,
    )


def _finding(
    name: str, designs: Sequence[ItemDesign], wrong: Mapping[Key, float], level: float
) -> GroupFinding:
    tasks: dict[str, list[ItemDesign]] = {}
    for design in designs:
        tasks.setdefault(design.key[0], []).append(design)
    answers = {task: [wrong[d.key] for d in some if d.key in wrong] for task, some in tasks.items()}
    forgotten = sampled_share(
        [sum(values) for values in answers.values()],
        [len(values) for values in answers.values()],
        [some[0].known for some in tasks.values()],
        level=level,
    )
    return GroupFinding(name, forgotten, len(designs) - forgotten.asked)


def _full(
    designs: Sequence[ItemDesign], chosen_from: Sequence[Any], full: Any, metric: str | None
) -> dict[str, Full]:
    """Compute the same shares from full runs, and the parts that a probe cannot detect."""
    if not chosen_from:
        raise UsageError(
            "--full needs --chosen-from",
            hint="pass the run from which the probe was chosen as --chosen-from.",
        )
    before = join_repeats([open_run(source) for source in chosen_from])
    known = known_stably(before, lead=designs[0].lead, metric=metric)
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
        asdict(finding)
        | {"agrees": finding.agrees, "forgotten": _without_nan(asdict(finding.forgotten))}
        for finding in findings
    ]
    return json.dumps({"groups": groups}, indent=2)


def _without_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    """Replace NaN by None, because JSON has no NaN."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}
