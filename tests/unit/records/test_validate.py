"""Faults and their positions: checks of a whole table and of single rows agree."""

from __future__ import annotations

import narwhals as nw
import pyarrow as pa
import pytest

from forgetmap.errors import FieldError, UnreadableError
from forgetmap.records.engine import connection
from forgetmap.records.manifest import RunInfo
from forgetmap.records.run import Run
from forgetmap.records.tables import survey
from forgetmap.records.validate import check_run, reading
from run_folders import results, run_of


def lazily_broken() -> Run:
    """A run that fails only when it is read: one of its scores is text that is no number."""
    relation = connection().sql(
        "SELECT 't' AS task, i::VARCHAR AS item, "
        "CASE WHEN i < 3 THEN '1' ELSE 'x' END::DOUBLE AS score FROM range(5) AS r(i)"
    )
    return Run(RunInfo(), nw.from_native(relation), None, "broken", "the relation")


def test_what_the_engine_says_late_is_a_typed_error_too() -> None:
    for read in (check_run, survey):
        with pytest.raises(UnreadableError) as caught:
            read(lazily_broken())
        assert caught.value.file == "the relation"


def test_the_one_of_two_runs_that_is_to_blame_is_named() -> None:
    good, bad = run_of(results([1, 0])), run_of(results([1, 7]))
    with pytest.raises(FieldError) as caught, reading(good, bad):
        raise pa.ArrowInvalid("something")
    assert (caught.value.line, caught.value.field) == (2, "score")


def test_where_nobody_is_found_to_blame_both_are_named() -> None:
    good = run_of(results([1, 0]))
    with pytest.raises(UnreadableError) as caught, reading(good, good):
        raise pa.ArrowInvalid("something")
    assert caught.value.file == "dataframe or dataframe"
