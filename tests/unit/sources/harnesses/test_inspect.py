"""Logs of Inspect: both formats, complete and damaged, renamed and compressed."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import EmptyInputError, UnknownFormatError, UnreadableError
from forgetmap.records.run import Run
from forgetmap.sources.logs import Reading, recognise
from forgetmap.sources.open import open_run

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs" / "inspect"
ARCHIVES = sorted(FIXTURES.glob("*/log/*.eval"))
ONLY_IN_SAMPLES = ("prompt_hash", "finish_reason")


def sample(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A sample answered rightly, unless fields say otherwise."""
    return {
        "id": number,
        "epoch": 1,
        "input": f"What follows {number}?",
        "target": str(number + 1),
        "scores": {"match": {"value": "C", "answer": str(number + 1)}},
        **fields,
    }


def choice(value: Any, answer: str | None = None, **fields: Any) -> dict[str, Any]:
    """The scores of a sample with one scorer."""
    return {"choice": {"value": value, "answer": answer, **fields}}


def log(*samples: Any, **spec: Any) -> dict[str, Any]:
    """A log in the single-document form."""
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": "r",
            "task_id": "t",
            "created": "2025-01-01T12:00:00+00:00",
            "task": "suite/count",
            "task_version": 0,
            "model": "openai/some",
            "dataset": {"name": "count"},
            **spec,
        },
        "plan": {"steps": [], "config": {}},
        "results": {"scores": [{"name": "match", "scorer": "match", "metrics": {}}]},
        "samples": list(samples),
    }


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2))
    return path


def pack(path: Path, document: dict[str, Any], **members: Any) -> Path:
    """The same as a deflated archive with samples and no summaries, and further members."""
    header = {name: value for name, value in document.items() if name != "samples"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for each in document["samples"]:
            name = f"samples/{each['id']}_epoch_{each['epoch']}.json"
            archive.writestr(name, json.dumps(each))
        for name, content in members.items():
            archive.writestr(f"{name}.json", content)
    return path


def opened(path: Path, *, texts: bool = True, strict: bool = False) -> Run:
    return open_run(path, reading=Reading(texts=texts, strict=strict, cached=False))


def rows(path: Path, *, texts: bool = True) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Item, metric and scorer -> row of the scores."""
    table = opened(path, texts=texts).scores.collect().rows(named=True)
    return {(row["item"], row["metric"], row["scorer"]): row for row in table}


def only(path: Path) -> dict[str, Any]:
    """The one row there is."""
    (row,) = rows(path).values()
    return row


def cells(before: Path, after: Path) -> tuple[int, int, int, int]:
    total = fm.compare(before, after).result.total
    return total.n11, total.n10, total.n01, total.n00


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_without_texts_the_scores_are_the_same(path: Path) -> None:
    whole = opened(path).scores.drop(*ONLY_IN_SAMPLES).collect().rows(named=True)
    quick = opened(path, texts=False).scores.drop(*ONLY_IN_SAMPLES).collect().rows(named=True)
    keys = ("item", "repeat", "metric", "scorer")
    order = [tuple(row[key] for key in keys) for row in whole]
    assert sorted(order) == sorted(tuple(row[key] for key in keys) for row in quick)
    by_key = {tuple(row[key] for key in keys): row for row in quick}
    assert [by_key[key] for key in order] == [_without_texts(row) for row in whole]


def _without_texts(row: dict[str, Any]) -> dict[str, Any]:
    """That a right answer was scored 0 shows only in its text."""
    return row | {"outcome": None} if row["outcome"] == "misread" else row


def test_a_long_question_is_not_taken_from_its_summary() -> None:
    (path,) = FIXTURES.glob("*-zstd-scores/log/*.eval")
    run = opened(path)
    assert run.texts is not None
    questions = {row["item"]: row["question"] for row in run.texts.collect().rows(named=True)}
    assert questions["long"] == "Say long. " + "Please. " * 800
    hashes = {row["item"]: row["question_hash"] for row in rows(path, texts=False).values()}
    assert hashes["long"] == rows(path)["long", "right", "two_values"]["question_hash"]


@pytest.mark.parametrize("path", [*ARCHIVES, *FIXTURES.glob("*/log/*.json")], ids=lambda p: p.stem)
def test_renamed_and_gzipped(path: Path, tmp_path: Path) -> None:
    renamed = shutil.copy(path, tmp_path / "b.bin")
    packed = tmp_path / "c"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    expected = rows(path)
    assert rows(Path(renamed)) == expected
    assert rows(packed) == expected


def test_what_the_header_says(tmp_path: Path) -> None:
    document = log(
        sample(),
        model="hf/local",
        model_args={"model_path": "models/tuned", "revision": "main", "do_sample": False},
        task_version="2-B",
        task_args={"fewshot": 5},
        packages={"inspect_ai": "0.3.99"},
        created="2025-01-01T23:30:00-05:00",
        model_generate_config={"temperature": 0.2, "max_tokens": 5, "reasoning_effort": "\ud800"},
    )
    document["plan"]["config"] = {"temperature": 0.0, "seed": 3, "stop_seqs": ["."], "top_p": None}
    info = opened(write(tmp_path / "a.json", document)).info
    assert info.model.model_dump() == {
        "name": "models/tuned",
        "revision": "main",
        "adapter": None,
    }
    assert info.harness.version == "0.3.99"
    assert info.created == "2025-01-02T04:30:00Z"
    assert info.seeds == [3]
    assert info.decoding == {
        "do_sample": False,
        "temperature": 0.0,
        "max_new_tokens": 5,
        "stop": ["."],
        "reasoning_effort": "?",
    }
    assert info.tasks["count"].version == "2-B"
    assert info.tasks["count"].n_shot == 5


def test_a_task_without_version_has_none(tmp_path: Path) -> None:
    assert opened(write(tmp_path / "a.json", log(sample()))).info.tasks["count"].version is None


def test_the_headline_is_the_main_measure(tmp_path: Path) -> None:
    document = log(sample(scores={"a": {"value": 1}, "b": {"value": {"x": 1, "y": 0}}}))
    document["results"] = {
        "scores": [
            {"name": "a", "scorer": "a"},
            {"name": "x", "scorer": "b"},
            {"name": "y", "scorer": "b"},
        ],
    }
    first = opened(write(tmp_path / "a.json", document)).info.tasks["count"]
    assert (first.main_metric, first.main_scorer) == ("value", "a")
    document["results"]["headline"] = {"scorer": "b", "score": "y", "metric": "mean"}
    named = opened(write(tmp_path / "b.json", document)).info.tasks["count"]
    assert (named.main_metric, named.main_scorer) == ("y", "b")


@pytest.mark.parametrize(
    ("value", "score", "outcome"),
    [
        ("C", 1.0, "correct"),
        ("I", 0.0, "incorrect"),
        ("P", 0.5, "partial"),
        ("N", 0.0, "no_answer"),
        ("yes", 1.0, None),
        ("No", 0.0, None),
        ("TRUE", 1.0, None),
        ("0.75", 0.75, None),
        (True, 1.0, None),
        (3, 3.0, None),
        (float("nan"), None, "unscored"),
        (None, None, "unscored"),
        ("excellent", None, "unscored"),
    ],
)
def test_values(value: Any, score: float | None, outcome: str | None, tmp_path: Path) -> None:
    row = only(write(tmp_path / "a.json", log(sample(scores={"s": {"value": value}}))))
    assert (row["score"], row["outcome"]) == (score, outcome)


def test_a_word_is_a_problem_where_a_score_is_expected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", log(sample(scores={"s": {"value": "excellent"}})))
    (problem,) = opened(path).problems
    assert (problem.file, problem.field) == (str(path), "scores.s")
    with pytest.raises(fm.ForgetmapError, match="excellent"):
        opened(path, strict=True)


def test_lists_are_no_scores_and_objects_are_several(tmp_path: Path) -> None:
    scores = {"l": {"value": [1, 0]}, "d": {"value": {"f1": 0.5, "parts": [1], "label": "good"}}}
    assert rows(write(tmp_path / "a.json", log(sample(scores=scores)))).keys() == {("1", "f1", "d")}


def test_an_error_is_missing_under_every_measure(tmp_path: Path) -> None:
    failed = sample(1, scores=None, error={"message": "overloaded", "traceback": ""})
    scored = sample(2, scores={"a": {"value": 1}, "b": {"value": {"x": 0}}})
    found = rows(write(tmp_path / "a.json", log(failed, scored)))
    assert found.keys() == {(item, *m) for item in "12" for m in (("value", "a"), ("x", "b"))}
    assert {(row["score"], row["outcome"]) for (item, *_), row in found.items() if item == "1"} == {
        (None, "error")
    }


def test_a_log_of_nothing_but_errors_uses_the_scorers_of_the_header(tmp_path: Path) -> None:
    document = log(sample(scores=None, error={"message": "overloaded"}), scorers=[{"name": "z"}])
    document["results"] = None
    row = only(write(tmp_path / "a.json", document))
    assert (row["scorer"], row["score"], row["outcome"]) == ("z", None, "error")


@pytest.mark.parametrize(
    ("limit", "value", "outcome"),
    [
        ({"type": "token", "limit": 5}, "I", "truncated"),
        ("context", "I", "truncated"),
        ({"type": "token", "limit": 5}, "C", "correct"),
        ({"type": "time", "limit": 5}, "I", "incorrect"),
        ({"type": "token", "limit": 5}, float("nan"), "unscored"),
    ],
)
def test_limits(limit: Any, value: Any, outcome: str, tmp_path: Path) -> None:
    document = log(sample(limit=limit, scores={"s": {"value": value}}))
    assert only(write(tmp_path / "a.json", document))["outcome"] == outcome


@pytest.mark.parametrize(
    ("target", "answer", "options", "gold", "place", "chosen"),
    [
        ("B", "A", ["x", "y"], "y", 1, "x"),
        (["B"], "B", ["x", "y"], "y", 1, "y"),
        ("AC", "A, B", ["z", "y", "x"], "x; z", None, "y; z"),
        (["C", "A"], "A,C", ["z", "y", "x"], "x; z", None, "x; z"),
        ("y", "x", ["x", "y"], "y", 1, "x"),
        ("B", "A", ["B", "A"], "A", 1, "B"),
        ("BAD", "AD", ["BAD", "CAB", "DAB", "ADD"], "BAD", 0, "ADD; BAD"),
        ("A", "neither", ["x", "y"], "x", 0, None),
    ],
)
def test_letters_stand_for_options(
    target: Any,
    answer: str,
    options: list[str],
    gold: str,
    place: int | None,
    chosen: str | None,
    tmp_path: Path,
) -> None:
    document = log(sample(choices=options, target=target, scores=choice("C", answer)))
    row = only(write(tmp_path / "a.json", document))
    assert (row["gold"], row["gold_index"], row["choice"]) == (gold, place, chosen)
    assert row["k"] == len(options)


def test_shuffled_options_pair_by_content(tmp_path: Path) -> None:
    one = [
        sample(1, input="Even?", choices=["1", "2"], target="B", scores=choice("C", "B")),
        sample(2, input="Odd?", choices=["3", "4"], target="A", scores=choice("I", "B")),
    ]
    other = [
        sample(2, input="Even?", choices=["2", "1"], target="A", scores=choice("I", "B")),
        sample(1, input="Odd?", choices=["4", "3"], target="B", scores=choice("C", "B")),
    ]
    before = write(tmp_path / "a.json", log(*one))
    assert cells(before, write(tmp_path / "b.json", log(*other))) == (0, 1, 1, 0)


def test_epochs_are_repeats(tmp_path: Path) -> None:
    values = {(1, 1): "CC", (1, 2): "CI", (2, 1): "IC", (2, 2): "II"}
    for at, name in enumerate(("a", "b")):
        samples = [
            sample(
                item,
                epoch=epoch,
                scores={"match": {"value": each[at], "answer": f"drawn {item} {epoch}"}},
            )
            for (item, epoch), each in values.items()
        ]
        write(tmp_path / f"{name}.json", log(*samples[:: 1 - 2 * at]))
    assert cells(tmp_path / "a.json", tmp_path / "b.json") == (1, 1, 1, 1)


def test_parts_of_one_log_are_united_and_the_newest_log_counts(tmp_path: Path) -> None:
    old = log(sample(1), sample(2), created="2025-01-01T12:00:00+00:00")
    # Later, though its clock shows an earlier hour.
    new = log(sample(1, scores={"match": {"value": "I"}}), created="2025-01-01T09:00:00-05:00")
    unfinished = log(sample(1), created="2025-02-01T00:00:00+00:00") | {"status": "started"}
    write(tmp_path / "old.json", old)
    pack(tmp_path / "new.eval", new)
    second = copy.deepcopy(new) | {"samples": [sample(3)]}
    write(tmp_path / "part.json", second)
    write(tmp_path / "unfinished.json", unfinished)
    run = opened(tmp_path)
    found = {row["item"]: row["score"] for row in run.scores.collect().rows(named=True)}
    assert found == {"1": 0.0, "3": 1.0}
    assert "evaluated 3 times" in " ".join(run.notices)


def test_two_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("base", "tuned"):
        spec = {"model": "hf/local", "model_args": {"model_path": name}}
        write(tmp_path / f"{name}.json", log(sample(), **spec))
    with pytest.raises(fm.ForgetmapError, match="base, tuned"):
        opened(tmp_path)


def test_the_question_is_the_last_thing_the_user_says(tmp_path: Path) -> None:
    picture = {"type": "image", "image": "data:"}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "An example?"},
        {"role": "assistant", "content": "Yes.", "source": "input"},
        {"role": "user", "content": [{"type": "text", "text": "attachment://0a"}, picture]},
    ]
    said = {"role": "assistant", "content": "It is 7.", "source": "generate"}
    kept = sample(
        input=messages,
        messages=[*messages, said],
        output={"completion": "It is 7.", "choices": [{"message": said}]},
        attachments={"0a": "What is shown?"},
    )
    run = opened(write(tmp_path / "a.json", log(kept)))
    assert run.texts is not None
    (row,) = run.texts.collect().rows(named=True)
    assert (row["question"], row["response"]) == ("What is shown?", "It is 7.")
    assert [each["content"] for each in json.loads(row["prompt"])] == [
        "Be brief.",
        "An example?",
        "Yes.",
        "What is shown?",
    ]


@pytest.mark.parametrize(
    ("field", "value", "missing"),
    [
        ("id", None, True),
        ("id", {"a": 1}, True),
        ("id", 1.5, True),
        ("epoch", 0, True),
        ("epoch", "one", True),
        ("input", 7, False),
        ("input", [], False),
        ("target", {"a": 1}, False),
        ("choices", "ab", False),
        ("model_usage", 3, False),
    ],
)
def test_a_field_of_the_wrong_type_costs_no_other_sample(
    field: str, value: Any, missing: bool, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.json", log(sample(1), sample(2) | {field: value}, sample(3)))
    expected = rows(write(tmp_path / "b.json", log(sample(1), sample(3))))
    found = rows(path)
    assert {key: row for key, row in found.items() if key[0] != "2"} == expected
    assert (("2", "value", "match") in found) is not missing
    problems = opened(path).problems
    assert problems
    line = path.read_text().splitlines().index('      "id": 1,') + 1
    assert {problem.file for problem in problems} == {str(path)}
    assert all(problem.line is not None and problem.line > line for problem in problems)


@pytest.mark.parametrize("broken", ["scores", "score", "output", "messages", "metadata", "error"])
def test_anything_may_stand_anywhere(broken: str, tmp_path: Path) -> None:
    values = [7, "x", [1], {"a": [None]}, {"choice": 5}, {"choices": [3]}, {"metrics": "\ud800"}]
    samples = [sample(number) | {broken: value} for number, value in enumerate(values, start=1)]
    path = write(tmp_path / "a.json", log(*samples, sample(99)))
    assert rows(path)["99", "value", "match"]["score"] == 1.0


def test_samples_that_are_no_objects(tmp_path: Path) -> None:
    run = opened(write(tmp_path / "a.json", log(7, sample(2), None)))
    assert [row["item"] for row in run.scores.collect().rows(named=True)] == ["2"]
    assert [problem.message for problem in run.problems] == ["expected an object"] * 2


def test_a_bare_nan_in_one_sample_costs_no_other(tmp_path: Path) -> None:
    unscored = sample(1, scores={"match": {"value": float("nan")}})
    found = rows(write(tmp_path / "a.json", log(unscored, sample(2))))
    assert [row["score"] for row in found.values()] == [None, 1.0]


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    document = log(sample(1), sample(2))
    path = pack(tmp_path / "a.eval", document, **{"samples/9_epoch_1": '{"id": 9,'})
    run = opened(path)
    assert [row["item"] for row in run.scores.collect().rows(named=True)] == ["1", "2"]
    (problem,) = run.problems
    assert problem.file == f"{path}/samples/9_epoch_1.json"
    assert "not valid JSON" in problem.message


def test_a_member_must_hold_the_sample_it_is_named_after(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.eval", log(sample(2)), **{"samples/1_epoch_1": json.dumps(sample(2))})
    run = opened(path)
    assert [row["item"] for row in run.scores.collect().rows(named=True)] == ["2"]
    assert "another sample: '1'" in run.problems[0].message


def test_ids_with_slashes_and_words_that_look_like_epochs(tmp_path: Path) -> None:
    document = log(sample(1) | {"id": "a/b_epoch_7"}, sample(1) | {"id": "a/b_epoch_7", "epoch": 2})
    found = opened(pack(tmp_path / "a.eval", document)).scores.collect().rows(named=True)
    assert [(row["item"], row["repeat"]) for row in found] == [
        ("a/b_epoch_7", 0),
        ("a/b_epoch_7", 1),
    ]


def test_an_archive_without_any_header_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{")
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1)))
    with pytest.raises(UnreadableError, match="neither header"):
        opened(path)


def test_a_damaged_header_is_replaced_by_the_start(tmp_path: Path) -> None:
    document = log(sample(1))
    path = pack(tmp_path / "a.eval", document, **{"_journal/start": json.dumps(document)})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data[:40] if name == "header.json" else data)
    assert opened(path).info.model.name == "openai/some"


def test_a_log_without_samples_says_so(tmp_path: Path) -> None:
    document = log()
    del document["samples"]
    with pytest.raises(EmptyInputError):
        opened(write(tmp_path / "a.json", document))


def test_a_document_that_ends_early_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", log(sample(1), sample(2)))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(UnreadableError):
        opened(path)


def test_the_order_of_names_does_not_matter(tmp_path: Path) -> None:
    document = log(*(sample(number, note="x" * 3000) for number in range(1, 60)))
    turned = dict(reversed(document.items()))
    expected = rows(write(tmp_path / "a.json", document))
    assert rows(write(tmp_path / "b.json", turned)) == expected


@pytest.mark.parametrize(
    "document",
    [
        {"eval": "arc", "samples": []},
        {"eval": {"task": "arc"}},
        [log(sample(1))],
        {"samples": [{"id": 1, "text": "a"}]},
    ],
)
def test_other_documents_are_left_alone(document: Any, tmp_path: Path) -> None:
    logs = recognise(write(tmp_path / "a.json", document))
    assert "inspect" not in [each.adapter for each in logs]


def test_other_archives_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(log()))
        archive.writestr("readme.txt", "nothing to see")
    with pytest.raises((UnknownFormatError, EmptyInputError)):
        opened(path)
