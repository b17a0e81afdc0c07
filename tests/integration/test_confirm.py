"""`forgetmap confirm` with real models, in this process and behind servers, and `map --confirm`."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import Done, call, write
from forgetmap.errors import OutputError, UsageError
from forgetmap.records import RunInfo
from forgetmap.records.manifest import write_manifest
from letter_models import save_letter_model

pytestmark = pytest.mark.needs_torch

ASK = ("--temperature", "1", "--max-new-tokens", "4")
ITEMS = {"x": 60, "y": 60, "z": 60}
"""Right answer -> number of items: options A, B and C."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models that answer at random: one knows what the other has forgotten, and vice versa."""
    folder = tmp_path_factory.mktemp("confirm")
    save_letter_model(folder / "base", {"A": 0.8, "B": 0.1, "C": 0.1})
    save_letter_model(folder / "tuned", {"A": 0.1, "B": 0.1, "C": 0.8})
    rows = [
        {"question": f"Which one is {place}?", "options": ["x", "y", "z"], "id": f"{gold}{place}"}
        | {"gold": gold, "task": f"task-{gold}"}
        for gold, count in ITEMS.items()
        for place in range(count)
    ]
    write(folder / "items.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Path]:
    """Both models once, and the first one again."""
    for name, model, seed in (("base", "base", 0), ("tuned", "tuned", 0), ("same", "base", 5)):
        done = call(
            "run", folder / model, "--suite", folder / "items.jsonl", *ASK, "--seed", seed,
            "--out", folder / "runs" / name,
        )  # fmt: skip
        assert done.code == 0, done.err
    return {name: folder / "runs" / name for name in ("base", "tuned", "same")}


def responses(path: Path) -> dict[tuple[str, int], str]:
    texts = fm.open_run(path).texts
    assert texts is not None
    return {
        (row["item"], row["repeat"]): row["response"] for row in texts.collect().rows(named=True)
    }


def test_an_exchange_is_proven(runs: dict[str, Path], tmp_path: Path) -> None:
    """Accuracy held or nothing can be told; asked again, what was lost is lost."""
    first = fm.compare(runs["base"], runs["tuned"]).result.total
    assert first.verdict in ("no_net_loss", "cannot_tell")
    out = tmp_path / "out"
    done = call("confirm", runs["base"], runs["tuned"], "--out", out, "--gains", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    total = said["comparison"]["total"]
    assert (total["verdict"], total["loss"]["carried_by"]) == ("lost", "confirmed")
    # How much is shown depends on the fresh answers, whose seed depends on the folder.
    assert total["loss"]["low"] > first.margin
    assert total["gain"]["low"] > first.margin
    assert total["confirmed"]["asked"] == said["forgotten"] == first.forgotten
    assert said["answers"] == 2 * (first.forgotten + first.gained)
    assert f"{said['answers']} answers" in done.err
    # What is said is what anybody finds who reads the fresh answers.
    again = fm.compare(runs["base"], runs["tuned"], confirm=(out / "before", out / "after"))
    assert again.result.total.loss.low == pytest.approx(total["loss"]["low"])


def test_fresh_answers_are_fresh(runs: dict[str, Path], tmp_path: Path) -> None:
    """Other seeds than at first, only the flips, as many answers as fixed, and the same prompts."""
    done = call("confirm", runs["base"], runs["tuned"], "--out", tmp_path, "--repeats", 2)
    assert done.code == 0, done.err
    plan = json.loads((tmp_path / "confirm.json").read_text())
    asked = {item for _, item, _, _ in plan["items"]}
    for side, run in (("before", runs["base"]), ("after", runs["tuned"])):
        info, first = fm.open_run(tmp_path / side).info, fm.open_run(run).info
        assert not set(info.seeds) & set(first.seeds)
        assert info.decoding == first.decoding
        told = responses(tmp_path / side)
        assert {item for item, _ in told} == asked
        assert len(told) == 2 * len(asked)
        assert told != {key: text for key, text in responses(run).items() if key in told}
    assert "held in the fresh answers" in done.out
    assert f"--confirm {tmp_path / 'before'} {tmp_path / 'after'}" in done.out


def test_a_model_against_itself_is_not_lost(runs: dict[str, Path], tmp_path: Path) -> None:
    done = call("confirm", runs["base"], runs["same"], "--out", tmp_path, "--json")
    assert done.code == 0, done.err
    total = json.loads(done.out)["comparison"]["total"]
    assert total["confirmed"]["asked"] == total["forgotten"] > 10
    assert total["verdict"] in ("no_net_loss", "cannot_tell")


def test_a_random_part_is_asked(runs: dict[str, Path], tmp_path: Path) -> None:
    given = ("confirm", runs["base"], runs["tuned"], "--out", tmp_path / "out", "--limit", 25)
    dry = call(*given, "--dry-run")
    assert dry.code == 0, dry.err
    assert "25 items" in dry.out
    assert "50 answers" in dry.out
    assert not (tmp_path / "out").exists()
    done = call(*given, "--json")
    total = json.loads(done.out)["comparison"]["total"]
    assert total["confirmed"]["asked"] == 25 < total["confirmed"]["flips"]
    assert total["loss"]["carried_by"] == "confirmed"


def test_an_interrupted_confirmation_goes_on(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the answers that are there, and only for the items that were fixed."""

    def stop_later(name: str, step: Any) -> None:
        if name.startswith("tuned") and step.done == 5:
            raise KeyboardInterrupt

    pair = (runs["base"], runs["tuned"])
    with pytest.raises(KeyboardInterrupt):
        fm.confirm(*pair, out=tmp_path / "out", on_progress=stop_later)
    journal = tmp_path / "out" / ".after.journal.jsonl"
    kept = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert len(kept) == 5
    with pytest.raises(OutputError, match="fixed before"):
        fm.confirm(*pair, out=tmp_path / "out", repeats=2)
    steps: list[str] = []
    done = fm.confirm(*pair, out=tmp_path / "out", on_progress=lambda name, _: steps.append(name))
    whole = fm.confirm(*pair, out=tmp_path / "whole")
    assert set(steps) == {"tuned again"}
    assert len(steps) == len(done.plan.items) - 5
    assert responses(tmp_path / "out" / "after") == responses(tmp_path / "whole" / "after")
    assert done.comparison is not None
    assert whole.comparison is not None
    assert done.comparison.result.total.loss == whole.comparison.result.total.loss
    monkeypatch.setattr("forgetmap.confirmation.asking.open_model", None)  # nothing is opened again
    assert fm.confirm(*pair, out=tmp_path / "out").comparison is not None


def test_a_suite_that_changed_is_noticed(
    runs: dict[str, Path], folder: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    asked = [row | {"question": row["question"].replace("Which", "What")} for row in rows]
    pair = (runs["base"], runs["tuned"])
    other = write(tmp_path / "other.jsonl", asked)
    with pytest.raises(UsageError, match="prompts would differ from base") as caught:
        fm.confirm(*pair, out=tmp_path / "out", suite=other)
    assert "--suite" in caught.value.hint
    few = write(tmp_path / "few.jsonl", rows[:3])
    with pytest.raises(UsageError, match="has no task"):
        fm.confirm(*pair, out=tmp_path / "few", suite=few)


def test_models_may_have_moved(runs: dict[str, Path], folder: Path, tmp_path: Path) -> None:
    for name in ("base", "tuned"):
        (tmp_path / name).symlink_to(folder / name)
    models = (str(tmp_path / "base"), str(tmp_path / "tuned"))
    done = call(
        "confirm", runs["base"], runs["tuned"], "--models", *models, "--out", tmp_path / "o"
    )
    assert done.code == 0, done.err
    assert "LOST" in done.out


def test_models_at_another_place_are_those_of_the_runs(
    runs: dict[str, Path], folder: Path, tmp_path: Path
) -> None:
    """Also copies with other time stamps, in a folder of another name; exchanged ones are not."""
    for name, place in {"base": "one", "tuned": "two"}.items():
        shutil.copytree(folder / name, tmp_path / place, copy_function=shutil.copyfile)
    pair = (runs["base"], runs["tuned"])
    moved = (str(tmp_path / "one"), str(tmp_path / "two"))
    done = fm.confirm(*pair, out=tmp_path / "out", models=moved)
    assert done.comparison is not None
    assert fm.open_run(tmp_path / "out" / "after").info.asked.model == moved[1]  # type: ignore[union-attr]
    exchanged = (str(folder / "tuned"), str(folder / "base"))
    with pytest.raises(UsageError, match="--models are exchanged"):
        fm.confirm(*pair, out=tmp_path / "wrong", models=exchanged)


def test_both_models_are_looked_for_before_one_is_asked(
    runs: dict[str, Path], folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "tuned", tmp_path / "moving")
    given = ("--suite", folder / "items.jsonl", *ASK, "--out", tmp_path / "run")
    assert call("run", tmp_path / "moving", *given).code == 0
    (tmp_path / "moving").rename(tmp_path / "moved")
    done = call("confirm", runs["base"], tmp_path / "run", "--out", tmp_path / "out")
    assert done.code == 2
    assert "add --models BEFORE AFTER" in done.err
    assert not (tmp_path / "out" / "before").exists()


def test_commands_that_ask_elsewhere_work_when_pasted(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    pair = (runs["base"], runs["tuned"])
    done = call("confirm", *pair, "--items-only", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    lines = [line.strip() for line in done.out.splitlines() if line.startswith("  forgetmap")]
    assert len(lines) == 3
    outcome = Done(0, "", "")
    for line in lines:
        outcome = call(*shlex.split(line)[1:])
        assert outcome.code == 0, outcome.err
    assert "LOST" in outcome.out
    assert "by \nconfirmed flips" in outcome.out or "by confirmed flips" in outcome.out


def test_greedy_answers_that_repeat_exactly_count_in_one_setup(
    folder: Path, tmp_path: Path
) -> None:
    """In other batches, and if both models were asked in it; else the rerun is a copy."""
    for name in ("base", "tuned"):
        ask = ("--suite", folder / "items.jsonl", "--max-new-tokens", "4")
        given = ("--scoring", "generate", "--out", tmp_path / name)
        assert call("run", folder / name, *ask, *given).code == 0
    done = call("confirm", tmp_path / "base", tmp_path / "tuned", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "this setup repeats exactly" in " ".join(done.out.split())
    reruns = (tmp_path / "out" / "before", tmp_path / "out" / "after")

    def compared() -> Any:
        return fm.compare(tmp_path / "base", tmp_path / "tuned", confirm=reruns).result

    one_setup = compared()
    assert one_setup.pairing.warnings[0].code == "repeats_exactly"
    confirmed = one_setup.total.confirmed
    assert confirmed.asked == confirmed.held == one_setup.total.forgotten > 0
    manifest = tmp_path / "tuned" / "manifest.json"
    other = RunInfo.model_validate_json(manifest.read_text())
    assert other.asked is not None
    assert "float32" in (other.asked.setup or "")
    asked = other.asked.model_copy(update={"setup": "vLLM, bfloat16"})
    write_manifest(manifest, other.model_copy(update={"asked": asked}))
    assert [notice.code for notice in compared().pairing.warnings][:2] == ["copies"] * 2
    assert compared().total.confirmed.asked == 0


@pytest.fixture
def servers(folder: Path) -> Iterator[dict[str, str]]:
    from transformers import AutoModelForCausalLM

    from logprob_server import NAME, Dialect, serving
    from tiny_models import tokenizer

    with ExitStack() as stack:
        found = {}
        for name in ("base", "tuned"):
            model = AutoModelForCausalLM.from_pretrained(folder / name).eval()
            dialect = Dialect(model, tokenizer=tokenizer())
            found[name] = f"{stack.enter_context(serving(dialect))}#{NAME}"
        yield found


def test_servers_are_asked_again(servers: dict[str, str], folder: Path, tmp_path: Path) -> None:
    """As models in this process, and through `map`, which offers it as its next step."""
    given = ("map", servers["base"], servers["tuned"], "--suite", folder / "items.jsonl", *ASK,
             "--concurrency", 4, "--out", tmp_path / "map")  # fmt: skip
    done = call(*given)
    assert done.code == 0, done.err
    runs = sorted((tmp_path / "map" / "runs").iterdir())
    alone = call("confirm", *runs, "--out", tmp_path / "out", "--json")
    assert alone.code == 0, alone.err
    total = json.loads(alone.out)["comparison"]["total"]
    assert (total["verdict"], total["loss"]["carried_by"]) == ("lost", "confirmed")
    assert fm.open_run(tmp_path / "out" / "before").info.service is not None
    (line,) = [line for line in done.out.replace("\n  ", " ").splitlines() if "--confirm" in line]
    command = shlex.split(line.partition("`")[2].partition("`")[0])
    assert command[:2] == ["forgetmap", "map"]
    later = call(*command[1:])
    assert later.code == 0, later.err
    result = json.loads((tmp_path / "map" / "result" / "comparison.json").read_text())
    assert result["total"]["loss"]["low"] == pytest.approx(total["loss"]["low"], abs=0.1)
    assert result["total"]["loss"]["carried_by"] == "confirmed"


def test_map_plans_it_or_adds_it(folder: Path, tmp_path: Path) -> None:
    """Planned, it has half of the error; added to a result that was seen, a quarter."""
    given = ("map", folder / "base", folder / "tuned", "--suite", folder / "items.jsonl", *ASK)
    lows = {}
    for name, commands in {"planned": [True], "later": [False, True]}.items():
        for confirm in commands:
            out = ("--out", tmp_path / name, *(["--confirm"] if confirm else []))
            done = call(*given, *out)
            assert done.code == 0, done.err
        result = json.loads((tmp_path / name / "result" / "comparison.json").read_text())
        assert result["total"]["loss"]["carried_by"] == "confirmed"
        lows[name] = result["total"]["loss"]["low"]
        assert (tmp_path / name / "report.html").is_file()
    assert lows["planned"] > lows["later"] > 0
    # A planned one stays planned when it is started again.
    again = call(*given, "--out", tmp_path / "planned", "--confirm")
    assert again.code == 0, again.err
    result = json.loads((tmp_path / "planned" / "result" / "comparison.json").read_text())
    assert result["total"]["loss"]["low"] == lows["planned"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--repeats", "auto"), "cannot be combined"),
        (("--chain",), "flips of two models"),
    ],
)
def test_map_confirms_two_models(
    more: tuple[str, ...], said: str, folder: Path, tmp_path: Path
) -> None:
    given = ("--suite", folder / "items.jsonl", *ASK, "--confirm", "--out", tmp_path / "map")
    done = call("map", folder / "base", folder / "tuned", *given, *more)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "map" / "runs").exists()
