"""A real server behind a proxy with every kind of fault, and a runner that is killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from enumerable_models import lettered_model
from fault_proxy import FAULTS, fault_proxy
from forgetmap.errors import NetworkError
from forgetmap.evaluation.backends.servers.connection import Traffic
from forgetmap.overlap.models.server import ServerModel
from forgetmap.scoring.llm_judge.judge import open_judge
from forgetmap.scoring.scorer import JudgeQuestion
from judge_server import Answer, judge_server
from killed_runner import SETTINGS, ask, run_and_kill, words_suite
from llama_server import NAME, llama_server
from logprob_server import Dialect, serving
from tiny_gguf import ascii_tokenizer, served_model, write_gguf

ITEMS = 60
QUICK = Traffic(pause=0.02, concurrency=8)
AGAIN = (0.0, 0.001, 0.01)
"""Seconds until a reply is sent a second time: with the first one, and during the next request."""


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")) as address:
        yield address


@pytest.fixture(scope="module")
def undisturbed(llama: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    ask(f"{llama}#{NAME}", ITEMS, out)
    return out


def records(path: Path) -> list[list[dict[str, Any]]]:
    run = fm.open_run(path)
    assert run.texts is not None
    return [
        sorted(
            table.collect().to_arrow().to_pylist(),
            key=lambda row: (row["task"], row["item"], row["repeat"], row.get("scorer")),
        )
        for table in (run.scores, run.texts)
    ]


def test_an_undisturbed_run_says_what_the_model_says_here(
    undisturbed: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    fm.evaluate(
        served_model(), words_suite(ITEMS), here, tokenizer=ascii_tokenizer(), settings=SETTINGS
    )
    assert records(here) == records(undisturbed)


@pytest.mark.parametrize("faults", [(each,) for each in FAULTS] + [FAULTS])
def test_faults_leave_no_trace_in_the_records(
    llama: str, undisturbed: Path, tmp_path: Path, faults: tuple[str, ...]
) -> None:
    with fault_proxy(llama, share=0.25, faults=faults, delay=0.002) as proxy:
        fm.evaluate(
            f"{proxy.url}#{NAME}", words_suite(ITEMS), tmp_path / "run",
            settings=SETTINGS, traffic=QUICK, salt="",
        )  # fmt: skip
    assert all(proxy.did[fault] for fault in faults)
    assert records(tmp_path / "run") == records(undisturbed)
    service = fm.open_run(tmp_path / "run").info.service
    assert service is not None
    assert service.requests is not None
    if faults == ("delay",):
        assert service.retries == 0
    else:
        assert service.retries
        assert service.requests == ITEMS + service.retries
    assert proxy.most_at_once <= QUICK.concurrency


@pytest.mark.parametrize("again", AGAIN)
def test_a_second_reply_is_no_answer_to_another_item(
    llama: str, undisturbed: Path, tmp_path: Path, again: float
) -> None:
    with fault_proxy(llama, share=1.0, faults=("twice",), delay=0.0, again=again) as proxy:
        fm.evaluate(
            f"{proxy.url}#{NAME}", words_suite(ITEMS), tmp_path / "run",
            settings=SETTINGS, traffic=QUICK, salt="",
        )  # fmt: skip
    assert records(tmp_path / "run") == records(undisturbed)
    service = fm.open_run(tmp_path / "run").info.service
    assert service is not None
    assert (service.requests, service.retries) == (ITEMS, 0)


@pytest.mark.parametrize("again", AGAIN)
def test_a_second_reply_of_a_judge_is_no_answer_to_another_question(again: float) -> None:
    questions = [JudgeQuestion("You are a judge.", f"Question {place}?") for place in range(ITEMS)]
    with (
        judge_server(lambda asked: Answer(f"reply to {asked.user}")) as judge,
        fault_proxy(judge.url, share=1.0, faults=("twice",), delay=0.0, again=again) as proxy,
    ):
        replies = asyncio.run(open_judge(proxy.url, "m").ask_all(questions))
    assert replies == [f"reply to {question.user}" for question in questions]
    assert len(judge.asked) == ITEMS


@pytest.mark.parametrize("again", AGAIN)
def test_a_second_reply_is_no_measurement_of_another_text(again: float) -> None:
    texts = ["".join(letters) for letters in itertools.product("abc", repeat=4)][:ITEMS]
    with (
        serving(Dialect(lettered_model(1))) as server,
        fault_proxy(server, share=1.0, faults=("twice",), delay=0.0, again=again) as proxy,
        ServerModel(proxy.url) as model,
    ):
        found = model.encode(texts)
    assert found == [tuple("abc".index(letter) for letter in text) for text in texts]


def test_replies_that_take_too_long_are_asked_for_again(
    llama: str, undisturbed: Path, tmp_path: Path
) -> None:
    short = Traffic(pause=0.02, concurrency=8, seconds=2.0)
    with fault_proxy(llama, share=0.1, faults=("delay",), delay=0.2) as proxy:
        fm.evaluate(
            f"{proxy.url}#{NAME}", words_suite(ITEMS), tmp_path / "run",
            settings=SETTINGS, traffic=short, salt="",
        )  # fmt: skip
    assert proxy.did["delay"]
    assert records(tmp_path / "run") == records(undisturbed)
    service = fm.open_run(tmp_path / "run").info.service
    assert service is not None
    assert service.retries


def test_a_runner_that_is_killed_loses_and_doubles_nothing(
    llama: str, undisturbed: Path, tmp_path: Path
) -> None:
    with fault_proxy(llama, share=0.2, delay=0.05) as proxy:
        kept = run_and_kill(f"{proxy.url}#{NAME}", ITEMS, tmp_path / "run", kills=4, seed=1)
    assert any(0 < count < ITEMS for count in kept)
    assert kept == sorted(kept)
    assert records(tmp_path / "run") == records(undisturbed)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_server_that_goes_away_loses_nothing(
    llama: str, undisturbed: Path, tmp_path: Path
) -> None:
    """What was answered is in the journal and not asked again."""
    impatient = Traffic(pause=0.01, attempts=3, concurrency=2)
    seen: list[int] = []
    with fault_proxy(llama, share=0.0, delay=0.002) as proxy:
        address = f"{proxy.url}#{NAME}"

        def leave(step: Any) -> None:
            seen.append(step.done)
            if step.done == 20:
                proxy.gone.set()

        with pytest.raises(NetworkError, match="run the same command again"):
            fm.evaluate(
                address, words_suite(ITEMS), tmp_path / "run", settings=SETTINGS,
                traffic=impatient, salt="", on_progress=leave,
            )  # fmt: skip
        kept = (tmp_path / ".run.journal.jsonl").read_text().splitlines()
        assert len(kept) == 1 + len(seen) < 1 + ITEMS
        proxy.gone.clear()
        asked = sum(proxy.did.values())
        fm.evaluate(
            address, words_suite(ITEMS), tmp_path / "run", settings=SETTINGS, traffic=QUICK, salt=""
        )
        tried = 20
        assert sum(proxy.did.values()) - asked <= ITEMS - len(seen) + tried
    assert records(tmp_path / "run") == records(undisturbed)
    service = fm.open_run(tmp_path / "run").info.service
    assert service is not None
    assert service.requests == ITEMS


def test_a_server_that_refuses_everything_ends_the_run_without_recording_errors(
    llama: str, tmp_path: Path
) -> None:
    with fault_proxy(llama, share=0.0, delay=0.0) as proxy:

        def turn(step: Any) -> None:
            if step.done == 10:
                proxy.refuses.set()

        with pytest.raises(NetworkError, match="20 requests in a row failed"):
            fm.evaluate(
                f"{proxy.url}#{NAME}", words_suite(ITEMS), tmp_path / "run", settings=SETTINGS,
                traffic=QUICK, on_progress=turn,
            )  # fmt: skip
    lines = (tmp_path / ".run.journal.jsonl").read_text().splitlines()[1:]
    assert {json.loads(line)["outcome"] for line in lines}.isdisjoint({"error"})


def test_a_request_that_is_refused_is_an_error_of_its_item(llama: str, tmp_path: Path) -> None:
    """A prompt that is longer than the server's context."""
    from forgetmap.evaluation.items import Item, Suite, Task

    items = (Item("long", "Say " + "cat " * 2000, "cat"), Item("short", "Say cat", "cat"))
    suite = Suite("two", (Task("two", "open", "text", lambda: items),))
    fm.evaluate(f"{llama}#{NAME}", suite, tmp_path / "run", settings=SETTINGS)
    outcomes = {row["item"]: (row["outcome"], row["score"]) for row in records(tmp_path / "run")[0]}
    assert outcomes["long"] == ("error", None)
    assert outcomes["short"][0] != "error"


def test_a_server_that_asks_to_wait_is_waited_for(llama: str, tmp_path: Path) -> None:
    """All requests wait, and waiting costs no attempts."""
    patient = Traffic(pause=0.01, attempts=1, concurrency=4)
    with fault_proxy(llama, share=0.3, faults=("429",), delay=0.002, wait="0.3") as proxy:
        fm.evaluate(
            f"{proxy.url}#{NAME}", words_suite(20), tmp_path / "run", settings=SETTINGS,
            traffic=patient,
        )  # fmt: skip
    assert proxy.did["429"] > 1
    for limited in proxy.limited:
        # Only what each of the others had under way, or began before it was told. On a busy machine
        # that arrives late, so requests are counted rather than timed.
        others = [moment for moment in proxy.times if limited < moment < limited + 0.25]
        assert len(others) <= 2 * (patient.concurrency - 1)


def test_no_more_requests_a_minute_than_allowed(llama: str, tmp_path: Path) -> None:
    with fault_proxy(llama, share=0.0, delay=0.0) as proxy:
        started = time.monotonic()
        fm.evaluate(
            f"{proxy.url}#{NAME}", words_suite(20), tmp_path / "run", settings=SETTINGS,
            traffic=Traffic(requests_per_minute=1200),
        )  # fmt: skip
        passed = time.monotonic() - started
    assert passed >= (len(proxy.times) - 1) * 0.05
    # Requests may be held up on their way and arrive together, but none is there before its turn.
    for place, moment in enumerate(sorted(proxy.times)):
        assert moment - started >= (place - 1) * 0.05
