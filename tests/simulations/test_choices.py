"""The best of many checkpoints, chosen and judged by the same items, seldom passes by luck."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.comparison import Claim, ItemAnswers, Label, VerdictSettings, kinds_of
from forgetmap.stats import decide

MANY, MARGIN = 20, 0.02
LABEL = Label("t")
KEPT = ("no_material_loss", "small_loss")


def pass_rates(items: int, noise: float, draws: int, *, net: bool) -> tuple[float, float]:
    """How often the best of 20 passes, judged as one of 20 and as if it were the only one.

    Every checkpoint lost just more than the margin, each its own items.
    """
    random = np.random.default_rng([items, int(1000 * noise), net])
    loss = 1.0001 * MARGIN
    passed = np.zeros(2)
    for _ in range(draws):
        lost, gained = (random.binomial(items, rate, MANY) for rate in (loss + noise, noise))
        best = int(np.argmin(lost - gained if net else lost))
        kinds = kinds_of([
            ItemAnswers(LABEL, name, (before, 1), (after, 1), count=float(count))
            for name, before, after, count in (
                ("lost", 1, 0, lost[best]), ("gained", 0, 1, gained[best]),
                ("kept", 1, 1, items - lost[best] - gained[best]),
            )
        ])  # fmt: skip
        for place, among in enumerate((MANY, 1)):
            limits = Claim(kinds, VerdictSettings(margin=MARGIN, chosen_among=among)).limits()
            assert limits is not None
            verdict = decide(limits, MARGIN)
            passed[place] += limits.drop_high < MARGIN if net else verdict in KEPT
    return tuple(passed / draws)


@pytest.mark.parametrize(("items", "noise", "net"), [
    (1000, 0.0, False), (4000, 0.0, False), (4000, 0.0, True), (4000, 0.05, True),
])  # fmt: skip
def test_the_best_of_twenty_is_not_passed_by_luck(items: int, noise: float, net: bool) -> None:
    chosen, alone = pass_rates(items, noise, 600, net=net)
    assert chosen <= 0.03
    assert alone > 0.2
