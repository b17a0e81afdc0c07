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
    from forgetmap.stats.clusters import MIN_CLUSTERS, ClusterVariance, cluster_variance
    from forgetmap.stats.graded import graded_interval
    from forgetmap.stats.homogeneity import fisher_p, stuart_maxwell_p
    from forgetmap.stats.intervals import (
        LEVEL,
        agree_with_test,
        between_interval,
        combined_interval,
        mean_interval,
        normal_quantile,
        score_interval,
        weighted_interval,
    )
    from forgetmap.stats.luck import (
        LuckPart,
        guess_rate_latent,
        guess_rate_matched,
        luck_needed,
        luck_needed_by_test,
    )
    from forgetmap.stats.macro import TaskPart, clip_interval, join_in_quadrature, tasks_interval
    from forgetmap.stats.mean_scores import (
        ScoreSums,
        knowledge_scale,
        latent_sums,
        matched_sums,
        raw_sums,
        score_sums,
        upper_sums,
    )
    from forgetmap.stats.monitoring import (
        MonitorLook,
        look_alpha,
        loss_evidence,
        lower_loss_limit,
        monitor,
    )
    from forgetmap.stats.multiplicity import FDR, false_discovery, family_wise, selected_level
    from forgetmap.stats.option_count import impossible_k
    from forgetmap.stats.pair_effects import PairEffect, pair_effect
    from forgetmap.stats.power import (
        detectable,
        detectable_excess,
        items_for_no_loss,
        items_needed,
        items_needed_raw,
        items_to_decide,
        raw_detectable,
        repeated_items_for_no_loss,
        repeated_items_needed,
    )
    from forgetmap.stats.repeats import (
        AnswerCounts,
        NetPart,
        consensus,
        excess_before_scores,
        excess_scores,
        net_scores,
        permutation_moments,
        self_churn,
    )
    from forgetmap.stats.results import Interval, Reals
    from forgetmap.stats.sampling import (
        SampledShare,
        alarm_p,
        allocate,
        detectable_loss,
        fair_cap,
        items_to_detect,
        sampled_share,
        self_loss,
    )
    from forgetmap.stats.sequential import (
        LOSSES,
        Decision,
        Look,
        StoppingRule,
        decide,
        decision_probability,
        give_up,
        look_at,
        verdict_of_limits,
    )
    from forgetmap.stats.shrinkage import Shrinkage, score_variance, shrink
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
    from forgetmap.stats.tests import (
        at_least_p,
        balance_p,
        change_p,
        mcnemar_p,
        mixed_luck_p,
        score_p,
    )

__all__ = [
    "FDR",
    "LEVEL",
    "LOSSES",
    "MIN_CLUSTERS",
    "MIN_PAIRS",
    "AnswerCounts",
    "ClusterDesign",
    "ClusterVariance",
    "Contrast",
    "Decision",
    "Interval",
    "Look",
    "LuckPart",
    "MeanLimits",
    "MonitorLook",
    "NetPart",
    "PairEffect",
    "Published",
    "Reals",
    "SampledShare",
    "ScoreSums",
    "Shrinkage",
    "StoppingRule",
    "TaskPart",
    "TermGroup",
    "agree_with_test",
    "alarm_p",
    "allocate",
    "at_least_p",
    "balance_p",
    "betting_upper_limit",
    "between_interval",
    "change_p",
    "clip_interval",
    "cluster_terms",
    "cluster_variance",
    "clustered_contrast",
    "combined_interval",
    "consensus",
    "decide",
    "decision_probability",
    "detectable",
    "detectable_excess",
    "detectable_loss",
    "excess_before_scores",
    "excess_scores",
    "fair_cap",
    "false_discovery",
    "family_wise",
    "fisher_p",
    "fixed_contrast",
    "give_up",
    "graded_interval",
    "guess_rate_latent",
    "guess_rate_matched",
    "impossible_k",
    "item_covariance",
    "items_for_no_loss",
    "items_needed",
    "items_needed_raw",
    "items_to_decide",
    "items_to_detect",
    "join_in_quadrature",
    "joint_quantile",
    "knowledge_scale",
    "latent_sums",
    "look_alpha",
    "look_at",
    "loss_evidence",
    "lower_loss_limit",
    "luck_needed",
    "luck_needed_by_test",
    "matched_sums",
    "mcnemar_p",
    "mean_interval",
    "mean_limits",
    "mixed_luck_p",
    "monitor",
    "net_scores",
    "normal_quantile",
    "pair_effect",
    "permutation_moments",
    "published",
    "rank_correlation",
    "raw_detectable",
    "raw_sums",
    "repeated_items_for_no_loss",
    "repeated_items_needed",
    "sampled_share",
    "score_interval",
    "score_p",
    "score_sums",
    "score_variance",
    "selected_level",
    "self_churn",
    "self_loss",
    "shrink",
    "stuart_maxwell_p",
    "studentised_bootstrap",
    "tasks_interval",
    "upper_limits",
    "upper_sums",
    "verdict_of_limits",
    "weighted_interval",
]

__getattr__ = load_on_use(__name__, __file__)
