"""`forgetmap compare`: the summary, the JSON output, and the files."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile, copytree

import jsonschema
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from command_line import (
    call,
    first_column,
    json_of,
    results,
    write,
)
from forgetmap.comparison.result import ComparisonResult, FanOutResult
from forgetmap.records.schema import json_schema


def copy_of(path: Path) -> Path:
    """Another run with the same results: the same one on both sides is refused."""
    return Path(copyfile(path, path.with_name(f"copy-{path.name}")))


def test_the_first_screen_is_verdict_counts_and_what_next(pair: tuple[Path, Path]) -> None:
    done = call("compare", *pair, columns=100)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].strip() == "CANNOT TELL  base -> tuned"
    assert lines[1].startswith("Cannot tell: between 0% and 74.3% of all items may be lost;")
    counts = "1 forgotten, 1 gained of 4 items; accuracy 50.0% -> 50.0% (0.0%)."
    assert counts in lines
    assert any(line.startswith("What next") for line in lines)
    assert not any(line.startswith(("task", "How we know")) for line in lines)
    assert len(lines) < 20


def test_details_have_the_table_and_how_we_know(pair: tuple[Path, Path]) -> None:
    lines = call("compare", *pair, "--details").out.splitlines()
    head = next(line for line in lines if line.startswith("task"))
    assert re.split(r"\s{2,}", head) == [
        "task", "items", "before", "after", "change", "forgotten", "lost", "verdict"
    ]  # fmt: skip
    *numbers, lost, verdict = re.split(r"\s{2,}", lines[lines.index(head) + 1].rstrip())
    assert numbers == ["all items", "4", "50.0%", "50.0%", "0.0%", "25.0%"]
    assert (lost, verdict) == ("0.0 to 74.3%", "cannot tell")
    assert any(line.endswith("Why 1 was forgotten is not recorded.") for line in lines)
    assert any(line.endswith("All 4 results of both sides paired.") for line in lines)


def test_the_mean_over_tasks_is_shown_only_where_there_are_several(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    assert "mean over tasks" not in call("compare", *pair, "--by", "task").out
    two = write(tmp_path / "two.jsonl", results([1, 0], "a") + results([1], "b"))
    assert "mean over tasks" in call("compare", two, copy_of(two), "--by", "task").out


@pytest.fixture
def labelled(tmp_path: Path) -> tuple[Path, Path]:
    """Task b loses more than task a; categories and tags cut across."""
    before, after = [], []
    for task, scores in (("a", (1, 1)), ("b", (0, 0))):
        labels = {"category": f"cat-{task}", "tags": f"all; {task}-tag"}
        before += results([1, 1], task, **labels)
        after += results(scores, task, **labels)
    return write(tmp_path / "before.jsonl", before), write(tmp_path / "after.jsonl", after)


@pytest.mark.parametrize(
    ("by", "names"),
    [("task", ["b", "a"]), ("category", ["cat-b", "cat-a"]), ("tag", ["b-tag", "all", "a-tag"])],
)
def test_by(labelled: tuple[Path, Path], by: str, names: list[str]) -> None:
    """Groups come worst first."""
    out = call("compare", *labelled, "--by", by).out
    assert first_column(out, by) == ["all items", "mean over tasks", *names]


def test_by_category_falls_back_to_tasks_and_by_tag_says_that_there_are_none(
    pair: tuple[Path, Path],
) -> None:
    assert first_column(call("compare", *pair, "--by", "category").out, "task") == [
        "all items",
        "t",
    ]
    assert "No item has a tag." in call("compare", *pair, "--by", "tag").out


def test_more_groups_than_fit_a_screen_are_counted(tmp_path: Path) -> None:
    rows = [row for n in range(45) for row in results([1], f"task{n}")]
    many = write(tmp_path / "many.jsonl", rows)
    out = call("compare", many, copy_of(many), "--by", "task").out
    assert sum(line.startswith("task") for line in out.splitlines()) == 40 + len(["head"])
    assert "... and 5 more" in out


def test_repeats_are_shown_as_answers(tmp_path: Path) -> None:
    def run(name: str, scores: Sequence[int]) -> Path:
        rows = [
            {"task": "t", "item": "a", "repeat": n, "score": score}
            for n, score in enumerate(scores)
        ]
        return write(tmp_path / name, rows)

    runs = run("base.jsonl", [1, 1, 0]), run("tuned.jsonl", [1, 0, 0])
    out = call("compare", *runs, "--details", columns=100).out
    assert "1 forgotten, 0 gained of 3 answers; accuracy 66.7% -> 33.3% (-33.3%)." in out
    assert "1 item with 3 pairs of answers" in out
    assert re.search(r"^all items +1 ", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("kind", "items"), [("forgotten", ["i1"]), ("gained", ["i2"]), ("kept", ["i0"])]
)
def test_show(pair: tuple[Path, Path], kind: str, items: list[str]) -> None:
    out = call("compare", *pair, "--show", kind).out
    assert f"{kind} (tuned): 1 of 1" in out
    assert re.findall(r"^t / (\S+)$", out, re.MULTILINE) == items


def test_show_lists_both_answers_and_stops_at_the_limit(demo: Path) -> None:
    done = call("compare", demo / "before", demo / "after", "--show", "forgotten", "--limit", 2)
    total = json.loads(call("compare", demo / "before", demo / "after", "--json").out)["total"]
    assert f"forgotten (simulated-tuned): 2 of {total['n10']}" in done.out
    for label in ("question [simulated]", "gold     fact", "before   fact", "said     "):
        assert len(re.findall(f"^  {re.escape(label)}", done.out, re.MULTILINE)) == 2


def test_nothing_to_show(pair: tuple[Path, Path]) -> None:
    out = call("compare", pair[0], copy_of(pair[0]), "--show", "forgotten", columns=200).out
    assert out.splitlines()[-1].endswith(": no items")


def test_fan_out_shows_all_models_side_by_side_and_then_each(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    worse = write(tmp_path / "worse.jsonl", results([0, 0, 0, 0]))
    out = call("compare", *pair, worse).out
    assert out.startswith("2 models against base\n")
    assert first_column(out, "model") == ["tuned", "worse"]
    assert "1 forgotten, 1 gained of 4 items" in out
    assert "2 forgotten, 0 gained of 4 items" in out


def test_chain(pair: tuple[Path, Path], tmp_path: Path) -> None:
    last = write(tmp_path / "last.jsonl", results([1, 1, 0, 0]))
    out = call("compare", *pair, last, "--chain").out
    assert "Chain: base -> tuned -> last" in out
    assert first_column(out, "stage") == ["base", "tuned", "last"]
    found = re.findall(r"^([01]{3})  (\w+) +(\d+)$", out, re.MULTILINE)
    assert set(found) == {
        ("111", "kept", "1"), ("101", "regained", "1"), ("010", "unstable", "1"),
        ("000", "never", "1"),
    }  # fmt: skip
    assert "0 forgotten, 0 gained of 4 items" in out


def test_a_long_chain_counts_the_histories_it_does_not_list(tmp_path: Path) -> None:
    columns = [[int(digit) for digit in f"{n:05b}"] for n in range(32)]
    runs = [
        write(tmp_path / f"c{stage}.jsonl", results([column[stage] for column in columns]))
        for stage in range(5)
    ]
    out = call("compare", *runs, "--chain").out
    assert "... and 16 rarer histories of 16 items." in out


def test_a_warning_about_one_stage_names_it(pair: tuple[Path, Path], tmp_path: Path) -> None:
    partly = write(tmp_path / "partly.jsonl", results([1, 1, None, 0]))
    options = ("--chain", "--min-paired", 0.7)
    out = call("compare", pair[0], partly, pair[1], *options, columns=200).out
    assert "! partly: 1 pair without a score" in out
    out = call("compare", pair[0], partly, copy_of(partly), *options, columns=200).out
    assert "! 1 pair without a score" in out


@pytest.mark.parametrize("form", ["comparison", "chain", "fan-out"])
def test_json_is_valid_against_its_published_schema(demo: Path, form: str, tmp_path: Path) -> None:
    more: dict[str, list[object]]
    again = copytree(demo / "after", tmp_path / "again")
    more = {"comparison": [], "fan-out": [again], "chain": [again, "--chain"]}
    found = json_of(demo / "before", demo / "after", *more[form])
    schema = json.loads(call("records", "schema", form.replace("chain", "comparison")).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "surprise": 1}, schema)


def test_json_has_what_was_promised(labelled: tuple[Path, Path]) -> None:
    found = json_of(*labelled)
    assert found["schema_version"] == 3
    assert {
        "paired", "items", "only_before", "only_after", "duplicates", "conflicts", "unscored",
        "warnings",
    } <= found["pairing"].keys()  # fmt: skip
    groups = [found["total"], found["total_macro"], *found["categories"], *found["tasks"]]
    assert len(groups) == 6
    for group in groups:
        assert {
            "name", "items", "n", "n00", "n01", "n10", "n11", "acc_before", "acc_after",
            "forgetting", "backward_transfer", "conditional_forgetting", "reasons",
        } <= group.keys()  # fmt: skip
        assert {"value", "low", "high", "method"} <= group["forgetting"].keys()
        assert group["forgetting"]["low"] <= group["forgetting"]["value"]
        assert (group["forgotten"], group["gained"]) == (group["n10"], group["n01"])
        for side in ("loss", "gain"):
            assert group[side].keys() == {"low", "high", "carried_by", "p", "q", "assumes"}
        for estimates in group["estimators"].values():
            assert estimates.keys() == {"forgetting", "backward_transfer"}
            for estimate in estimates.values():
                assert (estimate["value"] is None) == (estimate["reason"] is not None)
        assert {
            "verdict", "margin", "undecided", "family", "decides", "exchange", "confirmed",
            "is_knowledge", "unlucky", "noise_floor", "mcnemar_p", "detectable", "clusters",
        } <= group.keys()  # fmt: skip
        assert group["coverage"].keys() == {"before", "after"}
        assert (group["decides"] is None) == (
            group["verdict"] not in ("cannot_tell", "no_net_loss")
        )
    assert [task["family"] for task in found["tasks"]] == [{"name": "tasks", "size": 2}] * 2
    assert found["total"]["family"] is None


def test_json_of_a_chain_and_of_a_fan_out(pair: tuple[Path, Path]) -> None:
    again = copy_of(pair[0])
    chain = json_of(*pair, again, "--chain")
    assert (len(chain["stages"]), {path["path"] for path in chain["paths"]}) == (
        2, {"111", "101", "010", "000"},
    )  # fmt: skip
    fan_out = json_of(*pair, again)
    assert [each["total"]["n10"] for each in fan_out["comparisons"]] == [1, 0]
    assert json_of(*pair)["stages"] is None


def test_the_published_schemas() -> None:
    schemas = {
        "record": json_schema(),
        "comparison": TypeAdapter(ComparisonResult).json_schema(),
        "fan-out": TypeAdapter(FanOutResult).json_schema(),
    }
    for name, schema in schemas.items():
        assert json.loads(call("records", "schema", name).out) == schema


def test_map_task_metric_and_thresholds(tmp_path: Path) -> None:
    def run(name: str, scores: Sequence[float]) -> Path:
        rows = [
            {"qid": n, "metric": metric, "correct": score * factor}
            for n, score in enumerate(scores)
            for metric, factor in (("acc", 1.0), ("half", 0.5))
        ]
        return write(tmp_path / name, rows)

    paths = run("a.jsonl", [1, 1]), run("b.jsonl", [1, 0])
    options = ["--columns", "item=qid,score=correct", "--task", "quiz"]
    found = json_of(*paths, *options, "--metric", "acc")
    assert [(task["name"], task["n10"], task["n11"]) for task in found["tasks"]] == [("quiz", 1, 1)]
    strict = json_of(*paths, *options, "--metric", "half", "--correct-at", 0.51)
    assert strict["total"]["n00"] == 2
    assert strict["rule"]["correct_at"] == 0.51


def test_min_paired_and_pair_by(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", [*results([1, 1], question="same?")[:1], *results([1])])
    assert call("compare", one, one).code == 2
    some = write(tmp_path / "some.jsonl", results([1, 1, 1]))
    other = write(
        tmp_path / "other.jsonl",
        [dict(row, item=f"i{n}") for n, row in zip((0, 7, 8), results([1, 1, 1]), strict=True)],
    )
    assert call("compare", some, other).code == 2
    assert json_of(some, other, "--min-paired", 0.3)["total"]["n"] == 1
    asked = [
        write(tmp_path / f"{n}.jsonl", results([1], question=f"version {n}?")) for n in range(2)
    ]
    assert call("compare", *asked).code == 2
    assert json_of(*asked, "--pair-by", "id")["total"]["n11"] == 1


TABLES = {f"{name}.{end}" for name in ("totals", "tasks", "categories", "tags")
          for end in ("csv", "parquet")}  # fmt: skip
FILES = TABLES | {"comparison.json", "flips.parquet", "unpaired.parquet"}
CHAIN_FILES = {f"{name}.{end}" for name in ("against_previous", "against_first", "paths")
               for end in ("csv", "parquet")} | {"histories.parquet"}  # fmt: skip


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_out_writes_every_file_and_says_so(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "deep" / "result"
    done = call("compare", *pair, "--out", out)
    assert done.out.splitlines()[-1] == f"Written to {out}"
    assert names(out) == FILES
    assert names(out.parent) == {"result"}
    flips = pq.read_table(out / "flips.parquet").to_pylist()
    assert [(row["item"], row["transition"]) for row in flips] == [
        ("i1", "forgotten"), ("i2", "gained"),
    ]  # fmt: skip


def test_tables_agree_with_the_json(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    found = json_of(*labelled, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "comparison.json").read_text()) == found
    with (tmp_path / "out" / "tasks.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    parquet = pq.read_table(tmp_path / "out" / "tasks.parquet").to_pylist()
    for task, line, row in zip(found["tasks"], lines, parquet, strict=True):
        assert (line["name"], int(line["n10"])) == (task["name"], task["n10"])
        assert row["forgetting"] == task["forgetting"]["value"] == float(line["forgetting"])
        assert (row["loss_low"], row["verdict"]) == (task["loss"]["low"], task["verdict"])
        assert row["forgotten_unknown"] == task["reasons"]["unknown"]
        assert row["forgotten_refused"] is task["reasons"]["refused"] is None or task["n10"] == 0


def test_out_of_a_chain_and_of_a_fan_out(pair: tuple[Path, Path], tmp_path: Path) -> None:
    again = copy_of(pair[0])
    call("compare", *pair, again, "--chain", "--out", tmp_path / "chain")
    assert names(tmp_path / "chain") == FILES | CHAIN_FILES
    histories = pq.read_table(tmp_path / "chain" / "histories.parquet").to_pylist()
    assert [row["path"] for row in histories] == ["111", "101", "010", "000"]
    call("compare", *pair, again, "--out", tmp_path / "fan")
    inner = names(tmp_path / "fan") - {"comparison.json"}
    assert len(inner) == 2
    assert all(names(tmp_path / "fan" / name) == FILES for name in inner)


def test_a_spreadsheet_runs_no_name_as_a_formula(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", results([1], '=HYPERLINK("http://x")'))
    call("compare", rows, copy_of(rows), "--out", tmp_path / "out")
    with (tmp_path / "out" / "tasks.csv").open(newline="") as stream:
        assert next(csv.DictReader(stream))["name"].startswith("'=")


def test_out_refuses_to_overwrite_unless_asked(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "result"
    call("compare", *pair, "--out", out)
    again = call("compare", *pair[::-1], "--out", out)
    assert (again.code, again.out) == (2, "")
    assert "already exists" in again.err
    assert json.loads((out / "comparison.json").read_text())["before"]["name"] == "base"
    assert call("compare", *pair[::-1], "--out", out, "--overwrite").code == 0
    assert json.loads((out / "comparison.json").read_text())["before"]["name"] == "tuned"
    assert names(out) == FILES


def test_overwrite_never_touches_a_folder_of_something_else(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter1.tex").write_text("words")
    done = call("compare", *pair, "--out", precious, "--overwrite")
    assert done.code == 2
    assert names(precious) == {"chapter1.tex"}


@pytest.mark.parametrize("where", [".", "before"])
def test_overwrite_never_replaces_its_own_input(demo: Path, where: str) -> None:
    out = demo / where
    done = call("compare", demo / "before", demo / "after", "--out", out, "--overwrite")
    assert done.code == 2
    assert "choose another path for the output" in done.err
    assert (demo / "before" / "scores.parquet").is_file()
