"""Two real tiny models: their samples, log-probabilities, and when comparing is refused."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers import models as tokenizer_models
from transformers import PreTrainedTokenizerFast

from enumerable_models import (
    CONTEXT,
    END,
    LONGEST,
    all_completions,
    enumerate_exactly,
    lettered_model,
    letters,
)
from forgetmap.errors import EmptyInputError, ModelError, OutputError, PairingError, UsageError
from forgetmap.evaluation import LoadedModel
from forgetmap.evaluation.run import Step
from forgetmap.overlap.measure import SamplingPlan, measure_overlap, sample_completions
from forgetmap.overlap.models.base import encode_alike
from forgetmap.overlap.models.local import LocalModel
from forgetmap.overlap.prompts import SamplingPrompt
from forgetmap.overlap.samples import read_samples

pytestmark = pytest.mark.needs_torch

PROMPTS = [SamplingPrompt(text, text) for text in ("a", "bc", "cab", "b", "ca", "abc")]
TEMPLATE = "{% for m in messages %}a{{ m['content'] }}c{% endfor %}"


@cache
def local(seed: int, step: float = 0.4, stamp: str = "") -> LocalModel:
    model = lettered_model(1) if seed == 1 else lettered_model(seed, near=1, step=step)
    return LocalModel(LoadedModel(f"model {seed}", model, letters()), stamp or str(seed))


def other_tokenizer(order: str, template: str | None = None) -> Any:
    vocabulary = {letter: place for place, letter in enumerate([*order, "</s>"])}
    raw = Tokenizer(tokenizer_models.BPE(vocab=vocabulary, merges=[]))
    found = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="</s>")
    found.chat_template = template
    return found


def with_tokenizer(tokenizer: Any) -> LocalModel:
    return LocalModel(LoadedModel("odd", lettered_model(1), tokenizer))


def test_tokens_are_weighed_as_enumerated() -> None:
    exact = enumerate_exactly(lettered_model(1), lettered_model(2, near=1, step=0.4), "ab")
    rows = [((0, 1), body) for body in all_completions()]
    for model, chances in ((local(1), exact.before), (local(2), exact.after)):
        found = [sum(each.logprobs) for each in model.weigh(rows)]
        assert np.exp(found) == pytest.approx(chances, rel=1e-4)


def test_completions_are_written_as_often_as_enumerated() -> None:
    exact = enumerate_exactly(lettered_model(1), lettered_model(2), "ab")
    count = 1500
    jobs = [((0, 1), seed) for seed in range(count)]
    found = Counter(each.tokens for _, each in local(1).sample(jobs, LONGEST, frozenset({END})))
    for body, chance in zip(all_completions(), exact.before, strict=True):
        error = np.sqrt(count * chance * (1 - chance)) + 0.5
        assert abs(found[body] - count * chance) < 4.5 * error


def test_a_completion_does_not_depend_on_its_neighbours() -> None:
    ends = frozenset({END})
    jobs = [((0, 1), 7), ((2,), 8), ((0, 0, 1), 9)]
    together = dict(local(1).sample(jobs, LONGEST, ends))
    for place, job in enumerate(jobs):
        assert dict(local(1).sample([job], LONGEST, ends))[0] == together[place]
    assert all(each.ended == (each.tokens[-1] == END) for each in together.values())


def test_measured_divergence_is_that_of_whole_distributions() -> None:
    result = measure_overlap(local(1), local(2), PROMPTS, SamplingPlan(samples=100, limit=LONGEST))
    exact = [
        enumerate_exactly(lettered_model(1), lettered_model(2, near=1, step=0.4), prompt.text)
        for prompt in sorted(PROMPTS, key=lambda each: each.id)
    ]
    assert result.kl_from == "whole distributions"
    for each, truth in zip(result.prompts, exact, strict=True):
        for name in ("overlap", "forward_kl", "reverse_kl"):
            found = getattr(each, name)
            reach = (found.high - found.low) / 2
            assert abs(found.value - getattr(truth, name)) < 2.5 * reach


def test_a_model_does_not_move_from_itself() -> None:
    same = LocalModel(LoadedModel("again", lettered_model(1), letters()))
    total = measure_overlap(local(1), same, PROMPTS, SamplingPlan(samples=4, limit=3)).groups[0]
    assert total.overlap.value == pytest.approx(1, abs=1e-6)
    assert total.forward_kl.value == pytest.approx(0, abs=1e-6)


def test_an_expert_gives_the_old_mass() -> None:
    plan = SamplingPlan(samples=40, limit=LONGEST)
    same = LocalModel(LoadedModel("again", lettered_model(1), letters()))
    masses = [
        measure_overlap(local(1), after, PROMPTS, plan, expert=local(2)).groups[0].old_mass
        for after in (same, local(2))
    ]
    assert (masses[0].low or 0) > 0.6
    assert (masses[1].high or 1) < 0.4


def test_an_expert_of_another_vocabulary_is_refused() -> None:
    odd = with_tokenizer(other_tokenizer("acb"))
    with pytest.raises(PairingError, match="vocabularies differ"):
        sample_completions(
            local(1), local(2), PROMPTS, SamplingPlan(samples=1, limit=3), expert=odd
        )


# ------------------------------------------------------------------------------------ the journal


def test_a_stopped_measurement_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = SamplingPlan(samples=6, limit=3)
    whole = sample_completions(local(1), local(2), PROMPTS, plan)
    steps: list[Step] = []

    def stop(step: Step) -> None:
        steps.append(step)
        if len(steps) == 20:
            raise KeyboardInterrupt

    file = tmp_path / "deep" / "samples.jsonl"
    with pytest.raises(KeyboardInterrupt):
        sample_completions(local(1), local(2), PROMPTS, plan, journal=file, on_progress=stop)
    with file.open("a") as cut:
        cut.write('{"prompt": "a", "si')
    left: list[Step] = []
    again = sample_completions(
        local(1), local(2), PROMPTS, plan, journal=file, on_progress=left.append
    )
    assert len(left) == len(whole) - 20
    assert left[-1].done == left[-1].total == len(whole)
    assert [tuple(each.tokens or ()) for each in again] == [each.tokens for each in whole]
    assert sorted(each.key for each in read_samples(file)) == sorted(each.key for each in whole)


def test_more_samples_are_added_to_those_there(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    few = sample_completions(
        local(1), local(2), PROMPTS, SamplingPlan(samples=2, limit=3), journal=file
    )
    steps: list[Step] = []
    more = sample_completions(
        local(1),
        local(2),
        PROMPTS,
        SamplingPlan(samples=3, limit=3),
        journal=file,
        on_progress=steps.append,
    )
    assert len(steps) == len(PROMPTS) * 2
    assert {each.key for each in few} < {each.key for each in more}


@pytest.mark.parametrize(
    "change",
    [SamplingPlan(samples=2, limit=4), SamplingPlan(samples=2, limit=3, seed=1)],
    ids=["limit", "seed"],
)
def test_a_journal_of_something_else_is_refused(tmp_path: Path, change: SamplingPlan) -> None:
    file = tmp_path / "samples.jsonl"
    sample_completions(local(1), local(2), PROMPTS, SamplingPlan(samples=2, limit=3), journal=file)
    with pytest.raises(OutputError, match="belongs to"):
        sample_completions(local(1), local(2), PROMPTS, change, journal=file)
    with pytest.raises(OutputError, match="belongs to"):
        sample_completions(
            local(1), local(2, stamp="trained on"), PROMPTS, SamplingPlan(2, 3), journal=file
        )


def test_another_seed_gives_other_completions() -> None:
    one, other = (
        [
            each.tokens
            for each in sample_completions(
                local(1), local(2), PROMPTS, SamplingPlan(8, 3, seed=seed)
            )
        ]
        for seed in (0, 1)
    )
    assert one != other


# ------------------------------------------------------------------------ what must not be compared


def test_other_vocabularies_are_refused() -> None:
    odd = with_tokenizer(other_tokenizer("acb"))
    with pytest.raises(PairingError, match="token 1 is 'b' and 'c'"):
        encode_alike(local(1), odd, PROMPTS, chat=False, limit=4)


def test_other_chat_templates_are_refused() -> None:
    ours = with_tokenizer(other_tokenizer("abc", TEMPLATE))
    theirs = with_tokenizer(other_tokenizer("abc", TEMPLATE.replace("}}c", "}}b")))
    with pytest.raises(PairingError, match="chat templates"):
        encode_alike(ours, theirs, PROMPTS, chat=True, limit=4)
    assert encode_alike(ours, ours, PROMPTS[:1], chat=True, limit=4) == [(0, 0, 2)]
    assert encode_alike(ours, theirs, PROMPTS[:1], chat=False, limit=4) == [(0,)]


def test_a_chat_without_template_is_refused() -> None:
    with pytest.raises(ModelError, match="no chat template"):
        encode_alike(local(1), local(2), PROMPTS, chat=True, limit=4)


def test_prompts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PairingError, match="exceeds the context length"):
        encode_alike(
            local(1), local(2), [SamplingPrompt("long", "a" * CONTEXT)], chat=False, limit=4
        )
    with pytest.raises(PairingError, match="'short' has 1 token; with 99 new tokens it exceeds"):
        encode_alike(local(1), local(2), [SamplingPrompt("short", "a")], chat=False, limit=99)
    with pytest.raises(EmptyInputError):
        encode_alike(local(1), local(2), [], chat=False, limit=4)


def test_logits_that_are_not_numbers_are_refused() -> None:
    broken = lettered_model(1)
    broken.lm_head.weight.data.fill_(float("nan"))
    model = LocalModel(LoadedModel("broken", broken, letters()))
    with pytest.raises(ModelError, match="not finite"):
        list(model.weigh([((0,), (1, END))]))


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(UsageError, match="0 samples"):
        SamplingPlan(samples=0)


def test_journal_lines_are_plain_json(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    sample_completions(
        local(1), local(2), PROMPTS[:1], SamplingPlan(samples=1, limit=3), journal=file
    )
    first, *lines = map(json.loads, file.read_text().splitlines())
    assert first.keys() == {"fingerprint", "checksum"}
    assert all(len(line["before"]) == len(line["after"]) == len(line["kl"]) for line in lines)
