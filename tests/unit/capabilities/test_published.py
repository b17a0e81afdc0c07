"""CapTrack's metric files: the published arithmetic, recomputed by hand."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from statistics import fmean, pstdev

import pytest

import forgetmap as fm
from forgetmap.capabilities.result import Cell, MetricCell
from forgetmap.capabilities.taxonomy import load_taxonomy
from forgetmap.errors import EmptyInputError, FieldError, MissingInputError, UsageError

CAPTRACK = load_taxonomy("captrack")
COLUMNS = {metric.id: str(metric.column) for metric in CAPTRACK.metrics}


def averages(seed: int) -> dict[str, float]:
    rng = random.Random(seed)
    return {column: rng.uniform(0.3, 0.9) for column in COLUMNS.values()}


def write(path: Path, values: dict[str, float | str], name: str) -> Path:
    row = {"": name, "C2_DD Accuracy (MATH)": 0.5, **values, "model_name": name}
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, row.keys())
        writer.writeheader()
        writer.writerow(row)
    return path


def test_published_means_and_deviations(tmp_path: Path) -> None:
    values = [averages(seed) for seed in range(3)]
    files = [write(tmp_path / f"m{i}.csv", dict(each), f"m{i}") for i, each in enumerate(values)]
    result = fm.drift(*files, aggregator="captrack-relative")
    assert result.models == ("m1", "m2")
    for place, model in enumerate(result.models, start=1):
        spreads: dict[str, list[tuple[float, float]]] = {}
        for capability in CAPTRACK.capabilities:
            columns = [COLUMNS[m.id] for m in CAPTRACK.metrics if m.capability == capability.id]
            changes = [100 * (values[place][c] - values[0][c]) / values[0][c] for c in columns]
            cell = next(c for c in result.capabilities if (c.model, c.id) == (model, capability.id))
            assert cell.value == pytest.approx(fmean(changes), abs=1e-9)
            assert cell.std == pytest.approx(pstdev(changes), abs=1e-9)
            spreads.setdefault(capability.group, []).append((fmean(changes), pstdev(changes)))
        for group in result.groups:
            if group.model == model:
                means, stds = zip(*spreads[group.id], strict=True)
                root = math.sqrt(fmean(std**2 for std in stds)) / math.sqrt(len(stds))
                assert group.value == pytest.approx(fmean(means), abs=1e-9)
                assert group.std == pytest.approx(root, abs=1e-9)


def test_bug_02_and_03_what_is_missing_is_left_out_not_zero(tmp_path: Path) -> None:
    old, new = dict[str, float | str](averages(1)), dict[str, float | str](averages(2))
    for metric in CAPTRACK.metrics:
        if metric.capability in {"C3", "H4"}:
            new[COLUMNS[metric.id]] = ""
    new[COLUMNS["C1.gsm8k"]] = ""
    old[COLUMNS["C1.popqa"]] = 0.0
    files = [write(tmp_path / f"{n}.csv", v, n) for n, v in (("old", old), ("new", new))]
    result = fm.drift(*files, aggregator="captrack-relative")
    cells = {cell.id: cell for cell in result.capabilities}
    assert (cells["C3"].value, cells["C3"].std, cells["H4"].value) == (None, None, None)
    assert str(cells["C1"].coverage) == "4 of 6"
    assert "zero" in {caution.code for caution in result.cautions}
    assert math.isfinite(cells["C1"].value or math.inf)


def test_effects_of_averages_have_bounds_for_intervals(tmp_path: Path) -> None:
    old, new = averages(1), averages(2)
    files = [write(tmp_path / f"{n}.csv", dict(v), n) for n, v in (("old", old), ("new", new))]
    result = fm.drift(*files)
    cell = next(cell for cell in result.metrics if cell.id == "C1.gsm8k")
    column = COLUMNS["C1.gsm8k"]
    h = 2 * math.asin(new[column] ** 0.5) - 2 * math.asin(old[column] ** 0.5)
    assert cell.value == pytest.approx(h)
    assert cell.std == pytest.approx(math.sqrt(2 / 500), rel=0.05)
    assert cell.low == pytest.approx(h - 1.96 * math.sqrt(2 / 500), abs=0.015)
    assert cell.high == pytest.approx(h + 1.96 * math.sqrt(2 / 500), abs=0.015)
    assert (cell.n, cell.mcnemar_p) == (500, None)
    assert result.cautions[0].code == "averages"
    cells: dict[str, Cell | MetricCell] = {cell.id: cell for cell in result.metrics}
    cells |= {cell.id: cell for cell in result.capabilities}
    for unknown in ("C4.ragtruth", "W3a.oasst1", "C4", "W3a"):  # no number of items; no bounds
        assert (cells[unknown].low, cells[unknown].p) == (None, None)
        assert cells[unknown].value is not None
    assert cells["C1"].low is not None
    swapped = fm.drift(("other", files[0]), ("mine", files[1]))
    assert [c.low for c in swapped.metrics] == [c.low for c in result.metrics]


def test_equal_averages_are_not_known_for_sure(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{n}.csv", dict(averages(1)), n) for n in ("old", "new")]
    cell = next(cell for cell in fm.drift(*files).metrics if cell.id == "C1.gsm8k")
    assert cell.value == 0
    assert cell.low is not None
    assert cell.low < -0.1 < 0.1 < (cell.high or 0.0)


def test_bug_02_a_failed_task_of_captrack_is_said(tmp_path: Path) -> None:
    old, new = averages(1), averages(2)
    new[COLUMNS["C1.gsm8k"]] = 0.0
    old[COLUMNS["C1.popqa"]] = 0.0
    old[COLUMNS["C2.math"]] = new[COLUMNS["C2.math"]] = 0.0
    files = [write(tmp_path / f"{n}.csv", dict(v), n) for n, v in (("old", old), ("new", new))]
    for aggregator in ("default", "captrack-relative"):
        result = fm.drift(*files, aggregator=aggregator)
        said = {c.metric: c.message for c in result.cautions if c.code == "zero"}
        assert said.keys() == {"C1.gsm8k", "C1.popqa", "C2.math"}
        assert "exactly 0 after, which counts as \N{MINUS SIGN}100%" in said["C1.gsm8k"]
        assert "exactly 0 before" in said["C1.popqa"]
        assert "in both models" in said["C2.math"]
        assert all("CapTrack writes 0.0 for a task that failed" in text for text in said.values())


def test_several_rows_are_refused(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", dict(averages(1)), "good")
    two = tmp_path / "two.csv"
    row = good.read_text().splitlines()[1]
    two.write_text(good.read_text() + row.replace("good", "worse") + "\n")
    with pytest.raises(FieldError, match="a second row, of 'worse'") as caught:
        fm.drift(good, two)
    assert (caught.value.file, caught.value.line) == (str(two), 3)


def test_the_deep_dive_is_in_no_average(tmp_path: Path) -> None:
    files = []
    for name, value in (("old", 0.5), ("new", 0.25)):
        columns = {str(metric.column): value for metric in CAPTRACK.deep_dive}
        files.append(write(tmp_path / f"{name}.csv", {**averages(1), **columns}, name))
    shallow = fm.drift(*files, aggregator="captrack-relative")
    assert shallow.deep_dive == ()
    deep = fm.drift(*files, aggregator="captrack-relative", deep_dive=True)
    assert (deep.groups, deep.capabilities) == (shallow.groups, shallow.capabilities)
    assert deep.metrics == shallow.metrics
    assert len(deep.deep_dive) == 61
    hedging = next(cell for cell in deep.deep_dive if cell.id == "W3a_DD.oasst1.hedging")
    assert hedging.value == pytest.approx(-50.0)


def test_bug_04_published_scores_below_chance_are_said(tmp_path: Path) -> None:
    old, new = averages(1), averages(2)
    old[COLUMNS["C5b.winogrande"]] = 0.105
    files = [write(tmp_path / f"{n}.csv", dict(v), n) for n, v in (("old", old), ("new", new))]
    cautions = fm.drift(*files, aggregator="captrack-relative").cautions
    assert [caution.metric for caution in cautions if caution.code == "below_chance"] == [
        "C5b.winogrande"
    ]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", dict(averages(1)), "good")
    bad = write(tmp_path / "bad.csv", {**averages(1), COLUMNS["H5.ruler_32k"]: "high"}, "bad")
    with pytest.raises(FieldError, match="'high' is not a number") as caught:
        fm.drift(good, bad)
    assert (caught.value.line, caught.value.field) == (2, COLUMNS["H5.ruler_32k"])
    empty = tmp_path / "empty.csv"
    empty.write_text(",".join(COLUMNS.values()) + "\n")
    with pytest.raises(EmptyInputError, match="contains no model"):
        fm.drift(good, empty)
    table = tmp_path / "table.csv"
    table.write_text("task,item,score\nsums,1,1\n")
    with pytest.raises(
        UsageError, match=r"good.csv is a CapTrack file of averages, .* table is not"
    ):
        fm.drift(good, table)
    with pytest.raises(UsageError, match="no aggregator 'mean'"):
        fm.drift(good, good, aggregator="mean")  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_not_called_another_kind(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", dict(averages(1)), "good")
    with pytest.raises(MissingInputError, match="does not exist"):
        fm.drift(good, tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("metric", "value", "said"),
    [
        ("C1.gsm8k", "94.9", "'94.9' is not a share"),
        ("C1.gsm8k", "-0.2", "'-0.2' is not a share"),
        ("W3a.mtbench", "-3", "is negative"),
        ("H4.mtbench", "inf", "'inf' is not a number"),
    ],
)
def test_averages_that_cannot_be_are_refused(
    metric: str, value: str, said: str, tmp_path: Path
) -> None:
    good = write(tmp_path / "good.csv", dict(averages(1)), "good")
    bad = write(tmp_path / "bad.csv", {**averages(1), COLUMNS[metric]: value}, "bad")
    with pytest.raises(FieldError, match=said) as caught:
        fm.drift(good, bad)
    assert (caught.value.line, caught.value.field) == (2, COLUMNS[metric])


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    column = COLUMNS["C1.gsm8k"]
    path = tmp_path / "twice.csv"
    path.write_text(f"model_name,{column},{column}\nm,0.9,0.1\n")
    with pytest.raises(FieldError, match="2 columns with this name") as caught:
        fm.drift(path, path)
    assert (caught.value.line, caught.value.field) == (1, column)


def test_options_that_averages_cannot_follow_are_refused(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", dict(averages(1)), "good")
    with pytest.raises(UsageError, match="--noise has no effect"):
        fm.drift(good, good, noise=good)
    with pytest.raises(UsageError, match="--profile has no effect"):
        fm.drift(good, good, profile="quick")
    with pytest.raises(UsageError, match="--allow-exec has no effect"):
        fm.drift(good, good, allow_exec=True)


def test_a_deep_dive_changes_no_other_number(tmp_path: Path) -> None:
    """Not even the random draws behind the intervals."""
    files = []
    for seed in (1, 2):
        values = averages(seed) | {str(each.column): 0.4 + seed / 9 for each in CAPTRACK.deep_dive}
        files.append(write(tmp_path / f"m{seed}.csv", dict(values), f"m{seed}"))
    plain, deep = (fm.drift(*files, deep_dive=asked) for asked in (False, True))
    assert len(deep.deep_dive) == 61
    assert plain.to_dict() == {**deep.to_dict(), "deep_dive": []}
