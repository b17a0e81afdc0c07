"""Replies of servers that unpack to an excessive size lead to a typed error of the request."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import write
from forgetmap import _http
from forgetmap.errors import ModelError
from forgetmap.evaluation.backends.servers.connection import Traffic
from forgetmap.evaluation.settings import Settings
from forgetmap.overlap.models.server import ServerModel
from forgetmap.scoring.llm_judge.judge import Patience, open_judge
from forgetmap.scoring.scorer import JudgeQuestion
from scripted_server import scripted_server, usual

MIB = 1 << 20
QUICK = Traffic(pause=0.01, attempts=3)


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _http.MAX_REPLY_BYTES >= 16 * MIB
    monkeypatch.setattr(_http, "MAX_REPLY_BYTES", MIB)


def long_reply(reply: dict[str, Any]) -> bytes:
    """A good reply, packed, with a very long field beside what is read."""
    return gzip.compress(json.dumps({**reply, "more": "a" * 2 * MIB}).encode(), 1)


def long_where(is_long: Callable[[str, str], bool]) -> Any:
    """A server that is itself, but says too much where this holds for path and request."""

    def script(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        status, reply = usual(path, body, headers)
        return status, long_reply(reply) if is_long(path, json.dumps(body)) else reply

    return script


def test_a_judge_that_says_too_much_has_not_replied() -> None:
    asks = [JudgeQuestion("You are a judge.", f"Is it {word}?") for word in ("cat", "dog", "cow")]
    with scripted_server(long_where(lambda _, body: "dog" in body)) as address:
        judge = open_judge(address, "m", patience=Patience(attempts=3, pause=0.01))
        replies = asyncio.run(judge.ask_all(asks))
    assert replies == [" yes", None, " yes"]
    assert (judge.tally.failed, judge.tally.retried) == (1, 0)
    assert judge.tally.last_failure == "the reply is larger than 1 MiB"


def test_an_item_whose_reply_is_too_much_is_missing_and_not_wrong(tmp_path: Path) -> None:
    rows = [
        {"question": f"Say {word}", "gold": "no", "task": "words", "id": word}
        for word in ("cat", "dog", "cow")
    ]
    questions = write(tmp_path / "questions.jsonl", rows)
    with scripted_server(long_where(lambda _, body: "dog" in body)) as address:
        fm.evaluate(
            f"{address}#yes", questions, tmp_path / "run",
            settings=Settings(max_new_tokens=4), traffic=QUICK,
        )  # fmt: skip
    run = fm.open_run(tmp_path / "run")
    scores = {row["item"]: row for row in run.scores.collect().to_arrow().to_pylist()}
    assert {item: row["score"] for item, row in scores.items()} == {
        "cat": 0.0,
        "dog": None,
        "cow": 0.0,
    }
    assert scores["dog"]["outcome"] == "error"
    assert run.texts is not None
    texts = {row["item"]: row for row in run.texts.collect().to_arrow().to_pylist()}
    assert "the reply is larger than 1 MiB" in texts["dog"]["error"]


def test_a_model_whose_server_says_too_much_cannot_be_measured() -> None:
    with (
        scripted_server(long_where(lambda path, _: path.endswith("/models"))) as address,
        pytest.raises(ModelError, match="the reply is larger than 1 MiB"),
    ):
        ServerModel(address)


def test_packed_replies_that_are_not_too_much_are_read() -> None:
    def script(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        assert headers["Accept-Encoding"] == "gzip"
        status, reply = usual(path, body, headers)
        return status, gzip.compress(json.dumps(reply).encode())

    with scripted_server(script) as address:
        judge = open_judge(address, "m")
        assert asyncio.run(judge.ask_all([JudgeQuestion("s", "u")])) == [" yes"]
        with ServerModel(f"{address}#yes") as model:
            assert model.name == f"{address}#yes"
