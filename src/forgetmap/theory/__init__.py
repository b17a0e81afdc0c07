"""Why post-training forgets: a two-mode model, its claims, and estimators on log-probabilities.

Uses only numpy, scipy and the errors of the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.theory.advice import (
        TrainingAdvice,
        batch_size,
        kl_strength,
        oapl_refreshes,
        replay_fraction,
        replay_mass,
        sdft_anchor,
    )
    from forgetmap.theory.batches import BatchRun, ModeSpace, simulate_batches
    from forgetmap.theory.claims.registry import ClaimOutcome, find_claims
    from forgetmap.theory.condition_numbers import (
        METHODS_WITH_CONDITIONS,
        NUMBERS_OF_ALL,
        NUMBERS_OF_METHOD,
        ConditionMethod,
        ConditionNumbers,
    )
    from forgetmap.theory.conditions import (
        ConditionReport,
        MethodCondition,
        check_conditions,
        separation_of_overlap,
    )
    from forgetmap.theory.estimators import (
        RATIO_LIMIT,
        ROUNDING,
        bernoulli_kl,
        check_log_probs,
        effective_separation,
        effective_size_of_logs,
        kl_terms,
        log_ratio,
        misassignment_bound,
        misassignment_terms,
        old_mass,
        overlap_terms,
        retention_floor,
        token_kl,
        total_variation_terms,
    )
    from forgetmap.theory.methods import Setting
    from forgetmap.theory.phase import PHASE_PARAMETERS, PHASE_VALUES, Phase, phase_diagram
    from forgetmap.theory.simulation import Hyperparameters, TrainingRun, simulate, two_by_two
    from forgetmap.theory.verification import (
        LIMITS,
        OUTCOME_COLUMNS,
        is_verified,
        outcome_cells,
        outcomes_json,
        outcomes_markdown,
        verify_claims,
    )

__all__ = [
    "LIMITS",
    "METHODS_WITH_CONDITIONS",
    "NUMBERS_OF_ALL",
    "NUMBERS_OF_METHOD",
    "OUTCOME_COLUMNS",
    "PHASE_PARAMETERS",
    "PHASE_VALUES",
    "RATIO_LIMIT",
    "ROUNDING",
    "BatchRun",
    "ClaimOutcome",
    "ConditionMethod",
    "ConditionNumbers",
    "ConditionReport",
    "Hyperparameters",
    "MethodCondition",
    "ModeSpace",
    "Phase",
    "Setting",
    "TrainingAdvice",
    "TrainingRun",
    "batch_size",
    "bernoulli_kl",
    "check_conditions",
    "check_log_probs",
    "effective_separation",
    "effective_size_of_logs",
    "find_claims",
    "is_verified",
    "kl_strength",
    "kl_terms",
    "log_ratio",
    "misassignment_bound",
    "misassignment_terms",
    "oapl_refreshes",
    "old_mass",
    "outcome_cells",
    "outcomes_json",
    "outcomes_markdown",
    "overlap_terms",
    "phase_diagram",
    "replay_fraction",
    "replay_mass",
    "retention_floor",
    "sdft_anchor",
    "separation_of_overlap",
    "simulate",
    "simulate_batches",
    "token_kl",
    "total_variation_terms",
    "two_by_two",
    "verify_claims",
]

__getattr__ = load_on_use(__name__, __file__)
