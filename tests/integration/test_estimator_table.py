"""Every row of the table of estimators appears in all outputs and docs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import forgetmap as fm
from backends import as_arrow
from estimator_oracle import Shape
from estimator_runs import rows_of
from forgetmap.comparison import (
    Comparison,
    Estimator,
    all_estimators,
    estimator_table,
    summarize,
)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Repeats of both models, and every choice recorded: all estimators have a value."""
    shape = Shape(repeats=2, clusters=True, items=16, ks=(3, 4, None))
    return fm.compare(as_arrow(rows_of("base", shape)), as_arrow(rows_of("tuned", shape)))


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return fm.write_report(comparison, path).read_text(encoding="utf-8")


@pytest.mark.parametrize("row", all_estimators(), ids=lambda row: row.name)
def test_an_estimator_is_everywhere(row: Estimator, comparison: Comparison, page: str) -> None:
    total = comparison.result.total
    estimate = total.estimates(row.name).forgetting
    assert estimate.value is not None
    written = json.loads(comparison.to_json())["total"]["estimators"][row.name]
    assert written["forgetting"]["value"] == estimate.value
    assert comparison.result.total_macro.estimates(row.name).forgetting.value is not None
    for column in (row.name, f"{row.name}_low", f"{row.name}_high"):
        assert column in comparison.tasks.column_names
    assert row.name in [figure.name for figure in summarize(comparison.result).estimators]
    # Of those that decide, the page shows the flips, and what all of them prove.
    shown = row.name if row.name == "flips" or row.role != "decides" else "proven"
    assert shown in fm.make_payload(comparison).rows.estimator
    assert json.dumps(row.label)[1:-1] in page
    assert f"| `{row.name}` | {row.formula} |" in estimator_table()
    assert estimator_table() in (DOCS / "estimators.md").read_text(encoding="utf-8")
