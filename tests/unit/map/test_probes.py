"""`forgetmap probe` with real models, and with tables of known truth."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import call, write
from letter_models import save_letter_model

pytestmark = pytest.mark.needs_torch

WORDS = ("x", "y", "z")
GOLD_LETTER = dict(zip(WORDS, "ABC", strict=True))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models that weigh letters alike on all items: one likes A, one likes B."""
    folder = tmp_path_factory.mktemp("probed")
    save_letter_model(folder / "base", {"A": 0.7, "B": 0.2, "C": 0.1})
    save_letter_model(folder / "tuned", {"A": 0.2, "B": 0.7, "C": 0.1})
    rows = [
        {"question": f"Which one is {place}?", "options": WORDS, "id": str(place)}
        | {"gold": WORDS[place % 3], "task": f"task-{place % 2}", "category": "letters"}
        for place in range(120)
    ]
    write(folder / "items.jsonl", rows)
    for name in ("base", "tuned"):
        done = call(
            "run", folder / name, "--suite", folder / "items.jsonl", "--out", folder / f"run-{name}"
        )
        assert done.code == 0, done.err
    return folder


def probe_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_probe_is_asked_as_the_full_run_was(asked: Path) -> None:
    """Items with gold A are known by a margin of log(.7 / .2); the other model misses them all."""
    out = asked / "probe.jsonl"
    done = call(
        "probe", asked / "run-base", "--suite", asked / "items.jsonl", "--out", out, "--lead", "1"
    )
    assert done.code == 0, done.err
    rows = probe_rows(out)
    assert len(rows) == 40
    assert {row["gold"] for row in rows} == {"x"}
    assert Counter(row["task"] for row in rows) == {"task-0": 20, "task-1": 20}
    assert {row["probe"]["known"] for row in rows} == {20}
    assert "40 items of 120" in done.out
    assert "80 items that are not reliably known" in done.out
    for name in ("base", "tuned"):
        ran = call("run", asked / name, "--suite", out, "--out", asked / f"probe-{name}")
        assert ran.code == 0, ran.err
    few, full = (prompts(asked / name) for name in ("probe-tuned", "run-tuned"))
    assert len(few) == 40
    assert few == {key: full[key] for key in few}
    told = call(
        "probe", "check", out, asked / "probe-tuned", "--before", asked / "probe-base",
        "--chosen-from", asked / "run-base", "--full", asked / "run-tuned", "--json",
    )  # fmt: skip
    (group,) = json.loads(told.out)["groups"]
    assert group["forgotten"]["value"] == group["full"]["share"] == 1
    assert group["agrees"]
    assert group["verdict"] == "lost"
    assert group["low"] > 0.8
    assert group["full"]["gained"] == pytest.approx(1 / 3)
    assert group["full"]["forgetting"] == pytest.approx(1 / 3)
    said = call("probe", "check", out, asked / "probe-tuned", "--before", asked / "probe-base")
    assert "Lost in: letters (at least" in said.out


def test_answers_that_chose_the_items_prove_nothing(asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "probe.jsonl"
    chosen = call("probe", asked / "run-base", "--suite", asked / "items.jsonl", "--out", out)
    assert chosen.code == 0, chosen.err
    alone = call("probe", "check", out, asked / "run-tuned", "--json")
    (group,) = json.loads(alone.out)["groups"]
    assert (group["verdict"], group["low"]) == ("cannot_tell", None)
    assert "Ask it again" in call("probe", "check", out, asked / "run-tuned").out
    same = call("probe", "check", out, asked / "run-tuned", "--before", asked / "run-base")
    assert same.code == 2
    assert "helped to choose" in same.err


def test_compare_knows_which_run_chose_the_items(asked: Path, tmp_path: Path) -> None:
    """The items of a probe are those that its run had right, so that run proves no loss of them."""
    out = tmp_path / "probe.jsonl"
    chosen = call("probe", asked / "run-base", "--suite", asked / "items.jsonl", "--out", out)
    assert chosen.code == 0, chosen.err
    for name in ("base", "tuned"):
        ran = call("run", asked / name, "--suite", out, "--out", tmp_path / name)
        assert ran.code == 0, ran.err

    def compared(before: Path, *more: str) -> tuple[str, str | None]:
        pair = (before, tmp_path / "tuned", "--min-paired", "0.1")
        total = json.loads(call("compare", *pair, *more, "--json").out)["total"]
        return total["verdict"], total["undecided"]

    assert compared(asked / "run-base") == ("cannot_tell", "selected")
    assert compared(asked / "run-base", "--not-selected") == ("lost", None)
    assert compared(tmp_path / "base") == ("lost", None)
    assert compared(asked / "run-tuned")[1] != "selected"  # it has none of them right
    rows = probe_rows(out)
    write(out, [row | {"probe": row["probe"] | {"chosen_by": []}} for row in rows])
    call("run", asked / "tuned", "--suite", out, "--out", tmp_path / "tuned", "--overwrite")
    assert compared(asked / "run-base") == ("cannot_tell", "selected")
    assert compared(tmp_path / "base") == ("lost", None)


def test_later_checks_are_stricter(tmp_path: Path) -> None:
    base = table(tmp_path / "base.jsonl", lambda i, _: i % 4 > 0, repeats=2)
    again = table(tmp_path / "again.jsonl", lambda i, _: i % 4 > 0, repeats=1)
    after = table(tmp_path / "after.jsonl", lambda i, _: i % 4 > 0 and i % 10 > 0, repeats=1)
    out = tmp_path / "probe.jsonl"
    assert call("probe", base, "--out", out, "--by", "total").code == 0
    lows = []
    for look in ("1", "2", "9"):
        told = call("probe", "check", out, after, "--before", again, "--look", look, "--json")
        (group,) = json.loads(told.out)["groups"]
        lows.append(group["low"])
    assert lows == sorted(lows, reverse=True)
    assert lows[0] > lows[-1]


def test_a_check_has_the_words_of_compare(tmp_path: Path) -> None:
    base = table(tmp_path / "base.jsonl", lambda i, _: i % 4 > 0, repeats=2)
    again = table(tmp_path / "again.jsonl", lambda i, _: i % 4 > 0 and i % 10 > 1, repeats=1)
    after = table(tmp_path / "after.jsonl", lambda i, _: i % 4 > 0 and i % 50 > 2, repeats=1)
    out = tmp_path / "probe.jsonl"
    assert call("probe", base, "--out", out, "--by", "total").code == 0
    asked = ("probe", "check", out, after, "--before", again)
    (group,) = json.loads(call(*asked, "--json").out)["groups"]
    assert (group["verdict"], group["margin"]) == ("no_net_loss", 0.02)
    assert group["exchange"]["rose_by"] > 0
    said = " ".join(call(*asked).out.split())
    assert "accuracy rose" in said
    assert "net loss" not in said


def test_a_wide_margin_leaves_nothing(asked: Path, tmp_path: Path) -> None:
    done = call("probe", asked / "run-base", "--out", tmp_path / "p.jsonl", "--lead", "2")
    assert done.code == 2
    assert "lower --lead" in done.err
    assert list(tmp_path.iterdir()) == []


def prompts(folder: Path) -> dict[tuple[str, str], str]:
    texts = fm.open_run(folder).texts
    assert texts is not None
    return {(row["task"], row["item"]): row["prompt"] for row in texts.collect().rows(named=True)}


def table(path: Path, right: Callable[[int, int], bool], *, repeats: int, items: int = 300) -> Path:
    rows = [
        {"task": f"t{item % 6}", "item": f"i{item}", "repeat": repeat, "category": f"c{item % 2}"}
        | {"score": float(right(item, repeat)), "question": f"What is {item}?", "gold": str(item)}
        for item in range(items)
        for repeat in range(repeats)
    ]
    return write(path, rows)


def test_items_that_waver_are_left_out_and_their_noise_is_told(tmp_path: Path) -> None:
    """Of each six items four are always right, one three times of four, one never."""
    full = table(tmp_path / "base.jsonl", lambda i, r: i // 6 % 6 < 4 + (r > 0), repeats=4)
    out = tmp_path / "probe.jsonl"
    done = call("probe", full, "--out", out, "--by", "total", "--detect", "0.1", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    always, almost = 4 * 6 * 8 + 6 * 2, 6 * 8  # 300 items are 8 rounds of 36 and 12 items more
    (group,) = told["groups"]
    assert (group["stable"], told["evidence"]) == (always, "repeats")
    assert group["noise"] == pytest.approx((almost / 4) / (almost / 4 + always))
    chosen = {int(row["id"][1:]) for row in probe_rows(out)}
    assert all(item // 6 % 6 < 4 for item in chosen)
    assert len(chosen) == group["chosen"] < always
    suite = fm.load_suite(out)
    assert {item.id for task in suite.tasks for item in task.load()} == {f"i{x}" for x in chosen}
    larger = tmp_path / "larger.jsonl"
    assert call("probe", full, "--out", larger, "--by", "total", "--detect", "0.08").code == 0
    assert chosen < {int(row["id"][1:]) for row in probe_rows(larger)}


def test_a_task_in_several_categories_can_be_asked(tmp_path: Path) -> None:
    rows = [
        {"task": "t", "item": f"i{item}", "category": f"c{item % 2}", "score": 1.0}
        | {"question": f"What is {item}?", "gold": str(item)}
        for item in range(20)
    ]
    out = tmp_path / "probe.jsonl"
    assert call("probe", write(tmp_path / "base.jsonl", rows), "--out", out).code == 0
    (task,) = fm.load_suite(out).tasks
    assert len(task.load()) == 20
    assert {row["probe"]["group"] for row in probe_rows(out)} == {"c0", "c1"}


def test_the_probe_tracks_the_full_map(tmp_path: Path) -> None:
    """The model after loses a tenth of what it knew; many probes, each against the full runs."""
    source = random.Random(4)
    lost = {item for item in range(300) if source.random() < 0.1}
    base = table(tmp_path / "base.jsonl", lambda i, _: i % 4 > 0, repeats=2)
    tuned = table(tmp_path / "tuned.jsonl", lambda i, _: i % 4 > 0 and i not in lost, repeats=1)
    truth = {
        f"c{c}": sum(i in lost for i in range(300) if i % 4 and i % 2 == c)
        / sum(1 for i in range(300) if i % 4 and i % 2 == c)
        for c in (0, 1)
    }
    inside = tries = 0
    for seed in range(4):
        out = tmp_path / f"probe-{seed}.jsonl"
        assert call("probe", base, "--out", out, "--seed", seed, "--detect", "0.1").code == 0
        told = call("probe", "check", out, tuned, "--chosen-from", base, "--full", tuned, "--json")
        for group in json.loads(told.out)["groups"]:
            assert group["full"]["share"] == pytest.approx(truth[group["name"]])
            assert group["forgotten"]["asked"] == {"c0": 75, "c1": 90}[group["name"]]
            inside += (
                group["forgotten"]["low"] <= truth[group["name"]] <= group["forgotten"]["high"]
            )
            tries += 1
    assert tries == 8
    assert inside >= 7


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--detect", "0"], "--detect 0.05"),
        (["--suite", "basics"], "give the suite of the run"),
        (["--out", "{tmp}/probe.csv"], "use the extension .jsonl"),
        (["--out", "{tmp}/base.jsonl"], "--overwrite"),
    ],
)
def test_what_cannot_be_chosen_is_refused(tmp_path: Path, more: list[str], said: str) -> None:
    base = table(tmp_path / "base.jsonl", lambda i, _: i % 2 > 0, repeats=2, items=30)
    given = [part.format(tmp=tmp_path) for part in more]
    out = [] if "--out" in given else ["--out", tmp_path / "probe.jsonl"]
    done = call("probe", base, *out, *given)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "probe.jsonl").exists()


def test_one_sampled_answer_says_nothing_of_stability(asked: Path, tmp_path: Path) -> None:
    run = call(
        "run", asked / "base", "--suite", asked / "items.jsonl", "--temperature", "1",
        "--max-new-tokens", "4", "--limit", "5", "--out", tmp_path / "run",
    )  # fmt: skip
    assert run.code == 0, run.err
    done = call("probe", tmp_path / "run", "--out", tmp_path / "probe.jsonl")
    assert done.code == 2
    assert "may be luck" in done.err


def test_a_suite_that_changed_is_noticed(asked: Path, tmp_path: Path) -> None:
    items = write(tmp_path / "items.jsonl", probe_lines(asked)[1:])
    row = {"task": "task-0", "id": "0", "question": "?", "gold": "x"}
    mark = {"suite": "items.jsonl", "group": "g", "known": 1, "by": "total"}
    out = write(tmp_path / "probe.jsonl", [row | {"probe": mark}])
    done = call("run", asked / "base", "--suite", out, "--out", tmp_path / "run")
    assert done.code == 2
    assert "has no item '0'" in done.err
    assert items.is_file()
    done = call("probe", "check", items, asked / "run-base")
    assert done.code == 2
    assert "not a line of a probe" in done.err
    half = write(tmp_path / "half.jsonl", [row | {"probe": {"group": "g", "by": "total"}}])
    done = call("probe", "check", half, asked / "run-base")
    assert done.code == 2
    assert "not a line of a probe" in done.err


def test_a_group_without_an_answer_says_nothing(tmp_path: Path) -> None:
    base = table(tmp_path / "base.jsonl", lambda i, _: i % 4 > 0, repeats=2)
    whole = table(tmp_path / "whole.jsonl", lambda i, _: i % 4 > 0, repeats=1)
    some = [row for row in probe_rows(whole) if row["category"] == "c0"]
    part = write(tmp_path / "part.jsonl", some)
    out = tmp_path / "probe.jsonl"
    assert call("probe", base, "--out", out).code == 0
    given = ("probe", "check", out, part, "--chosen-from", base, "--full", whole)
    done = call(*given, "--json")
    told = json.loads(done.out, parse_constant=pytest.fail)
    found = {group["name"]: group for group in told["groups"]}
    assert found["c0"]["agrees"]
    assert found["c1"]["forgotten"]["value"] is None
    assert found["c1"]["agrees"] is None
    assert "no scored answer" in call(*given).out


def probe_lines(asked: Path) -> list[dict[str, Any]]:
    return probe_rows(asked / "items.jsonl")


@pytest.mark.parametrize("level", ["0.5", "1", "nan"])
def test_a_level_that_is_no_confidence(level: str, tmp_path: Path) -> None:
    done = call("probe", "check", tmp_path / "probe.jsonl", tmp_path / "run", "--level", level)
    assert done.code == 2
    assert f"--level is {float(level)!r}" in done.err
