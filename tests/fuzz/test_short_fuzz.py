"""A short run of the fuzzer; the long one is `make fuzz`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

import fuzz_logs
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import rows
from forgetmap.sources.formats.benchmarks import MMLU_PRO
from fuzz_logs import fuzz, harnesses

MUTATIONS = 30
"""`make fuzz` tries 10,000."""


@pytest.mark.parametrize("harness", harnesses())
def test_damaged_logs_give_typed_errors_and_change_no_other_item(
    harness: str, tmp_path: Path
) -> None:
    assert [str(failure) for failure in fuzz(harness, MUTATIONS, 7, tmp_path)] == []


def by_position(log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
    """Make the mistake that the fuzzer looks for: the place of a row is its item."""
    for place, sample in enumerate(MMLU_PRO.read(log, problems, texts=texts)):
        yield structs.replace(sample, item=f"row {place}")


def careless(log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
    """Make the other one: what a log holds is taken for granted."""
    for _, row in rows(log.files[0], problems):
        score = Score("acc", float(row["pred"] == "A"))
        yield Sample("t", str(row["question_id"]), [score], response="" if texts else None)


@pytest.mark.parametrize(
    ("broken", "what"), [(by_position, "deletion of row"), (careless, "KeyError('pred')")]
)
def test_the_fuzzer_can_fail(
    broken: Callable[..., Iterator[Sample]],
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fuzz_logs, "adapter", lambda _: SimpleNamespace(read=broken))
    assert any(what in str(failure) for failure in fuzz("mmlu-pro", 200, 7, tmp_path))
