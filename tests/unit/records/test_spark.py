"""Spark: the reason from a Java stack trace, and counts of repeated keys from sums."""

from __future__ import annotations

import random

import pytest

from forgetmap.errors import (
    ClusterError,
    FieldError,
    ForgetmapError,
    MissingInputError,
    UnreadableError,
)
from forgetmap.records.spark import SIGNS, cause_of, repetition, spark_error, spark_errors

STACK = "\n\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2935)"
FULL = (
    "An error occurred while calling o201.collectAsArrowToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 9.0 "
    "failed 4 times, most recent failure: Lost task 3.3 in stage 9.0 (TID 41) (10.0.0.7 executor "
    f"2): java.io.IOException: No space left on device{STACK}\n"
    f"Caused by: java.io.IOException: No space left on device{STACK}"
)
TABLE = (
    "[TABLE_OR_VIEW_NOT_FOUND] The table or view `evals`.`base` cannot be found. Verify the "
    f"spelling. SQLSTATE: 42P01;\n'UnresolvedRelation [evals, base]\n\nJVM stacktrace:{STACK}"
)
PYTHON = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker:\n"
    'Traceback (most recent call last):\n  File "worker.py", line 1, in main\n'
    f"ValueError: no such option\n{STACK}"
)
LOST = "Py4JNetworkError: Answer from Java side is empty"
CAST = (
    '[CAST_INVALID_INPUT] The value \'abc\' of the type "STRING" cannot be cast to "DOUBLE" '
    f"because it is malformed. SQLSTATE: 22018{STACK}"
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(FULL, "No space left on device", id="disk"),
        pytest.param(
            TABLE,
            "The table or view `evals`.`base` cannot be found. Verify the spelling",
            id="table",
        ),
        pytest.param(PYTHON, "ValueError: no such option", id="python"),
        pytest.param(LOST, "Py4JNetworkError: Answer from Java side is empty", id="driver"),
        pytest.param("", "no reason", id="nothing"),
    ],
)
def test_the_cause_is_one_line(text: str, cause: str) -> None:
    assert cause_of(text) == cause


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        pytest.param(FULL, ClusterError, "disk that Spark shuffles on is full", id="disk"),
        pytest.param(TABLE, MissingInputError, "there is no such table", id="table"),
        pytest.param(PYTHON, UnreadableError, "ValueError: no such option", id="python"),
        pytest.param(LOST, ClusterError, "the driver of Spark is gone", id="driver"),
        pytest.param(CAST, FieldError, "a value does not fit its column", id="value"),
    ],
)
def test_every_failure_is_typed_and_names_the_log(
    text: str, kind: type[ForgetmapError], words: str
) -> None:
    error = spark_error(RuntimeError(text))
    assert isinstance(error, kind)
    assert words in error.message
    assert "\tat" not in str(error)
    log = error.hint.rpartition(" is in ")[2].rstrip(".")
    with open(log, encoding="utf-8") as file:  # noqa: PTH123
        assert text in file.read()


def test_a_driver_lost_between_two_calls_is_typed() -> None:
    """Then py4j connects anew, which fails without a word of Spark."""
    pytest.importorskip("pyspark")
    with pytest.raises(ClusterError, match="the driver of Spark is gone"), spark_errors():
        raise ConnectionRefusedError(111, "Connection refused")


def ones(keys: list[int]) -> list[int]:
    """How many rows have a 1, by bit of a hash of their key."""
    hashes = [random.Random(key).getrandbits(SIGNS) for key in keys]
    return [sum(value >> bit & 1 for value in hashes) for bit in range(SIGNS)]


def test_sums_of_signs_tell_how_often_keys_repeat() -> None:
    different, same = list(range(4_000)), [7] * 4_000
    some = [key % 200 for key in range(4_000)]
    assert 0.1 < repetition(4_000, ones(different)) < 4
    assert repetition(4_000, ones(same)) == 4_000
    assert 8 < repetition(4_000, ones(some)) < 50
    assert repetition(0, [0] * SIGNS) == 1
