"""The suites of capabilities: their prompts, and the best values for the best responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from captrack_copy import write_copy
from forgetmap.capabilities.measure import Measuring, judge_at, measure
from forgetmap.capabilities.sample import Reference, capabilities_suite, references
from forgetmap.capabilities.suite import captrack_suite, scorers_of
from forgetmap.capabilities.taxonomy import Metric, load_taxonomy
from forgetmap.errors import ForgetmapError
from forgetmap.records.run import Run
from forgetmap.records.validate import check_run
from forgetmap.scoring.registry import find_scorer, needs_of, signature_of
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run
from judge_server import Answer, Asked, best_reply, judge_server
from perfect_rows import ROWS, write_model
from reciting import recite, said_in_turn

PROJECT = Path(__file__).parents[2]
SAMPLE, CAPTRACK = load_taxonomy("sample"), load_taxonomy("captrack")
Values = dict[tuple[str, str, str], float | None]
BEST = [metric for metric in SAMPLE.metrics if metric.scorer != "style"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path_factory.getbasetemp() / "suites-cache"))


def prompts() -> dict[str, tuple[str, Reference]]:
    """Every prompt -> its task and reference; of a conversation the first turn, too."""
    found = {}
    for task, each in ((task, each) for task, all_ in references().items() for each in all_):
        asked = each.item.request or each.item.question
        if each.first_response is not None:
            first = each.item.material["turns"][0]
            opening = Reference(each.item, each.first_response)
            found[said_in_turn(first)] = (f"{task}.first", opening)
            asked = said_in_turn(first, each.first_response, asked)
            found[asked] = (task, each)
        else:
            found[said_in_turn(asked)] = (task, each)
    return found


def best(prompt: str) -> str:
    return prompts()[prompt][1].response


def letter_in(asked: Asked) -> str:
    said = re.findall(r"Answer: ([A-H])\b", asked.user)
    return said[-1] if said else "B"


def judged(path: Path) -> Run:
    """The run with all scores, those of a kind judge and a sandbox included."""
    with judge_server(lambda asked: Answer(best_reply(asked, letter_in(asked)))) as served:
        how = Measuring(judge=judge_at(served.url, "judge"), allow_exec=True, processes=1)
        return measure(fm.open_run(path), SAMPLE, how)


def values_of(run: Run) -> Values:
    check_run(run)
    rows = run.scores.collect().rows(named=True)
    found = {
        (f"{row['task']}/{row['item']}", row["metric"], row["scorer"]): row["score"] for row in rows
    }
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model that says the best, one that says nothing, one that mixes up its answers."""
    folder = tmp_path_factory.mktemp("sample")
    known = prompts()

    def next_one(prompt: str) -> str:
        task, reference = known[prompt]
        same = [each for name, each in known.values() if name == task]
        return same[(same.index(reference) + 1) % len(same)].response

    def mixed(prompt: str) -> str:
        # Second turns hang on the first, which must be the one they were written for.
        return best(prompt) if known[prompt][0].startswith("conversations") else next_one(prompt)

    def mute(prompt: str) -> str:
        return ""

    said: dict[str, Callable[[str], str]] = {"best": best, "mute": mute, "mixed": mixed}
    suite = capabilities_suite()
    return {name: recite(suite, folder / name, answer) for name, answer in said.items()}


@pytest.fixture(scope="module")
def values(runs: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Values]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORGETMAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        return {name: values_of(judged(path)) for name, path in runs.items()}


def value(found: Values, metric: Metric, item: str, field: str | None = None) -> float | None:
    place = f"{metric.task}/{item}"
    return found.get(
        (place, str(field or metric.field), signature_of(find_scorer(str(metric.scorer))))
    )


@pytest.mark.parametrize("metric", BEST, ids=[metric.id for metric in BEST])
def test_every_reference_gets_the_best_value(values: dict[str, Values], metric: Metric) -> None:
    for each in references()[metric.task]:
        for field in filter(None, (metric.field, metric.strict)):
            score = value(values["best"], metric, each.item.id, field)
            assert score == metric.range.high, (each.item.id, field)
            if metric.judge is not None:
                key = (
                    f"{metric.task}/{each.item.id}",
                    field,
                    signature_of(find_scorer(metric.judge)),
                )
                assert values["best"][key] == 1, each.item.id


@pytest.mark.parametrize("metric", BEST, ids=[metric.id for metric in BEST])
def test_saying_nothing_gets_less(values: dict[str, Values], metric: Metric) -> None:
    for each in references()[metric.task]:
        score = value(values["mute"], metric, each.item.id)
        if metric.field in {"arguments", "arithmetic", "step_validity"}:
            assert score is None  # there is nothing to be right
        else:
            assert score is not None
            assert score < (metric.range.high or 0), each.item.id


MIXED = [
    metric
    for metric in BEST
    if metric.needs != "judge"
    and metric.scorer not in {"refusal", "reasoning_steps", "constraints"}
    and metric.field not in {"valid", "format"}
]


@pytest.mark.parametrize("metric", MIXED, ids=[metric.id for metric in MIXED])
def test_the_reference_of_another_item_gets_less(values: dict[str, Values], metric: Metric) -> None:
    items = [each.item for each in references()[metric.task]]
    for item, other in zip(items, [*items[1:], items[0]], strict=True):
        same_place = bool(item.options) and _place(item) == _place(other)
        if (item.gold and item.gold == other.gold) or same_place:
            continue
        if metric.field == "selection" and _tools(item) & _tools(other):
            continue
        score = value(values["mixed"], metric, item.id)
        assert score is None or score < (metric.range.high or 0), item.id


def _place(item: Any) -> int:
    return int(item.options.index(item.gold))


def _tools(item: Any) -> set[str]:
    return {call.partition("(")[0] for call in item.material["gold"]}


def test_drift_sees_all_of_it(runs: Mapping[str, Path]) -> None:
    with judge_server(lambda asked: Answer(best_reply(asked, letter_in(asked)))) as served:
        result = fm.drift(
            runs["best"], runs["mute"], taxonomy="sample", judge=(served.url, "judge"),
            allow_exec=True, draws=50, processes=1,
        )  # fmt: skip
    cells = {cell.id: cell for cell in result.metrics}
    for metric in SAMPLE.metrics:
        cell = cells[metric.id]
        if metric.scorer == "style":
            continue
        assert cell.before in (metric.range.high, None), metric.id
        if cell.value is not None:
            assert cell.value < 0, metric.id
    without = {cell.id for cell in result.metrics if cell.value is None}
    assert without <= {"H3.arguments", "C2.steps", "C2.arithmetic"}
    # Saying nothing twice is no agreement.
    assert (cells["C5a.sums"].before, cells["C5a.sums"].after) == (1.0, 0.0)
    assert {cell.id for cell in result.capabilities if cell.value is None} == set()


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the data set: nobody has answered it yet."""
    answers = ("outputs", "turn1_response")
    return {"id": "q0", **{name: cell for name, cell in row.items() if name not in answers}}


def copies(name: Callable[[str], str] = str) -> dict[str, list[dict[str, Any]]]:
    return {name(task): [shown(row)] for task, row in ROWS.items()}


@pytest.mark.needs_torch
def test_captrack_is_asked_as_its_rows_say(tmp_path: Path) -> None:
    suite = captrack_suite(write_copy(tmp_path, copies()))
    tasks = {task.name: task for task in suite.tasks}
    assert len(tasks) == 37 + 2
    assert tasks["gsm8k.subset"].scorers == ("number",)
    assert tasks["math.subset"].scorers == ("maths", "reasoning")
    (item,) = tasks["mmlu_pro.subset"].load()
    assert (item.id, item.gold, item.options[1]) == ("q0", "mercury", "mercury")
    (item,) = tasks["mtbench.turn2"].load()
    assert item.request == "Where does it end?"
    assert tasks["mtbench.turn2"].follows == "mtbench.turn2.first"
    (item,) = tasks["mtbench.turn2.first"].load()
    assert item.question == "Name a river."
    for task in suite.tasks:
        assert len(task.load()) == 1


@pytest.mark.needs_torch
def test_a_formatted_prompt_is_what_is_shown(tmp_path: Path) -> None:
    row = shown(ROWS["gsm8k.subset"]) | {"formatted_prompt": "Question: how many?\nThink first."}
    suite = captrack_suite(write_copy(tmp_path, {"gsm8k.subset": [row]}))
    (item,) = next(task for task in suite.tasks if task.name == "gsm8k.subset").load()
    assert item.request == "Question: how many?\nThink first."
    assert item.question == ROWS["gsm8k.subset"]["prompt"]


@pytest.mark.needs_torch
def test_subsets_may_be_named_with_a_line_and_be_called_train(tmp_path: Path) -> None:
    named = copies(lambda task: task.replace(".", "_"))
    suite = captrack_suite(write_copy(tmp_path, named, split="train"))
    assert len(suite.tasks[0].load()) == 1
    missing = captrack_suite(write_copy(tmp_path / "other", {"some": [{"id": "1"}]}))
    with pytest.raises(ForgetmapError) as caught:
        missing.tasks[0].load()
    assert "mmlu_pro.subset" in str(caught.value)
    with pytest.raises(ForgetmapError, match="no local copy"):
        captrack_suite(tmp_path / "nowhere").tasks[0].load()


@pytest.mark.needs_torch
def test_a_run_of_captrack_scores_as_its_responses_do(tmp_path: Path) -> None:
    """What the runner writes is what measuring a folder of responses gives."""
    suite = captrack_suite(write_copy(tmp_path / "data", copies()))
    answers: dict[str, str] = {}
    for row in ROWS.values():
        prompt = row["prompt"]
        if isinstance(prompt, list):
            first, second = (
                turn["user prompt"] if isinstance(turn, dict) else turn for turn in prompt
            )
            answers[said_in_turn(first)] = row["turn1_response"]
            answers[said_in_turn(first, row["turn1_response"], second)] = row["outputs"]
        else:
            answers[said_in_turn(prompt)] = row["outputs"]
    asked = [row["prompt"] for row in ROWS.values() if isinstance(row["prompt"], str)]
    different = {task for task, row in ROWS.items() if asked.count(row["prompt"]) > 1}
    ours = values_of(fm.open_run(recite(suite, tmp_path / "run", answers.__getitem__)))
    folder = write_model(tmp_path / "model", "jsonl")
    read = open_run(folder, reading=Reading(cached=False))
    theirs = values_of(measure(read, CAPTRACK, Measuring(processes=1, cached=False)))
    compared = 0
    for (place, metric, who), score in ours.items():
        task = place.partition("/")[0]
        known = {signature_of(find_scorer(name)) for name in scorers_of(CAPTRACK, task)}
        by_rule = needs_of(find_scorer(who.partition("@")[0])) == "rule"
        if task in different or who not in known or not by_rule:
            continue
        assert theirs[place, metric, who] == score, (place, metric)
        compared += 1
    assert compared > 60
