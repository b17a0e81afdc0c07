"""The history of a training on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import FieldError, MissingInputError, UnreadableError
from forgetmap.train import WatchGroup, WatchHistory, WatchLook, WatchRule, read_history
from forgetmap.train.history import write_history

RULE = WatchRule(
    cost=0.05, every=None, margin=0.02, noise_floor=0.005, alpha=0.05, on_alarm="log",
    keep_best=False,
)  # fmt: skip
GROUP = WatchGroup(items=10, missing=0, accuracy=0.5, forgotten=0.1, lost_at_least=0.0, gained=0.0)


def look(number: int, step: int, *, abandoned: bool = False) -> WatchLook:
    return WatchLook(
        look=number, step=step, run=f"step-{step:06d}", total=GROUP, categories={},
        probe_seconds=1.0, probed_seconds=1.0 + number, trained_seconds=10.0 * step,
        abandoned=abandoned,
    )  # fmt: skip


def history(*looks: WatchLook) -> WatchHistory:
    return WatchHistory(
        suite="small", asked="a", tokens="t", rule=RULE, items=10, items_of_suite=10,
        looks=list(looks),
    )  # fmt: skip


def test_what_is_written_is_read_from_the_file_its_folder_or_the_one_above(tmp_path: Path) -> None:
    folder = tmp_path / "forgetting"
    kept = history(look(0, 0), look(1, 5))
    write_history(kept, folder)
    for path in (folder / "watch.json", folder, tmp_path):
        assert read_history(path) == kept
    assert [path.name for path in folder.iterdir()] == ["watch.json"]


def test_abandoned_looks_are_no_part_of_the_curve() -> None:
    kept = history(look(0, 0), look(1, 5, abandoned=True), look(2, 4))
    assert [one.step for one in kept.curve] == [0, 4]


def test_the_cost_is_time_in_the_probe_per_time_in_training() -> None:
    assert look(1, 5).cost == pytest.approx(2 / 50)
    assert look(0, 0).cost is None


def test_where_nothing_was_watched_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="no history of a watched training"):
        read_history(tmp_path)


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"{", FieldError, "Invalid JSON"),
        (b"\xff\xfe", UnreadableError, "cannot be read"),
        (b'{"version": 1}', FieldError, "suite"),
    ],
)
def test_a_broken_file_is_a_typed_error(
    tmp_path: Path, content: bytes, error: type[Exception], words: str
) -> None:
    (tmp_path / "watch.json").write_bytes(content)
    with pytest.raises(error, match=words):
        read_history(tmp_path)


def test_a_file_of_a_newer_version_is_a_typed_error(tmp_path: Path) -> None:
    write_history(history().model_copy(update={"version": 9}), tmp_path)
    with pytest.raises(FieldError, match="version 9"):
        read_history(tmp_path)
