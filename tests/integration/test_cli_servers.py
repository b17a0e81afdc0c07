"""`forgetmap run` and `map` with models behind servers, and with addresses without a server."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import call, write
from forgetmap.errors import ForbiddenError, ForgetmapError, ModelError, NetworkError
from forgetmap.evaluation.backends.servers import backend as servers
from forgetmap.evaluation.backends.servers.connection import Traffic
from forgetmap.evaluation.settings import Settings
from llama_server import NAME, llama_server
from scripted_server import scripted_server, usual
from tiny_gguf import ascii_tokenizer, served_model, write_gguf
from tls_servers import write_certificate

KEY = "sk-0123456789-very-secret"
QUICK = Traffic(pause=0.01, attempts=3)
SHORT = Settings(max_new_tokens=4)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")) as address:
        yield address


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    rows = [
        {"question": f"Say {word}", "gold": word, "task": "words", "id": str(place)}
        for place, word in enumerate(("cat", "dog", "bird"))
    ]
    return write(tmp_path / "questions.jsonl", rows)


def responses(path: Path) -> list[Any]:
    texts = fm.open_run(path).texts
    assert texts is not None
    table = texts.collect().to_arrow().to_pylist()
    return [(row["item"], row["response"]) for row in sorted(table, key=lambda row: row["item"])]


@pytest.mark.parametrize("how", ["--no-chat", "--chat"])
def test_a_run_through_a_real_server(how: str, llama: str, questions: Path, tmp_path: Path) -> None:
    """Says what the model says here, in chats, too; tokens, retries and cost are shown and kept."""
    done = call(
        "run", f"{llama}#{NAME}", "--suite", questions, "--out", tmp_path / "there", how,
        "--max-new-tokens", "4", "--price-in", "2", "--price-out", "10", "--concurrency", "2",
    )  # fmt: skip
    assert done.code == 0, done.err
    settings = Settings(max_new_tokens=4, chat=how == "--chat")
    fm.evaluate(
        served_model(), questions, tmp_path / "here",
        tokenizer=ascii_tokenizer(), settings=settings,
    )  # fmt: skip
    assert responses(tmp_path / "there") == responses(tmp_path / "here")
    info = fm.open_run(tmp_path / "there").info
    assert info.service is not None
    assert info.model.name == f"{llama}#{NAME}"
    assert info.service.address == f"{llama}#{NAME}"
    assert (info.service.requests, info.service.retries) == (3, 0)
    scores = fm.open_run(tmp_path / "here").scores.collect().to_arrow().to_pylist()
    counted = {row["item"]: (row["tokens_in"], row["tokens_out"]) for row in scores}
    read, wrote = (sum(pair[place] for pair in counted.values()) for place in (0, 1))
    assert (info.service.tokens_in, info.service.tokens_out) == (read, wrote)
    assert info.service.cost == pytest.approx((2 * read + 10 * wrote) / 1e6)
    assert f"3 requests, {read:,} input tokens, {wrote:,} output tokens" in done.err
    again = call(
        "run", f"{llama}#{NAME}", "--suite", questions, "--out", tmp_path / "there", how,
        "--max-new-tokens", "4",
    )  # fmt: skip
    assert again.code == 0, again.err


def test_two_served_models_are_mapped(llama: str, questions: Path, tmp_path: Path) -> None:
    address = f"{llama}#{NAME}"
    given = ("--suite", questions, "--max-new-tokens", "4", "--out", tmp_path / "map")
    done = call("map", address, address, *given)
    assert done.code == 0, done.err
    assert sorted(path.name for path in (tmp_path / "map" / "runs").iterdir()) == [
        f"0-{NAME}",
        f"1-{NAME}",
    ]
    assert "3 requests" in done.err


def test_what_a_run_would_take(llama: str, questions: Path, tmp_path: Path) -> None:
    given = ("--suite", questions, "--out", tmp_path / "run", "--dry-run", "--max-new-tokens", 4)
    done = call("run", f"{llama}#{NAME}", *given, "--price-in", 2, "--price-out", 1000)
    assert done.code == 0, done.err
    assert "3 answers" in done.out
    found = re.search(
        r"([\d,]+) input tokens, at most 12 output tokens.*about ([\d.]+)\.$", done.out
    )
    assert found is not None
    assert float(found[2]) == pytest.approx((2 * int(found[1]) + 1000 * 12) / 1e6, abs=1e-4)
    assert not (tmp_path / "run").exists()


def test_multiple_choice_needs_a_server_that_weighs(llama: str, tmp_path: Path) -> None:
    rows = [
        {"question": "Which?", "gold": "cat", "options": ["cat", "dog"], "task": "t", "id": "1"}
    ]
    path = write(tmp_path / "choices.jsonl", rows)
    given = ("run", f"{llama}#{NAME}", "--suite", path, "--out", tmp_path / "run")
    done = call(*given)
    assert done.code == 2
    assert "--scoring generate" in done.err
    assert call(*given, "--scoring", "generate").code == 0


def test_a_key_opens_the_door_and_is_seen_nowhere(
    questions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    gguf = write_gguf(tmp_path / "tiny.gguf")
    with llama_server(gguf, key=KEY) as address:
        given = ("run", f"{address}#{NAME}", "--suite", questions, "--max-new-tokens", "4")
        for wrong in (None, "sk-another-wrong-key"):
            if wrong:
                monkeypatch.setenv("FORGETMAP_API_KEY", wrong)
            done = call(*given, "--out", tmp_path / "none")
            assert done.code == 2
            assert "FORGETMAP_API_KEY" in done.err
            assert "sk-another" not in done.err + done.out
        monkeypatch.setenv("FORGETMAP_API_KEY", KEY)
        done = call(*given, "--out", tmp_path / "run")
        assert done.code == 0, done.err
    assert KEY not in done.err + done.out + caplog.text
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_a_key_that_a_server_repeats_is_not_passed_on(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In answers, in errors of items, in errors that end a run, and in what cannot be read."""
    monkeypatch.setenv("FORGETMAP_API_KEY", KEY)

    def parrot(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        if "dog" in str(body.get("prompt", "")).rpartition("Say")[2]:
            return 400, {"error": {"message": f"no dogs for {headers['Authorization']}"}}
        if "bird" in str(body.get("prompt", "")).rpartition("Say")[2]:
            return 200, f"<html>{headers['Authorization']}</html>"
        status, said = usual(path, body, headers)
        return status, json.loads(json.dumps(said).replace(" yes", headers["Authorization"]))

    with scripted_server(parrot) as address:
        fm.evaluate(f"{address}#yes", questions, tmp_path / "run", settings=SHORT, traffic=QUICK)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    texts = fm.open_run(tmp_path / "run").texts
    assert texts is not None
    rows = texts.collect().to_arrow().to_pylist()
    assert [row["response"] for row in rows if row["item"] == "0"] == ["Bearer ***"]
    errors = [row for row in rows if row["error"]]
    assert {row["item"] for row in errors} == {"1", "2"}
    assert all("***" in row["error"] for row in errors)

    def forbids(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        return 401, {"error": f"{headers['Authorization']} is wrong"}

    with scripted_server(forbids) as address, pytest.raises(ForbiddenError) as raised:
        servers.connect_server(f"{address}#yes", QUICK)
    assert KEY not in str(raised.value)


def test_an_item_that_the_server_always_fails_on_is_an_error_of_its_own(
    questions: Path, tmp_path: Path
) -> None:
    def allergic(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        if "dog" in str(body.get("prompt", "")).rpartition("Say")[2]:
            return 500, {"error": "sneezes"}
        return usual(path, body, headers)

    with scripted_server(allergic) as address:
        fm.evaluate(f"{address}#yes", questions, tmp_path / "run", settings=SHORT, traffic=QUICK)
    run = fm.open_run(tmp_path / "run")
    outcomes = {row["item"]: row["outcome"] for row in run.scores.collect().to_arrow().to_pylist()}
    assert outcomes["1"] == "error"
    assert set(outcomes.values()) != {"error"}
    assert run.info.service is not None
    assert run.info.service.requests == 2 + 2 * QUICK.attempts


def closed_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}/v1#yes"


def test_no_server_at_all() -> None:
    with pytest.raises(NetworkError, match="cannot be reached") as raised:
        servers.connect_server(closed_port(), QUICK)
    assert "that the server is running" in raised.value.hint


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        ((200, "<html>Welcome</html>"), ModelError, "OpenAI-compatible"),
        ((200, {"hello": "world"}), ModelError, "OpenAI-compatible"),
        ((200, "[]"), ModelError, "OpenAI-compatible"),
        ((404, {"detail": "Not Found"}), ModelError, "check the address"),
        ((302, ""), NetworkError, "the address it redirects to"),
        ((403, {"error": "not you"}), ForbiddenError, "FORGETMAP_API_KEY"),
    ],
)
def test_a_server_of_another_kind(
    reply: tuple[int, Any], kind: type[ForgetmapError], said: str
) -> None:
    with scripted_server(lambda *_: reply) as address, pytest.raises(kind) as raised:
        servers.connect_server(f"{address}#yes", QUICK)
    assert said in raised.value.hint


def test_a_model_that_is_not_served() -> None:
    with scripted_server(usual) as address:
        for name in ("#no", ""):
            with pytest.raises(ModelError, match="also, yes") as raised:
                servers.connect_server(f"{address}{name}", QUICK)
            assert f"{address}#MODEL" in raised.value.hint


@pytest.mark.parametrize("status", [404, 500])
def test_a_server_that_cannot_list_its_models(status: int) -> None:
    def silent(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        return (status, "no") if path.endswith("/models") else usual(path, body, headers)

    with scripted_server(silent) as address:
        assert servers.connect_server(f"{address}#yes", QUICK).has_chat_template
        with pytest.raises(ModelError, match="status"):
            servers.connect_server(address, QUICK)


def test_a_server_that_does_neither() -> None:
    def lists(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        return usual(path, body, headers) if path.endswith("/models") else (400, {"error": "no"})

    with (
        scripted_server(lists) as address,
        pytest.raises(ModelError, match="supports neither completions nor chat"),
    ):
        servers.connect_server(f"{address}#yes", QUICK)


def test_a_certificate_that_nobody_vouches_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path / "own.pem")
    with scripted_server(usual, certificate) as address:
        with pytest.raises(NetworkError, match="certificate") as raised:
            servers.connect_server(f"{address}#yes", QUICK)
        assert "SSL_CERT_FILE" in raised.value.hint
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert servers.connect_server(f"{address}#yes", QUICK).has_chat_template


def test_a_server_can_be_asked_where_another_loop_runs(questions: Path, tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> Path:
        return fm.evaluate(f"{address}#yes", questions, tmp_path / "run", settings=SHORT)

    with scripted_server(usual) as address:
        assert len(responses(asyncio.run(cell()))) == 3


def test_a_run_that_is_stopped_goes_on(llama: str, questions: Path, tmp_path: Path) -> None:
    address = f"{llama}#{NAME}"

    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.evaluate(address, questions, tmp_path / "run", settings=SHORT, on_progress=stop)
    lines = (tmp_path / ".run.journal.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert json.loads(lines[1])["spent"][0] == 1
    fm.evaluate(address, questions, tmp_path / "run", settings=SHORT)
    assert len(responses(tmp_path / "run")) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--engine", "ray"], "--engine has no effect on a server"),
        (["--engine", "slurm"], "there is no engine"),
        (["--actors", "2"], "--engine ray"),
        (["--requests-per-minute", "0"], "out of range"),
        (["--timeout", "-1"], "out of range"),
        (["--price-in", "-1"], "out of range"),
    ],
)
def test_options_that_make_no_sense(
    given: list[str], said: str, questions: Path, tmp_path: Path
) -> None:
    out = ("--suite", questions, "--out", tmp_path / "run")
    done = call("run", "http://127.0.0.1:9/v1#m", *out, *given)
    assert done.code == 2
    assert said in done.err


def test_half_a_character_does_not_fail_a_run(questions: Path, tmp_path: Path) -> None:
    """In an answer, in a reason to end, and in an error; the run ends and can be read."""

    def script(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        if "Say dog" in str(body):
            return 400, {"error": {"message": "bad \ud83d"}}
        if "Say bird" in str(body):
            return 200, {"choices": [{"text": " bird \ud83d", "finish_reason": "\ud83d"}]}
        return usual(path, body, headers)

    with scripted_server(script) as address:
        given = ("--suite", questions, "--no-chat", "--out", tmp_path / "run")
        done = call("run", f"{address}#yes", *given)
    assert done.code == 0, done.err
    assert dict(responses(tmp_path / "run"))["2"] == " bird ?"
