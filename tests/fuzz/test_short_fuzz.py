"""A short run of the fuzzer; the long one is `make fuzz`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

import fuzz_logs
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import rows
from forgetmap.sources.harnesses.mmlu_pro import MmluPro
from fuzz_logs import fuzz, harnesses

MUTATIONS = 30
"""`make fuzz` tries 10,000."""


@pytest.mark.parametrize("harness", harnesses())
def test_damaged_logs_give_typed_errors_and_change_no_other_item(
    harness: str, tmp_path: Path
) -> None:
    assert [str(failure) for failure in fuzz(harness, MUTATIONS, 7, tmp_path)] == []


class ByPosition(MmluPro):
    """Makes the mistake that the fuzzer looks for: the place of a row is its item."""

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        for place, sample in enumerate(super().read(log, problems, texts=texts)):
            yield structs.replace(sample, item=f"row {place}")


class Careless(MmluPro):
    """Makes the other one: what a log holds is taken for granted."""

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        for _, row in rows(log.files[0], problems):
            score = Score("acc", float(row["pred"] == "A"))
            yield Sample("t", str(row["question_id"]), [score], response="" if texts else None)


@pytest.mark.parametrize(
    ("broken", "what"), [(ByPosition, "deletion of row"), (Careless, "KeyError('pred')")]
)
def test_the_fuzzer_can_fail(
    broken: type[MmluPro], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_logs, "adapter", lambda _: broken())
    assert any(what in str(failure) for failure in fuzz("mmlu-pro", 200, 7, tmp_path))
