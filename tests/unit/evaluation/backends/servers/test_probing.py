"""Probing of servers, with real servers that lack capabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import ModelError, UsageError
from forgetmap.evaluation import ModelSource, find_model
from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.servers.backend import ServerBackend
from forgetmap.evaluation.backends.servers.connection import Traffic
from forgetmap.evaluation.backends.servers.replies import tokens_of_end
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.settings import Settings
from logprob_server import NAME, Dialect, serving
from small_suites import small_suite
from tiny_gguf import ascii_tokenizer, served_model

pytestmark = pytest.mark.needs_torch

QUICK = Traffic(pause=0.01)
SHORT = Settings(max_new_tokens=6)
LACKS = {
    "none": {},
    "silent": {"logprobs": "returns no log-probabilities", "echo": "returns no log-probabilities"},
    "shifted": {"echo": "shifted by one token"},
    "deaf": {"echo": "ignores echo"},
    "scaled": {"echo": "different log-probabilities"},
    "failing": {"echo": "status 500"},
    "seedless": {"seed": "different answers with the same seed"},
    "stubborn": {
        "seed": "identical answers with different seeds",
        "samples": "identical answers with different seeds",
    },
    "unseeded": {"seed": "does not support sampling with a seed"},
    "single": {"n": "returns 1 answer"},
    "uncounted": {"counts": "does not return token counts"},
    "miscounted": {"counts": "11 output tokens with a limit of 8"},
    "chatless": {"chat": "no chat template"},
    "wordless": {
        "completions": "404",
        "logprobs": "does not support completions",
        "echo": "does not",
    },
    "strict": {"whole": "does not accept top_k"},
    "fickle": {"greedy": "differently at temperature 0", "seed": "same seed"},
}


def dialect(fault: str = "none") -> Dialect:
    return Dialect(served_model(), fault, tokenizer=ascii_tokenizer())


def opened(address: str, traffic: Traffic = QUICK) -> ServerBackend:
    backend, _ = open_model(address, traffic=traffic)
    assert isinstance(backend, ServerBackend)
    return backend


def choices(n: int = 4) -> Suite:
    return Suite("choices", small_suite(n).tasks[:2])


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = fm.open_run(path).scores.collect().to_arrow().to_pylist()
    return sorted(found, key=lambda row: (row["task"], row["item"], row["scorer"]))


@pytest.mark.parametrize("fault", LACKS)
def test_what_a_server_lacks_is_found_out(fault: str) -> None:
    with serving(dialect(fault)) as address:
        backend = opened(address)
    found = backend._abilities
    assert set(found.faults) == set(LACKS[fault])
    for ability, said in LACKS[fault].items():
        assert said in found.faults[ability]
        assert backend.service.abilities[ability] is False


@pytest.mark.parametrize("fault", ["none", "words", "miscounted"])
def test_weights_through_a_server_are_those_of_the_model(fault: str, tmp_path: Path) -> None:
    """Also where tokens are not shown as text, or miscounted."""
    fm.evaluate(served_model(), choices(), tmp_path / "here", tokenizer=ascii_tokenizer())
    with serving(dialect(fault)) as address:
        fm.evaluate(address, choices(), tmp_path / "there")
    here, there = rows(tmp_path / "here"), rows(tmp_path / "there")
    assert [row["choice"] for row in here] == [row["choice"] for row in there]
    for name in ("logprob_answer", "logprob_gold"):
        assert [row[name] for row in there] == pytest.approx([row[name] for row in here], abs=1e-4)
    service = fm.open_run(tmp_path / "there").info.service
    assert service is not None
    asked = (3 if fault != "words" else 6) * len(there)
    assert service.requests == asked
    if fault != "miscounted":
        assert service.tokens_out == asked


@pytest.mark.parametrize("fault", ["silent", "shifted", "deaf", "scaled", "failing", "wordless"])
def test_weights_that_cannot_be_trusted_are_not_used(fault: str, tmp_path: Path) -> None:
    server = dialect(fault)
    with serving(server) as address:
        with pytest.raises(ModelError, match="--scoring generate") as raised:
            fm.evaluate(address, choices(), tmp_path / "run", traffic=QUICK)
        assert LACKS[fault]["echo"] in raised.value.message
        assert not (tmp_path / "run").exists()
        if fault != "wordless":
            settings = Settings(scoring="generate", max_new_tokens=4)
            fm.evaluate(address, choices(), tmp_path / "other", settings=settings, traffic=QUICK)
            assert len(rows(tmp_path / "other")) == 2 * 2 * 4


@pytest.mark.parametrize(
    ("fault", "settings", "said"),
    [
        ("uncounted", SHORT, "Token counts are not recorded"),
        ("fickle", SHORT, "Two runs of the same model may differ"),
        ("seedless", Settings(temperature=1.0, max_new_tokens=6), "cannot be reproduced"),
        ("strict", Settings(temperature=1.0, max_new_tokens=6), "may truncate or change"),
        ("seedless", SHORT, None),
        ("strict", SHORT, None),
        ("single", SHORT, None),
    ],
)
def test_a_run_notes_what_it_had_to_do_without(
    fault: str, settings: Settings, said: str | None, tmp_path: Path
) -> None:
    """And nothing that does not matter to it."""
    suite = Suite("text", small_suite(2).tasks[2:])
    with serving(dialect(fault)) as address:
        fm.evaluate(address, suite, tmp_path / "run", settings=settings, traffic=QUICK)
    service = fm.open_run(tmp_path / "run").info.service
    assert service is not None
    if said is None:
        assert service.notes == []
    else:
        assert any(said in note for note in service.notes)
    counted = {row["tokens_in"] is not None for row in rows(tmp_path / "run")}
    assert counted == {fault != "uncounted"}


def test_a_server_that_only_chats_is_asked_to_chat(tmp_path: Path) -> None:
    suite = Suite("text", small_suite(2).tasks[2:])
    with serving(dialect("wordless")) as address:
        with pytest.raises(ModelError, match="--chat"):
            fm.evaluate(address, suite, tmp_path / "plain", settings=SHORT)
        chat = Settings(chat=True, max_new_tokens=6)
        fm.evaluate(address, suite, tmp_path / "chat", settings=chat)
    assert len(rows(tmp_path / "chat")) == 2 * 2 * 2


def test_a_chat_needs_a_template(tmp_path: Path) -> None:
    with serving(dialect("chatless")) as address, pytest.raises(UsageError, match="chat template"):
        fm.evaluate(address, "basics", tmp_path / "run", settings=Settings(chat=True))


def test_a_sampled_answer_has_its_own_seed_and_whole_probabilities(tmp_path: Path) -> None:
    server = dialect()
    settings = Settings(temperature=1.0, repeats=3, max_new_tokens=6)
    suite = Suite("text", small_suite(2).tasks[2:3])
    with serving(server) as address:
        opened(address)
        tried = len(server.seen)
        for out in ("a", "b"):
            fm.evaluate(f"{address}#{NAME}", suite, tmp_path / out, settings=settings)
    asked = [each for each in server.seen[tried:] if each["max_tokens"] == 6]
    seeds = [each["seed"] for each in asked]
    assert len(seeds) == 2 * 6
    assert len(set(seeds)) == 6
    assert all(each["top_k"] == -1 and each["min_p"] == 0.0 for each in asked)
    texts = [fm.open_run(tmp_path / out).texts for out in "ab"]
    said = [sorted(each.collect()["response"].to_list()) for each in texts if each is not None]
    assert said[0] == said[1]


def test_a_server_that_always_says_the_same_is_not_sampled(tmp_path: Path) -> None:
    """Its repeats would all be one answer."""
    suite = Suite("text", small_suite(2).tasks[2:])
    with serving(dialect("stubborn")) as address:
        with pytest.raises(ModelError, match="use greedy decoding"):
            fm.evaluate(address, suite, tmp_path / "run", settings=Settings(temperature=1.0))
        fm.evaluate(address, suite, tmp_path / "run", settings=SHORT)


def test_a_server_that_takes_no_seeds_is_sent_none(tmp_path: Path) -> None:
    suite = Suite("text", small_suite(2).tasks[2:])
    settings = Settings(temperature=1.0, max_new_tokens=6)
    with serving(dialect("unseeded")) as address:
        fm.evaluate(address, suite, tmp_path / "run", settings=settings)
    assert {row["outcome"] for row in rows(tmp_path / "run")}.isdisjoint({"error"})


@pytest.mark.parametrize("wanted", [100, 10_000])
def test_answers_have_the_room_that_the_context_leaves(wanted: int, tmp_path: Path) -> None:
    """A server that refuses to write more than fits is asked for less."""
    item = Item("long", "Say " + "the cat sat on the mat " * 70, "cat")
    suite = Suite("long", (Task("long", "open", "text", lambda: (item,), scorers=("alias",)),))
    settings = Settings(max_new_tokens=wanted)
    fm.evaluate(
        served_model(), suite, tmp_path / "here", tokenizer=ascii_tokenizer(), settings=settings
    )
    with serving(dialect()) as address:
        fm.evaluate(address, suite, tmp_path / "there", settings=settings)
    here, there = (rows(tmp_path / name)[0] for name in ("here", "there"))
    assert here["tokens_in"] == there["tokens_in"] > 400
    assert here["tokens_in"] + here["tokens_out"] == 512
    assert 20 < there["tokens_out"] <= here["tokens_out"]
    said = [fm.open_run(tmp_path / name).texts for name in ("here", "there")]
    texts = [each.collect()["response"].to_list()[0] for each in said if each is not None]
    assert texts[0].startswith(texts[1])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://host:8000/v1#a/b", "http://host:8000/v1#a/b"),
        ("https://host/v1/", "https://host/v1"),
        ("http://host", "http://host/v1"),
        ("http://host/v1#base+adapter", "http://host/v1#base+adapter"),
    ],
)
def test_addresses_are_models(given: str, kept: str) -> None:
    source = find_model(given)
    assert source == ModelSource(kept, via="server")
    assert find_model(str(source)) == source


@pytest.mark.parametrize(
    "given",
    ["http://me:secret@host/v1#m", "http://host/v1?key=secret#m", "http://", "http://host:port/v1"],
)
def test_addresses_that_hold_secrets_or_lead_nowhere_are_refused(given: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_model(given)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("tokens", "end", "expected"),
    [
        (["Answer", ":", " A"], " A", 1),
        (["Answer", ":", " ", "A"], " A", 2),
        (["Answer", ": A"], " A", 0),
        (["Answ", "er: ", "cat"], " cat", 1),
        (["<s>", "x", "y"], "xy", 2),
        (["\u0120cat"], " cat", None),
        ([], " A", None),
    ],
)
def test_the_tokens_of_a_continuation(tokens: list[str], end: str, expected: int | None) -> None:
    assert tokens_of_end(tokens, end) == expected
