"""The chance adjustment of Harmon et al. (2026), reproduced exactly; never the headline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals


@dataclass(frozen=True, slots=True)
class Published:
    """Forgetting and backward transfer as published, with their ceilings."""

    forgetting: Reals
    backward_transfer: Reals
    forgetting_max: Reals
    backward_transfer_max: Reals


def published(
    acc_before: ArrayLike,
    acc_after: ArrayLike,
    forgetting: ArrayLike,
    transfer: ArrayLike,
    k: ArrayLike,
) -> Published:
    """Return F_true = max(F - C, 0) and BT_true = max(BT - C, 0) with C = (1-a)(1-b)/(k-1).

    Ceilings are (ka-1)/(k-1) and (kb-1)/(k-1), not below 0.

    It multiplies the two marginals as if luck before and after fell on unrelated items. That is not
    so: an unknown item is guessed both times. With nothing lost and half the items known it reports
    .062 at k = 2 and .047 at k = 4. Forgetting is on the visible scale and its ceiling on the
    knowledge scale: never divide them.

    References:
        Harmon et al., Mapping Post-Training Forgetting in Language Models at Scale, 2026.
    """
    a, b, f, t, k = (np.asarray(x, float) for x in (acc_before, acc_after, forgetting, transfer, k))
    with np.errstate(invalid="ignore", divide="ignore"):
        others = np.where(np.isinf(k), np.inf, k - 1)
        luck_before = (1 - a) / others
        luck_after = (1 - b) / others
        return Published(
            forgetting=np.maximum(f - luck_before * (1 - b), 0.0),
            backward_transfer=np.maximum(t - (1 - a) * luck_after, 0.0),
            forgetting_max=np.maximum(a - luck_before, 0.0),
            backward_transfer_max=np.maximum(b - luck_after, 0.0),
        )
