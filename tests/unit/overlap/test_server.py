from __future__ import annotations

import numpy as np
import pytest

from enumerable_models import END, enumerate_exactly, lettered_model, letters
from forgetmap.errors import ModelError, UsageError
from forgetmap.evaluation import LoadedModel
from forgetmap.evaluation.backends.servers.connection import is_address
from forgetmap.overlap.measure import SamplingPlan, measure_overlap
from forgetmap.overlap.models import server
from forgetmap.overlap.models.local import LocalModel
from forgetmap.overlap.models.server import ServerModel
from forgetmap.overlap.prompts import SamplingPrompt
from logprob_server import NAME, Dialect, serving

pytestmark = pytest.mark.needs_torch

PROMPTS = [SamplingPrompt(text, text) for text in ("a", "bc", "cab", "b", "ca")]


def after() -> object:
    return lettered_model(2, near=1, step=0.4)


def local(model: object) -> LocalModel:
    return LocalModel(LoadedModel("here", model, letters()))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FIRST_WAIT_S", 0.01)


def test_a_server_weighs_as_the_model_does_here() -> None:
    rows = [((0, 1), (2, 0, END)), ((1,), (0, 0, 0))]
    with serving(Dialect(lettered_model(1))) as address, ServerModel(address) as model:
        assert model.encode(["abc", "a"]) == [(0, 1, 2), (0,)]
        there = [each.logprobs for each in model.weigh(rows)]
    here = [each.logprobs for each in local(lettered_model(1)).weigh(rows)]
    for one, other in zip(there, here, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_two_servers_are_measured() -> None:
    with (
        serving(Dialect(lettered_model(1))) as one,
        serving(Dialect(after())) as other,
        ServerModel(one) as before,
        ServerModel(f"{other}#{NAME}") as later,
    ):
        result = measure_overlap(before, later, PROMPTS, SamplingPlan(samples=24, limit=3))
    truth = [enumerate_exactly(lettered_model(1), after(), each.text, 3) for each in PROMPTS]
    found = result.groups[0].overlap
    assert found.low is not None
    assert found.high is not None
    wide = (found.high - found.low) / 2
    assert abs((found.value or 0) - np.mean([each.overlap for each in truth])) < 2 * wide
    assert result.kl_from == "sampled ratios"


def test_a_server_and_a_model_here_are_measured() -> None:
    dialect = Dialect(after())
    with serving(dialect) as address, ServerModel(address) as there:
        result = measure_overlap(
            local(lettered_model(1)), there, PROMPTS[:2], SamplingPlan(samples=2, limit=3)
        )
    assert result.groups[0].samples_after == 4
    # The first ones only try the server.
    written = [each for each in dialect.seen if "temperature" in each][server.CHECKS :]
    assert {(each["temperature"], each["top_p"], each["top_k"]) for each in written} == {(1, 1, -1)}
    assert all(each["stop_token_ids"] == [END] for each in written)
    assert len({each["seed"] for each in written}) == len(written)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("silent", "returns no log-probabilities"),
        ("shifted", "shifted by one token"),
        ("scaled", "differ between prompt and completion"),
        ("deaf", "returns no log-probabilities"),
        ("words", "no token ids"),
        ("broken", "out of order"),
    ],
)
def test_servers_that_cannot_be_trusted_are_found_out(fault: str, says: str) -> None:
    with (
        serving(Dialect(lettered_model(1), fault)) as address,
        ServerModel(address) as model,
        pytest.raises(ModelError, match=says) as caught,
    ):
        model.encode(["ab"])
    assert caught.value.hint.endswith(".")


def test_a_server_that_samples_otherwise_than_it_says_is_noticed() -> None:
    sharp = lettered_model(2, scale=0.6)
    for fault, noticed in (("none", False), ("hot", True)):
        with serving(Dialect(sharp, fault)) as address, ServerModel(address) as there:
            result = measure_overlap(
                local(lettered_model(1)), there, PROMPTS, SamplingPlan(samples=40, limit=2)
            )
        assert ("out of balance" in {notice.kind for notice in result.notices}) == noticed


def test_a_busy_server_is_asked_again() -> None:
    with (
        serving(Dialect(lettered_model(1), busy=2)) as address,
        ServerModel(address) as model,
    ):
        assert model.encode(["ab"]) == [(0, 1)]


def test_addresses() -> None:
    assert is_address("https://host/v1#name")
    assert not is_address("models/base")
    with serving(Dialect(lettered_model(1))) as address:
        with pytest.raises(ModelError, match="no model other: tiny"):
            ServerModel(f"{address}#other")
        with ServerModel(address) as model, pytest.raises(UsageError, match="chat"):
            model.chat("hello")
    with pytest.raises(ModelError, match="unexpected reply"):
        ServerModel(address)
