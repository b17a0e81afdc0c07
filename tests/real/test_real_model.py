"""A real language model, SmolLM2-135M-Instruct, through forgetmap and through lm-eval.

lm-eval is run as users run it: `forgetmap run --harness lm-eval`. `make test-real` fetches the
model and runs this; `make test` does not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pyarrow.parquet as pq
import pytest

import forgetmap as fm
from command_line import process, write
from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.base import Backend, Likelihoods, Question
from forgetmap.scoring.grading import grade_likelihoods
from peer import Asked, Found, Key, run_lm_eval
from real_facts import fact_rows
from ties import FOLDER, GGUF, TIE, gap_where_they_part

ITEMS, CHAT_ITEMS = 6, 1

Row = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """One set of items: our records, and what lm-eval found, by task and item."""

    ours: dict[Key, Row]
    theirs: dict[Key, Found]


def records(run: Path) -> dict[Key, Row]:
    """Scores and texts of a run; what was written counts as the lenient scorer read it."""
    texts = {(row["task"], row["item"]): row for row in rows_of(run / "texts.parquet")}
    scores = [row for row in rows_of(run / "scores.parquet") if row["scorer"] != "strict"]
    return {key: texts[key] | row for row in scores for key in [(row["task"], row["item"])]}


def rows_of(file: Path) -> list[Row]:
    rows: list[Row] = pq.read_table(file).to_pylist()
    return rows


def run_ours(model: Path, out: Path, *options: object) -> dict[Key, Row]:
    """`forgetmap run`, as a user does it."""
    done = process("run", model, "--out", out, *options)
    assert done.code == 0, done.err
    return records(out)


def run_hidden(suite: Path, out: Path) -> dict[Key, Row]:
    """The options not shown, but weighed by their texts."""
    shown = fm.load_suite(suite)
    tasks = tuple(replace(task, hides_options=True) for task in shown.tasks)
    return records(fm.evaluate(FOLDER, replace(shown, tasks=tasks), out))


def as_letters(row: Row) -> tuple[str, ...]:
    return tuple(ascii_uppercase[: len(row["options"])])


def as_texts(row: Row) -> tuple[str, ...]:
    return tuple(row["options"])


def weighed(ours: dict[Key, Row], shown_as: Callable[[Row], tuple[str, ...]]) -> list[Asked]:
    return [
        Asked(key, row["prompt"], shown_as(row), row["options"].index(row["gold"]))
        for key, row in ours.items()
        if row["scorer"] == "loglikelihood"
    ]


def written(ours: dict[Key, Row], stop: tuple[str, ...]) -> list[Asked]:
    return [
        Asked(key, row["prompt"], stop=stop)
        for key, row in ours.items()
        if row["scorer"] != "loglikelihood"
    ]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("facts") / "facts.jsonl", fact_rows())


@pytest.fixture(scope="module")
def basics(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, Row]:
    out = tmp_path_factory.mktemp("basics") / "run"
    return run_ours(FOLDER, out, "--suite", "basics", "--limit", ITEMS)


@pytest.fixture(scope="module")
def compared(
    basics: dict[Key, Row], facts: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Compared]:
    """Everything asked on both sides; lm-eval gets the prompts that our records hold."""
    folder = tmp_path_factory.mktemp("sides")
    chat = run_ours(FOLDER, folder / "chat", "--suite", "basics", "--limit", CHAT_ITEMS, "--chat")
    lettered = run_ours(FOLDER, folder / "lettered", "--suite", facts)
    hidden = run_hidden(facts, folder / "hidden")
    asked = {
        "basics_open": (basics, written(basics, stop=("\n",))),
        "basics_letters": (basics, weighed(basics, as_letters)),
        "basics_chat": (chat, written(chat, stop=())),
        "facts_letters": (lettered, weighed(lettered, as_letters)),
        "facts_texts": (hidden, weighed(hidden, as_texts)),
    }
    prompts = {name: items for name, (_, items) in asked.items()}
    found = run_lm_eval(FOLDER, prompts, folder)
    return {name: Compared(ours, found[name]) for name, (ours, _) in asked.items()}


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_model(FOLDER)[0]


@pytest.mark.parametrize("name", ["basics_open", "basics_chat"])
def test_what_is_written_is_the_same_text(name: str, compared: dict[str, Compared]) -> None:
    sides = compared[name]
    differing = {
        key: (sides.ours[key]["prompt"], sides.ours[key]["response"], found.text)
        for key, found in sides.theirs.items()
        if sides.ours[key]["response"] != found.text
    }
    unexplained = {
        key: texts for key, texts in differing.items() if gap_where_they_part(*texts) >= TIE
    }
    equal = len(sides.theirs) - len(differing)
    explained = len(differing) - len(unexplained)
    print(f"\n{name}: {equal} of {len(sides.theirs)} texts equal, {explained} part at a tie")
    assert not unexplained
    assert equal >= 50


def gap(values: tuple[float, ...]) -> float:
    """Between the first and the second."""
    second, first = sorted(values)[-2:]
    return first - second


def likeliest(values: tuple[float, ...]) -> int:
    return values.index(max(values))


@pytest.mark.parametrize("name", ["basics_letters", "facts_letters", "facts_texts"])
def test_the_same_option_is_chosen(name: str, compared: dict[str, Compared]) -> None:
    sides = compared[name]
    equal, furthest = 0, 0.0
    for key, found in sides.theirs.items():
        row = sides.ours[key]
        gold = found.logprobs[row["options"].index(row["gold"])]
        furthest = max(furthest, abs(row["logprob_gold"] - gold))
        if row["choice"] != row["options"][likeliest(found.logprobs)]:
            assert gap(found.logprobs) < TIE, key
            continue
        equal += 1
        assert row["score"] == found.metrics["acc"], key
        furthest = max(furthest, abs(row["logprob_answer"] - max(found.logprobs)))
    total = len(sides.theirs)
    right = sum(found.metrics["acc"] for found in sides.theirs.values()) / total
    print(f"\n{name}: {equal} of {total} choices equal, {total - equal} are ties; ", end="")
    print(f"log-likelihoods within {furthest:.1e}; {right:.3f} right")
    assert furthest < TIE
    assert equal >= 100


def weights(backend: Backend, rows: dict[Key, Row]) -> Iterator[tuple[Key, Likelihoods]]:
    questions = [
        Question(row["prompt"], tuple(f" {text}" for text in row["options"]))
        for row in rows.values()
    ]
    keys = list(rows)
    for place, found in backend.loglikelihood(questions):
        assert isinstance(found, Likelihoods)
        yield keys[place], found


def test_long_options_are_normalised_alike(compared: dict[str, Compared], backend: Backend) -> None:
    sides = compared["facts_texts"]
    right = 0.0
    for key, mine in weights(backend, sides.ours):
        row, theirs = sides.ours[key], sides.theirs[key]
        judged = partial(
            grade_likelihoods, mine.logprobs, mine.tokens, row["options"], gold=row["gold"]
        )
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=TIE)
        assert min(mine.tokens) > 1
        assert judged(normalise="none").score == theirs.metrics["acc"], key
        assert judged(normalise="chars").score == theirs.metrics["acc_norm"], key
        right += theirs.metrics["acc_norm"]
    share = right / len(sides.ours)
    print(f"\nfacts_texts: {len(sides.ours)} items also by acc_norm ({share:.3f}), all equal")
    assert share > 0.5, "the model knows simple facts: half of these at least"


def test_a_gguf_file_and_a_folder_with_its_weights_answer_alike(
    facts: Path, compared: dict[str, Compared], basics: dict[Key, Row], tmp_path: Path
) -> None:
    from_file = run_ours(GGUF, tmp_path / "facts", "--suite", facts)
    from_file |= run_ours(GGUF, tmp_path / "basics", "--suite", "basics", "--limit", 2)
    from_folder = compared["facts_letters"].ours | basics
    for key, row in from_file.items():
        other = from_folder[key]
        for name in ("prompt", "response", "choice", "score", "outcome", "tokens_in"):
            assert row[name] == other[name], (key, name)
        assert row["logprob_gold"] == pytest.approx(other["logprob_gold"], abs=TIE)
    print(f"\nGGUF and folder: {len(from_file)} answers equal")
    assert len(from_file) >= 200


def test_basics_is_neither_hopeless_nor_trivial(basics: dict[Key, Row]) -> None:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in basics.values():
        groups[row["category"]].append(row)
    print("\nbasics          items  right  chance  by outcome")
    for name, rows in groups.items():
        right, chance = (sum(map(of, rows)) / len(rows) for of in (score_of, chance_of))
        outcomes = dict(Counter(row["outcome"] for row in rows))
        print(f"{name:15} {len(rows):5}  {right:.3f}   {chance:.3f}  {outcomes}")
        assert right < 1
    outcomes = Counter(row["outcome"] for row in basics.values())
    assert outcomes["error"] == 0
    assert sum(outcomes[each] for each in ("no_answer", "refused", "truncated")) < 18
    scores = [score_of(row) for row in basics.values()]
    assert 0.1 < sum(scores) / len(scores) < 0.9


def score_of(row: Row) -> float:
    return float(row["score"])


def chance_of(row: Row) -> float:
    return 1 / row["k"] if row["k"] else 0.0
