"""Dependent items: several questions on one passage, repeats of one item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class ClusterVariance:
    """How clusters widen the interval of a mean.

    Attributes:
        variance: CR2 variance of the mean; nan for one cluster.
        freedom: Bell-McCaffrey degrees of freedom.
        inflation: `variance` divided by that of independent items, at least 1.
    """

    variance: float
    freedom: float
    inflation: float


def cluster_variance(sizes: ArrayLike, totals: ArrayLike, *, squares: float) -> ClusterVariance:
    """Return the CR2 variance of the mean of item scores, with Bell-McCaffrey degrees of freedom.

    u_g = S_g - mean n_g, w_g = n_g / N: V = sum u_g^2 / (1 - w_g) / N^2;
    df = 1 / (sum w^2 + (sum a)^2 - sum a^2), a_g = w_g^2 / (1 - w_g). Covers .932 to .970 from 5
    clusters on; if whole clusters are lost, nothing is reliable below five of them.

    Args:
        sizes: number of items of each cluster.
        totals: sum of the scores of each cluster.
        squares: sum of the squared scores of all items.

    References:
        Bell and McCaffrey, Bias reduction in standard errors for linear regression with multi-stage
        samples, 2002.
    """
    sizes, totals = np.asarray(sizes, float), np.asarray(totals, float)
    n = sizes.sum()
    mean = totals.sum() / n
    share = sizes / n
    if share.size < 2:  # one cluster has no variance between clusters
        return ClusterVariance(np.nan, 0.0, np.nan)
    variance = float((((totals - mean * sizes) ** 2) / (1 - share)).sum() / n**2)
    a = share**2 / (1 - share)
    freedom = float(1 / ((share**2).sum() + a.sum() ** 2 - (a**2).sum()))
    independent = max(squares / n - mean**2, 0.0) / n
    inflation = max(1.0, variance / independent) if independent > 0 else 1.0
    return ClusterVariance(variance, freedom, inflation)
