"""Every log under tests/fixtures/logs gives exactly the expected records next to it.

tests/fixtures/logs/HARNESS/VERSION/log/...         as the harness wrote it
tests/fixtures/logs/HARNESS/VERSION/expected.jsonl  the fields that matter, one result per line
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.records.schema import RESULT_KEY, TEXT_NAMES
from forgetmap.sources.files import find_files
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run
from forgetmap.sources.registry import adapters

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs"
LATER = {
    *("bfcl", "evalplus", "tau-bench", "tau2-bench", "promptfoo", "swe-bench", "mt-bench"),
    *("alpaca-eval", "openai-evals", "livebench", "verl", "trl", "openrlhf"),
}
LOGS = sorted(path.parent for path in FIXTURES.glob("*/*/expected.jsonl"))


@pytest.mark.parametrize("folder", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_log_gives_its_records(folder: Path) -> None:
    expected = [json.loads(line) for line in (folder / "expected.jsonl").read_text().splitlines()]
    assert expected
    found = records(folder / "log")
    assert [_key(row) for row in found] == sorted(_key(row) for row in expected)
    by_key = {_key(row): row for row in found}
    for row in expected:
        real = by_key[_key(row)]
        assert {name: real[name] for name in row} == {k: _about(v) for k, v in row.items()}


@pytest.mark.parametrize("folder", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_no_other_adapter_takes_it(folder: Path) -> None:
    """Adapters that came later leave the logs of others alone, whoever is asked first."""
    own = folder.parent.name
    for reader in adapters():
        if reader.name != own and (reader.name in LATER or own in LATER):
            assert not reader.sniff(find_files(folder / "log")), reader.name


def records(path: Path) -> list[dict[str, Any]]:
    """All results with their texts, sorted by key."""
    run = open_run(path, reading=Reading(cached=False))
    assert run.texts is not None
    texts = {
        (row["task"], row["item"], row["repeat"]): {name: row[name] for name in TEXT_NAMES}
        for row in run.texts.collect().rows(named=True)
    }
    rows = [
        {**row, **texts[row["task"], row["item"], row["repeat"]]}
        for row in run.scores.collect().rows(named=True)
    ]
    return sorted(rows, key=_key)


def _about(value: object) -> object:
    return pytest.approx(value, rel=1e-6, abs=1e-9) if isinstance(value, float) else value


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in RESULT_KEY)
