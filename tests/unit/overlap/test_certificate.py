from __future__ import annotations

import numpy as np
import pytest

from forgetmap.overlap import estimate_overlap
from forgetmap.overlap.certificate import certify, certify_prompts
from forgetmap.overlap.samples import CompletionSample, SampleTable, table_of_arrays
from forgetmap.report.terminal.overlap import tell_overlap
from forgetmap.stats import betting_upper_limit
from forgetmap.text import blocks_to_text


def table(ratios: list[list[float]], *, sides: int = 2) -> SampleTable:
    """Of each prompt the log-ratios of its completions, the same of either model's."""
    rows = np.repeat(np.arange(len(ratios)), [len(row) for row in ratios])
    ratio = np.concatenate(ratios)
    wrote = np.repeat([True, False][:sides], rows.size)
    before = np.full(wrote.size, -50.0)
    return table_of_arrays(np.tile(rows, sides), wrote, before, before - np.tile(ratio, sides))


def test_over_prompts_it_is_the_limit_of_their_means() -> None:
    ratios = [[0.2, -0.4], [0.0, 1.0], [3.0, 3.0], [0.1, 0.1], [0.0, 0.0], [-0.5, 0.5]]
    certificate = certify(table(ratios), (0.5, 0.9), 0.95, "prompts like these")
    means = [np.mean(np.abs(np.tanh(np.array(row) / 2))) for row in ratios]
    limit = float(betting_upper_limit(means))
    assert certificate.total_variation_limit == pytest.approx(limit)
    assert certificate.draws == 6
    assert certificate.kept["0.9"] == pytest.approx(0.9 - limit)
    assert certificate.kept["0.5"] is None
    assert limit > 0.5


def test_of_the_model_before_alone_it_counts_what_the_other_lacks() -> None:
    ratios = [[0.2, -0.4]] * 8
    certificate = certify(table(ratios, sides=1), (0.9,), 0.95, "prompts like these")
    mean = (1 - np.exp(-0.2)) / 2
    assert certificate.total_variation_limit == pytest.approx(
        float(betting_upper_limit([mean] * 8))
    )


def test_of_one_prompt_completions_are_the_draws() -> None:
    certificates = certify_prompts(table([[0.0] * 30, [0.0] * 4]), (0.9,), 0.9)
    assert [one.draws for one in certificates] == [30, 4]
    assert certificates[0].total_variation_limit == pytest.approx(
        float(betting_upper_limit([0.0] * 30, 0.1))
    )
    assert certificates[1].total_variation_limit > certificates[0].total_variation_limit


def test_unequal_numbers_of_completions_are_put_into_blocks() -> None:
    wrote = [True] * 6 + [False] * 3
    before = np.full(9, -9.0)
    after = before - np.array([2.0] * 3 + [0.0] * 3 + [1.0] * 3)
    certificate = certify_prompts(table_of_arrays(["p"] * 9, wrote, before, after), (0.9,), 0.95)[0]
    high, low = np.tanh(1.0), np.tanh(0.5)
    draws = [(high + low) / 2, (high / 2 + low) / 2, low / 2]
    assert certificate.draws == 3
    assert certificate.total_variation_limit == pytest.approx(float(betting_upper_limit(draws)))


def test_what_the_other_never_writes_leaves_nothing() -> None:
    ratios = [[np.inf] * 4] * 8
    assert certify(table(ratios, sides=1), (0.9,), 0.95, "prompts like these").kept == {"0.9": None}


def samples(change: float, tokens: int) -> list[CompletionSample]:
    after = [-1.0 + change] + [-1.0] * (tokens - 1)
    return [
        CompletionSample(f"p{number // 2}", side, number % 2, [-1.0] * tokens, after)
        for number in range(200)
        for side in ("before", "after")
    ]


def test_words_say_what_is_guaranteed_and_for_how_many_tokens() -> None:
    result = estimate_overlap(samples(0.1, 4), before="base", after="tuned")
    certificate = result.groups[0].certificate
    assert certificate is not None
    assert certificate.tokens == 4
    assert [length.certificate.tokens for length in result.lengths if length.certificate] == [1, 2]
    words = blocks_to_text(tell_overlap(result), 200)
    kept = "a behaviour that base shows with probability 0.5 keeps a probability of"
    assert f"Guaranteed for completions of up to 4 tokens: {kept}" in words


def test_words_say_that_there_is_no_guarantee() -> None:
    words = blocks_to_text(tell_overlap(estimate_overlap(samples(-8.0, 4))), 200)
    assert "No guarantee for completions of up to 4 tokens" in words
    assert "Guaranteed" not in words
