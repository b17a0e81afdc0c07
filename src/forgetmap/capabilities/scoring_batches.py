"""Scores many responses at once: Arrow in, Arrow out, the same in this process or in another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa

from forgetmap.errors import FieldError
from forgetmap.scoring import (
    UNSCORED,
    Answered,
    Fields,
    RuleScorer,
    Scorer,
    find_scorer,
    outcome_of,
    undecided,
    values_of,
)

GIVEN = ("item", "repeat", "question", "options", "response", "material", "gold", "gold_index",
         "finish_reason")  # fmt: skip
"""Columns of a batch of responses."""
SCORED = pa.schema(
    [
        ("item", pa.string()),
        ("repeat", pa.int32()),
        ("metric", pa.string()),
        ("score", pa.float64()),
        ("outcome", pa.string()),
        ("answer", pa.string()),
        ("choice", pa.string()),
        ("error", pa.string()),
    ]
)


def score_batch(name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Score a batch by the rule of this name: what workers are asked for."""
    return score_rows(cast("RuleScorer", find_scorer(name)), batch)


def score_rows(scorer: RuleScorer, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Score a batch by a rule; an item that cannot be used is an error of its own."""
    scored = Scored(scorer)
    for row in batch.to_pylist():
        sample = answered(row)
        scored.add(row, None if sample is None else values_of(scorer, sample))
    return scored.batch()


def answered(row: Mapping[str, Any]) -> Answered | None:
    """What a scorer gets to see of a row; None where there is no response."""
    if row["response"] is None:
        return None
    material = json.loads(row["material"]) if row["material"] else {}
    if row["gold_index"] is not None:
        material.setdefault("gold_index", row["gold_index"])
    question = row["question"]
    return Answered(
        response=row["response"],
        gold=material.get("gold", row["gold"]),
        question=tuple(material.get("turns", () if question is None else (question,))),
        options=tuple(row["options"] or ()),
        material=material,
        finish_reason=row["finish_reason"],
    )


def failed(scorer: Scorer, error: FieldError) -> Fields:
    """All values of a scorer missing, because the item cannot be used."""
    return dict.fromkeys(scorer.fields, undecided(error.message))


class Scored:
    """Collects the values of one scorer as rows."""

    def __init__(self, scorer: Scorer) -> None:
        self._fields = tuple(scorer.fields)
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: Mapping[str, Any], fields: Fields | None) -> None:
        """Add the values of one response; without any all are missing."""
        found = fields if fields is not None else dict.fromkeys(self._fields, UNSCORED)
        key = (row["item"], row["repeat"])
        for name, judged in found.items():
            values = (judged.score, outcome_of(judged), judged.answer, judged.choice, judged.error)
            self._rows.append((*key, name, *values))

    def batch(self) -> pa.RecordBatch:
        """All rows so far."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(SCORED)
        arrays = [
            _array(list(column), field.type) for column, field in zip(columns, SCORED, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCORED)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half of a character that takes two
        sound = [
            v.encode("utf-8", "replace").decode() if v else v for v in cast("list[str]", values)
        ]
        return pa.array(sound, kind)
