"""Every row of the table of estimators appears in all outputs and docs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import forgetmap as fm
from estimator_runs import as_table, rows_of
from forgetmap.comparison import (
    Comparison,
    Estimator,
    all_estimators,
    estimator_names,
    estimator_table,
    number_estimators,
)
from forgetmap.comparison.loss import FROM_COUNTS
from forgetmap.comparison.result import GroupResult, Rule
from forgetmap.errors import UsageError

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Repeats of both models, and every choice recorded: all estimators have a value."""
    return fm.compare(as_table(rows_of("base")), as_table(rows_of("tuned")))


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return fm.write_report(comparison, path).read_text(encoding="utf-8")


@pytest.mark.parametrize("row", number_estimators(), ids=lambda row: row.name)
def test_an_estimator_is_everywhere(row: Estimator, comparison: Comparison) -> None:
    total = comparison.result.total
    estimate = total.estimates(row.name).forgetting
    assert estimate.value is not None
    written = json.loads(comparison.to_json())["total"]
    in_json = written if row.name == "raw" else written[row.name]
    in_json = in_json if row.only_losses else in_json["forgetting"]
    assert in_json["value"] == estimate.value
    assert comparison.result.total_macro.estimates(row.name).forgetting.value is not None
    table = comparison.tasks
    for column in (row.name, f"{row.name}_low", f"{row.name}_high"):
        assert column in table.column_names
    assert f"{row.name} " in repr(comparison).rpartition("estimators ")[2]
    assert row.name in fm.make_payload(comparison).rows.estimator
    assert row.name in estimator_names()


@pytest.mark.parametrize("row", all_estimators(), ids=lambda row: row.name)
def test_words_of_an_estimator_are_on_the_page_and_in_the_docs(row: Estimator, page: str) -> None:
    assert f'"{row.name}": {{"label": {json.dumps(row.label)}' in page
    assert f"| `{row.name}` | {row.formula} |" in estimator_table()
    assert estimator_table() in (DOCS / "estimators.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", all_estimators(), ids=lambda row: row.name)
def test_an_estimator_that_is_asked_for_is_the_headline(
    row: Estimator, comparison: Comparison
) -> None:
    if row.is_range:
        with pytest.raises(UsageError, match="gives a range, not a number"):
            fm.compare(comparison.before, comparison.after, estimator=row.name)
        return
    asked = fm.compare(comparison.before, comparison.after, estimator=row.name)
    total = asked.result.total
    assert total.headline.estimator == row.name
    # Repeats measure the noise, which is taken off what was counted.
    noise = total.noise_floor.value or 0.0 if row.name in FROM_COUNTS else 0.0
    value = total.estimates(row.name).forgetting.value
    less = None if value is None else pytest.approx(value - noise)
    assert total.headline.forgetting.value == less
    assert f"estimator {row.name} ({row.label})" in " ".join(repr(asked).split())


def test_results_and_schema_have_the_estimators_of_the_table() -> None:
    assert Rule.model_json_schema()["properties"]["estimator"]["enum"] == estimator_names()
    fields = GroupResult.model_fields
    for row in number_estimators():
        if row.name != "raw":
            assert fields[row.name].description == row.meaning


def test_ranks_are_different_and_one_always_fits() -> None:
    ranks = [row.rank for row in all_estimators() if row.rank is not None]
    assert len(ranks) == len(set(ranks))
    last = max(all_estimators(), key=lambda row: row.rank or 0)
    assert last.is_range
