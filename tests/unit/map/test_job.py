"""What a map keeps of an earlier one in the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Done, call, write
from letter_models import save_letter_model

pytestmark = pytest.mark.needs_torch

NAMES = ("base", "one", "two")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("letters")
    for name in NAMES:
        save_letter_model(folder / name, {"A": 0.6, "B": 0.4})
    rows = [
        {"question": f"Which is {place}?", "options": ["x", "y"], "gold": "x", "id": f"{place}"}
        for place in range(8)
    ]
    write(folder / "items.jsonl", rows)
    return folder


def mapped(folder: Path, out: Path, *names: str, more: tuple[str, ...] = ()) -> Done:
    models = [folder / name for name in names]
    return call("map", *models, "--suite", folder / "items.jsonl", "--out", out, *more)


def compared(out: Path) -> int:
    """The number of comparisons in the result."""
    return len(json.loads((out / "result" / "comparison.json").read_text()).get("comparisons", "1"))


def test_a_result_of_more_models_is_kept(folder: Path, tmp_path: Path) -> None:
    """And one of fewer models is extended, with the runs that are there."""
    out = tmp_path / "map"
    assert mapped(folder, out, "base", "one").code == 0
    stamp = (out / "runs" / "1-one" / "scores.parquet").stat().st_mtime_ns
    extended = mapped(folder, out, *NAMES)
    assert (extended.code, compared(out)) == (0, 2), extended.err
    assert (out / "runs" / "1-one" / "scores.parquet").stat().st_mtime_ns == stamp
    refused = mapped(folder, out, "base", "one")
    assert (refused.code, compared(out)) == (2, 2)
    assert "has the result of 0-base, 1-one, 2-two, and 2-two would be gone" in refused.err
    assert f"--out {out}-2" in refused.err
    assert f"forgetmap compare {out}/runs/0-base {out}/runs/1-one" in refused.err
    assert "forgetmap compare" not in mapped(folder, out, "base", "two").err
    assert not (out / "runs" / "1-two").exists()
    assert mapped(folder, out, "base", "one", more=("--overwrite",)).code == 0
    assert mapped(folder, out, "base", "one").code == 0
    assert compared(out) == 1
