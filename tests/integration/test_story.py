"""The story in sixty seconds: accuracy held, items exchanged, and the fresh answers prove it."""

from __future__ import annotations

from pathlib import Path

import pytest

import forgetmap as fm
from command_line import call


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story") / "example"
    done = call("simulate", "--out", folder)
    assert done.code == 0, done.err
    assert "8.6% are truly lost" in done.out
    assert "--confirm" in done.out
    return folder


def test_one_run_tells_of_the_exchange_and_claims_nothing(example: Path) -> None:
    total = fm.compare(example / "before", example / "after").result.total
    assert total.verdict == "no_net_loss"
    assert total.exchange is not None
    assert total.exchange.is_large
    assert (total.forgotten, total.n11 + total.n10, total.n) == (262, 1746, 2700)
    done = call("compare", example / "before", example / "after")
    assert "ACCURACY HELD, ITEMS EXCHANGED" in done.out


def test_fresh_answers_prove_what_was_lost_and_gained(example: Path) -> None:
    fresh = (example / "before-rerun", example / "after-rerun")
    total = fm.compare(example / "before", example / "after", confirm=fresh).result.total
    assert total.verdict == "lost"
    assert (total.loss.carried_by, total.gain.carried_by) == ("confirmed", "confirmed")
    assert total.loss.low is not None
    assert total.gain.low is not None
    assert 0.07 <= total.loss.low < 0.086
    assert 0.069 <= total.gain.low < 0.09


def test_reruns_are_left_out_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    done = call("simulate", "--out", folder, "--items", 5, "--no-rerun")
    assert done.code == 0, done.err
    assert "--confirm" not in done.out
    assert sorted(path.name for path in folder.iterdir()) == [
        "after", "before", "manifest.json", "truth.parquet"
    ]  # fmt: skip
