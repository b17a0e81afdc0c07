"""Statistics on arrays and sums. Imports only numpy and errors; scipy inside functions.

`docs/statistics.md` explains each estimator and when it is misleading.

Cells of one group are n11, n10, n01, n00: right or wrong before, right or wrong after. k is the
number of options of an item; `inf` means open-ended. Every argument may be an array: then the
result is an array with one entry per data set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.stats.bounded_mean import betting_upper_limit
    from forgetmap.stats.chance_adjustment import Published, published
    from forgetmap.stats.clustered_contrasts import (
        Contrast,
        clustered_contrast,
        fixed_contrast,
        item_covariance,
    )
    from forgetmap.stats.clusters import ClusterVariance, cluster_variance
    from forgetmap.stats.graded import graded_interval
    from forgetmap.stats.intervals import (
        LEVEL,
        between_interval,
        normal_quantile,
        share_interval,
    )
    from forgetmap.stats.limits import (
        MIN_TASKS,
        DropBound,
        Integers,
        ItemSample,
        PairedAnswers,
        ScoreBound,
        drop_upper,
        flips_lower,
        flips_upper,
        plain_drop_lower,
        plain_drop_p,
        plain_drop_upper,
        plain_flips_lower,
        plain_flips_upper,
        repeat_scores,
        squared_change,
    )
    from forgetmap.stats.multiplicity import FDR, false_discovery, family_wise
    from forgetmap.stats.option_count import impossible_k
    from forgetmap.stats.pair_effects import PairEffect, pair_effect
    from forgetmap.stats.results import Interval, Reals
    from forgetmap.stats.sampling import (
        SampledShare,
        allocate,
        detectable_loss,
        drop_power,
        fair_cap,
        items_to_detect,
        sampled_share,
    )
    from forgetmap.stats.significance import balance_p, fisher_p, mcnemar_p
    from forgetmap.stats.simultaneous import (
        MIN_PAIRS,
        ClusterDesign,
        joint_quantile,
        mean_limits,
        rank_correlation,
        upper_limits,
    )
    from forgetmap.stats.studentised import (
        MeanLimits,
        TermGroup,
        cluster_terms,
        studentised_bootstrap,
    )
    from forgetmap.stats.verdicts import (
        LOSSES,
        OPEN,
        Bound,
        BoundName,
        Judged,
        LossLimits,
        TaskSplit,
        Verdict,
        confirmed_bound,
        decide,
        decide_together,
        detectable_drop,
        divide_error,
        items_to_decide,
        look_share,
        loss_p,
        measure_exchange,
        measure_limits,
        offered_bounds,
        reject_in_order,
        select_in_family,
        without_claim,
    )

__all__ = [
    "FDR",
    "LEVEL",
    "LOSSES",
    "MIN_PAIRS",
    "MIN_TASKS",
    "OPEN",
    "Bound",
    "BoundName",
    "ClusterDesign",
    "ClusterVariance",
    "Contrast",
    "DropBound",
    "Integers",
    "Interval",
    "ItemSample",
    "Judged",
    "LossLimits",
    "MeanLimits",
    "PairEffect",
    "PairedAnswers",
    "Published",
    "Reals",
    "SampledShare",
    "ScoreBound",
    "TaskSplit",
    "TermGroup",
    "Verdict",
    "allocate",
    "balance_p",
    "betting_upper_limit",
    "between_interval",
    "cluster_terms",
    "cluster_variance",
    "clustered_contrast",
    "confirmed_bound",
    "decide",
    "decide_together",
    "detectable_drop",
    "detectable_loss",
    "divide_error",
    "drop_power",
    "drop_upper",
    "fair_cap",
    "false_discovery",
    "family_wise",
    "fisher_p",
    "fixed_contrast",
    "flips_lower",
    "flips_upper",
    "graded_interval",
    "impossible_k",
    "item_covariance",
    "items_to_decide",
    "items_to_detect",
    "joint_quantile",
    "look_share",
    "loss_p",
    "mcnemar_p",
    "mean_limits",
    "measure_exchange",
    "measure_limits",
    "normal_quantile",
    "offered_bounds",
    "pair_effect",
    "plain_drop_lower",
    "plain_drop_p",
    "plain_drop_upper",
    "plain_flips_lower",
    "plain_flips_upper",
    "published",
    "rank_correlation",
    "reject_in_order",
    "repeat_scores",
    "sampled_share",
    "select_in_family",
    "share_interval",
    "squared_change",
    "studentised_bootstrap",
    "upper_limits",
    "without_claim",
]

__getattr__ = load_on_use(__name__, __file__)
