"""Published values of two papers, from their sites, tables and files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from forgetmap.stats import Reals
from forgetmap.study.declaration import Study
from forgetmap.study.pair_table import TOTAL, StudyTable, pair_facts
from forgetmap.study.read import parse_study
from forgetmap.study.templates import study_template

SEEDS = 3
CEILING = 2
"""Index of the ceiling in the columns of an effect: value, deviation, ceiling."""


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """Published values of one pair, as shares of all items.

    Attributes:
        label: label in the paper.
        before: id of the model before in the study; for merges, the reference.
        after: id of the model after, or of the merge.
        forgetting: forgetting by category, including the total.
        backward_transfer: backward transfer by category, including the total.
        forgetting_sd: standard deviation of the total over seeds.
        columns: by category, for forgetting and then transfer: value, deviation, ceiling.
    """

    label: str
    before: str
    after: str
    forgetting: dict[str, float]
    backward_transfer: dict[str, float]
    forgetting_sd: float
    columns: dict[str, list[float | None]]


@dataclass(frozen=True, slots=True)
class PublishedDrift:
    """Relative changes of capabilities in percent, by model."""

    capabilities: tuple[str, ...]
    models: dict[str, Reals]
    source: dict[str, str]


@cache
def _read(name: str) -> dict[str, Any]:
    path = files("forgetmap.study").joinpath("data", f"{name}_published.json")
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def published_source() -> dict[str, str]:
    """Return the source of the values on post-training."""
    return dict(_read("post_forget")["source"])


def published_study() -> Study:
    """Return the study with published values."""
    return parse_study(study_template("post-forget"), "post-forget.toml")


def published_pairs() -> list[PublishedPair]:
    """Return every comparison with published values: 31 pairs, then merges."""
    return [_pair(entry) for entry in _read("post_forget")["comparisons"]]


def published_table() -> StudyTable:
    """Return the published values of the 31 pairs, with their facts."""
    study = published_study()
    values = {(pair.before, pair.after): pair for pair in published_pairs()}
    pairs = [values[pair.before, pair.after] for pair in study.pairs]
    categories = (TOTAL, *(name for name in pairs[0].forgetting if name != TOTAL))
    return StudyTable(
        facts=pair_facts(study, study.pairs),
        categories=categories,
        forgetting=_matrix([pair.forgetting for pair in pairs], categories),
        backward_transfer=_matrix([pair.backward_transfer for pair in pairs], categories),
    )


def published_drift() -> PublishedDrift:
    """Return the published relative changes of capabilities."""
    content = _read("captrack")
    models = {name: np.asarray(values) for name, values in content["models"].items()}
    return PublishedDrift(tuple(content["capabilities"]), models, content["source"])


def _pair(entry: dict[str, Any]) -> PublishedPair:
    rows = {TOTAL: entry["total"], **entry["categories"]}
    return PublishedPair(
        label=entry["label"],
        before=_short(entry["before"]),
        after=_merge_id(entry) if entry["after"].startswith("merge[") else _short(entry["after"]),
        forgetting={name: row[0] for name, row in rows.items()},
        backward_transfer={name: row[3] for name, row in rows.items()},
        forgetting_sd=entry["total"][1],
        columns=rows,
    )


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _merge_id(entry: dict[str, Any]) -> str:
    """Return the id in the study for `merge[Linear (0.2)](A + B)`."""
    later = _short(entry["after"].rpartition(" + ")[2].rstrip(")"))
    short = "coder" if "Coder" in later else later.removesuffix("-7B").lower()
    method, share = entry["label"].rstrip(")").split(" (")
    return f"{short}-{method.lower()}-{share}"


def _matrix(rows: list[dict[str, float]], categories: tuple[str, ...]) -> Reals:
    return np.asarray([[row.get(name, np.nan) for name in categories] for row in rows], float)
