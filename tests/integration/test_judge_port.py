"""The client of judges against a real server with typical faults."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import pytest

from forgetmap.errors import (
    ForbiddenError,
    ForgetmapError,
    ModelError,
    NetworkError,
    OutputError,
    UsageError,
)
from forgetmap.scoring.llm_judge.judge import Judge, Patience, open_judge
from forgetmap.scoring.llm_judge.quality import following
from forgetmap.scoring.scorer import JudgeQuestion, ScorerInput
from judge_server import Answer, Asked, Script, best_reply, judge_server

KEY = "sk-0815-topsecret"
QUICK = Patience(attempts=4, seconds=5.0, pause=0.02)


def asks(number: int) -> list[JudgeQuestion]:
    return [JudgeQuestion("You are a judge.", f"Question {place}?") for place in range(number)]


def asked(judge_: Judge, number: int, repeat: int = 0) -> list[str | None]:
    return asyncio.run(judge_.ask_all(asks(number), repeat=repeat))


def echo(question: Asked) -> Answer:
    return Answer(f"reply to {question.user}")


def failing_first(failures: int, how: Answer) -> Script:
    """The first attempts of each question fail in this way."""
    return lambda question: how if question.time_of_this <= failures else echo(question)


def test_replies_come_in_order_whatever_the_delays() -> None:
    def script(question: Asked) -> Answer:
        return Answer(
            f"reply to {question.user}", delay=0.2 if "Question 0" in question.user else 0
        )

    with judge_server(script) as server:
        got = asked(open_judge(server.url, "m"), 30)
    assert got == [f"reply to Question {place}?" for place in range(30)]


def test_a_request_is_deterministic_and_complete() -> None:
    with judge_server(echo) as server:
        asked(open_judge(server.url, "some/model", seed=7, parameters={"max_tokens": 99}), 1)
        asked(open_judge(server.url, "m", parameters={"max_tokens": None, "seed": None}), 1)
    first, second = server.asked
    assert first.path == "/v1/chat/completions"
    assert first.body == {
        "model": "some/model",
        "messages": [
            {"role": "system", "content": "You are a judge."},
            {"role": "user", "content": "Question 0?"},
        ],
        "temperature": 0,
        "seed": 7,
        "max_tokens": 99,
    }
    assert second.body.keys() == {"model", "messages", "temperature"}


def test_another_server_under_the_same_name_is_asked_anew(tmp_path: Path) -> None:
    """Servers call whatever they serve by the name that they are told."""
    cache = tmp_path / "replies.sqlite"
    with (
        judge_server(lambda _: Answer("yes")) as one,
        judge_server(lambda _: Answer("no")) as other,
    ):
        for server, said in ((one, "yes"), (other, "no"), (one, "yes"), (other, "no")):
            assert asked(open_judge(server.url, "m", cache=cache), 2) == [said, said]
            spelled = server.url.replace("http://", "HTTP://") + "/chat/completions?key=secret"
            assert asked(open_judge(spelled, "m", cache=cache), 2) == [said, said]
    assert (len(one.asked), len(other.asked)) == (2, 2)
    assert b"secret" not in cache.read_bytes()


def test_no_more_at_once_than_allowed() -> None:
    with judge_server(lambda _: Answer("x", delay=0.05)) as server:
        asked(open_judge(server.url, "m", patience=Patience(at_once=3)), 12)
    assert server.most_at_once == 3


@pytest.mark.parametrize(
    "how",
    [
        Answer(status=429, raw="slow down"),
        Answer(status=500, raw="oops"),
        Answer(status=503, raw="<html><body>Bad gateway</body></html>"),
        Answer(drop=True),
        Answer(raw="<html>Welcome to nginx</html>"),
        Answer(raw='{"choices": []}'),
        Answer(raw='{"choices": [{"message": {"content": null}}]}'),
        Answer(raw="\x00\x01 garbage {"),
        Answer(raw='["a list"]'),
    ],
    ids=["429", "500", "503", "dropped", "html", "no choice", "no content", "garbage", "list"],
)
def test_bug_19_what_may_pass_is_really_asked_again(how: Answer) -> None:
    with judge_server(failing_first(2, how)) as server:
        port = open_judge(server.url, "m", patience=QUICK)
        assert asked(port, 1) == ["reply to Question 0?"]
    assert len(server.asked) == 3
    assert port.tally.retried == 2
    assert port.tally.failed == 0


def test_bug_19_a_time_out_is_asked_again() -> None:
    with judge_server(failing_first(1, Answer("late", delay=1.0))) as server:
        port = open_judge(server.url, "m", patience=Patience(attempts=9, seconds=0.5, pause=0.02))
        assert asked(port, 1) == ["reply to Question 0?"]
    assert port.tally.retried >= 1  # more on a busy machine


def test_the_server_says_how_long_to_wait() -> None:
    start = time.monotonic()
    in_two_seconds = formatdate(time.time() + 2, usegmt=True)
    for after in ("1", in_two_seconds):
        how = Answer(status=429, headers={"Retry-After": after})
        with judge_server(failing_first(1, how)) as server:
            assert asked(open_judge(server.url, "m", patience=QUICK), 1) == ["reply to Question 0?"]
        assert time.monotonic() - start >= 1


def test_a_time_to_wait_that_is_none_is_not_waited_for() -> None:
    for after in ("nan", "soon"):
        how = Answer(status=429, headers={"Retry-After": after})
        with judge_server(failing_first(1, how)) as server:
            assert asked(open_judge(server.url, "m", patience=QUICK), 1) == ["reply to Question 0?"]


def test_patience_ends_and_the_value_is_missing() -> None:
    """One question never gets a reply: it alone is None, and nothing is made up for it."""

    def script(question: Asked) -> Answer:
        return Answer(status=500) if "Question 2?" in question.user else echo(question)

    with judge_server(script) as server:
        port = open_judge(server.url, "m", patience=Patience(attempts=3, pause=0.02))
        got = asked(port, 5)
    assert got[2] is None
    assert [reply is None for reply in got] == [False, False, True, False, False]
    assert sum("Question 2?" in question.user for question in server.asked) == 3
    assert (port.tally.answered, port.tally.failed) == (4, 1)
    assert "500" in port.tally.last_failure


def test_waiting_has_a_budget() -> None:
    with judge_server(lambda _: Answer(status=429, headers={"Retry-After": "30"})) as server:
        start = time.monotonic()
        patience = Patience(attempts=9, waiting=10)
        assert asked(open_judge(server.url, "m", patience=patience), 1) == [None]
    assert time.monotonic() - start < 30
    assert len(server.asked) == 1


def test_a_refused_question_is_missing_and_not_asked_again() -> None:
    too_long = Answer(status=400, raw='{"error": {"message": "context length exceeded"}}')

    def script(question: Asked) -> Answer:
        return too_long if "Question 1?" in question.user else echo(question)

    with judge_server(script) as server:
        port = open_judge(server.url, "m")
        assert asked(port, 3) == ["reply to Question 0?", None, "reply to Question 2?"]
    assert len(server.asked) == 3
    assert "context length exceeded" in port.tally.last_failure


def test_a_row_of_failures_ends_the_whole() -> None:
    with judge_server(lambda _: Answer(status=500, raw="down")) as server:
        port = open_judge(server.url, "m", patience=Patience(attempts=1, in_a_row=5, at_once=1))
        with pytest.raises(NetworkError, match="5 requests in a row"):
            asked(port, 100)
    assert len(server.asked) == 5


def test_a_server_that_is_not_there_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(NetworkError, match="cannot be reached"):
            asked(open_judge(url, "m", patience=Patience(attempts=2, pause=0.02)), 3)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=401, raw='{"error": {"message": "wrong key"}}'), ForbiddenError),
        (Answer(status=403, raw="no"), ForbiddenError),
        (Answer(status=404, raw='{"error": {"message": "no model m"}}'), ModelError),
        (Answer(status=400, raw='{"error": {"code": "model_not_found"}}'), ModelError),
        (Answer(status=301, headers={"Location": "https://elsewhere/"}), NetworkError),
    ],
    ids=["401", "403", "404", "model", "moved"],
)
def test_what_cannot_pass_ends_the_whole_at_once(
    answer: Answer, error: type[ForgetmapError]
) -> None:
    with judge_server(lambda _: answer) as server, pytest.raises(error) as caught:
        asked(open_judge(server.url, "m", patience=Patience(at_once=1)), 10)
    assert len(server.asked) == 1
    assert caught.value.hint.endswith(".")


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "", "http://", "judge"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="address"):
        open_judge(url, "m")


def test_the_key_is_sent_and_found_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Servers echo the key; it stays out of errors, logs, replies and the cache all the same."""
    monkeypatch.setenv("FORGETMAP_JUDGE_KEY", KEY)
    caplog.set_level(logging.DEBUG)

    def chatty(question: Asked) -> Answer:
        if "Question 1?" in question.user:
            return Answer(status=401, raw=f'{{"error": "bad key: {KEY}"}}')
        return Answer(f"your key is {KEY}")

    cache = tmp_path / "replies.sqlite"
    with judge_server(chatty) as server:
        port = open_judge(server.url, "m", cache=cache)
        got = asked(port, 1)
        with pytest.raises(ForbiddenError) as caught:
            asked(port, 2)
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    seen = f"{got} {caught.value} {caught.value!r} {caplog.text} {port!r}"
    assert KEY not in seen
    assert KEY.encode() not in kept
    assert "***" in seen


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORGETMAP_JUDGE_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with judge_server(echo) as server:
        asked(open_judge(server.url, "m"), 1)
    assert "Authorization" not in server.asked[0].headers


def test_a_word_for_a_key_spoils_no_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_JUDGE_KEY", "e")
    with judge_server(echo) as server:
        assert asked(open_judge(server.url, "m"), 1) == ["reply to Question 0?"]
    assert server.asked[0].headers["Authorization"] == "Bearer e"


def test_a_broken_key_is_named_but_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f"{KEY}\nX-Evil: 1")
    with judge_server(echo) as server, pytest.raises(UsageError, match="MY_KEY") as caught:
        asked(open_judge(server.url, "m", key_variable="MY_KEY"), 1)
    assert KEY not in str(caught.value)
    with pytest.raises(UsageError, match="password") as refused:
        open_judge(f"https://user:{KEY}@host/v1", "m")
    assert KEY not in str(refused.value)


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "replies.sqlite"
    with judge_server(echo) as server:
        first = asked(open_judge(server.url, "m", cache=cache), 5)
        port = open_judge(server.url, "m", cache=cache)
        assert asked(port, 8)[:5] == first
        assert (port.tally.cached, port.tally.answered) == (5, 3)
        assert len(server.asked) == 8
        asked(open_judge(server.url, "other", cache=cache), 1)
        asked(open_judge(server.url, "m", cache=cache, seed=1), 1)
        asked(open_judge(server.url, "m", cache=cache, parameters={"top_p": 0.5}), 1)
        assert len(server.asked) == 11
    with sqlite3.connect(cache) as kept:
        raw = [row[0] for row in kept.execute("SELECT raw FROM replies")]
    kept.close()
    assert len(raw) == 11
    assert all('"model": "scripted"' in each for each in raw)


def test_the_same_question_in_one_round_is_asked_once() -> None:
    told: list[tuple[int, int]] = []
    with judge_server(echo) as server:
        port = open_judge(server.url, "m")
        got = asyncio.run(
            port.ask_all(asks(2) * 3, progress=lambda *progress: told.append(progress))
        )
    assert got == ["reply to Question 0?", "reply to Question 1?"] * 3
    assert len(server.asked) == 2
    assert told == [(0, 6), (3, 6), (6, 6)]


def test_repeats_differ_in_their_seed(tmp_path: Path) -> None:
    def script(question: Asked) -> Answer:
        return Answer(f"seed {question.body['seed']}")

    with judge_server(script) as server:
        port = open_judge(server.url, "m", seed=10, cache=tmp_path / "c")
        assert [asked(port, 1, repeat) for repeat in (0, 1, 2, 1)] == [
            ["seed 10"], ["seed 11"], ["seed 12"], ["seed 11"],
        ]  # fmt: skip
        assert len(server.asked) == 3


ASKER = """
import asyncio, sys
from pathlib import Path
from forgetmap.scoring.llm_judge.judge import Patience, open_judge
from forgetmap.scoring.scorer import JudgeQuestion
asks = [JudgeQuestion("You are a judge.", f"Question {n}?") for n in range(60)]
port = open_judge(sys.argv[1], "m", cache=Path(sys.argv[2]), patience=Patience(at_once=2))
asyncio.run(port.ask_all(asks))
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    cache = tmp_path / "replies.sqlite"

    def slow(question: Asked) -> Answer:
        return Answer(f"reply to {question.user}", delay=0.03)

    with judge_server(slow) as server:
        run = subprocess.Popen([sys.executable, "-c", ASKER, server.url, str(cache)])
        wait_until(lambda: len(server.asked) > 20)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        wait_until(lambda: server.asked[-1].time_of_this > 0)
        before = len(server.asked)
        port = open_judge(server.url, "m", cache=cache)
        got = asked(port, 60)
    assert got == [f"reply to Question {place}?" for place in range(60)]
    assert port.tally.cached >= before - 4
    assert len(server.asked) == before + 60 - port.tally.cached


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_cache_that_is_something_else(tmp_path: Path) -> None:
    cache = tmp_path / "notes.txt"
    cache.write_text("these are my notes, which are long enough to be no database" * 100)
    with judge_server(echo) as server, pytest.raises(OutputError, match=r"notes\.txt"):
        asked(open_judge(server.url, "m", cache=cache), 1)
    assert cache.read_text().startswith("these are my notes")


def test_bug_03_scorers_through_a_server_that_fails_now_and_then(tmp_path: Path) -> None:
    """What got a reply is scored, the rest is missing, and the next run asks for the rest alone."""
    samples = [
        ScorerInput(f"Tea number {place} is made from leaves.", question=("Write about tea.",))
        for place in range(12)
    ]
    broken = threading.Event()
    broken.set()

    def script(question: Asked) -> Answer:
        if broken.is_set() and re.search("number [369] is", question.user):
            return Answer(raw="<html>")
        return Answer(best_reply(question))

    with judge_server(script) as server:
        port = open_judge(
            server.url, "m", cache=tmp_path / "c", patience=Patience(attempts=2, pause=0.01)
        )
        scores = followed(port, samples)
        assert scores == [None if place in {3, 6, 9} else 1.0 for place in range(12)]
        broken.clear()
        before = len(server.asked)
        assert followed(port, samples) == [1.0] * 12
        assert len(server.asked) == before + 3


def followed(port: Judge, samples: list[ScorerInput]) -> list[float | None]:
    questions = [following.questions(sample) for sample in samples]
    replies = asyncio.run(port.ask_all([ask for each in questions for ask in each]))
    return [
        following.settle(sample, [reply])["following"].score
        for sample, reply in zip(samples, replies, strict=True)
    ]
