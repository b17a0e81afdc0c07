"""Advice from the closed forms, with its assumptions and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

from forgetmap.errors import FieldError, UsageError
from forgetmap.theory import formulas, mixtures


@dataclass(frozen=True)
class TrainingAdvice:
    """An answer with its assumptions.

    Attributes:
        question: the question.
        answer: the answer in a sentence.
        values: the numbers.
        assumes: the assumptions.
        not_for: when it does not apply.
        claims: ids of the verified claims behind it.
    """

    question: str
    answer: str
    values: dict[str, float | int | bool | None]
    assumes: tuple[str, ...]
    not_for: tuple[str, ...]
    claims: tuple[str, ...] = field(default=())


def batch_size(old_weight: float, chance: float = 0.01, replay: float = 0.0) -> TrainingAdvice:
    """Compute how large a batch must be to contain old behaviour.

    Args:
        old_weight: probability that one sample is old behaviour.
        chance: accepted probability of a batch without any.
        replay: fraction of the batch drawn from old data.
    """
    mixtures.check_share(old_weight, "old_weight")
    mixtures.check_share(chance, "chance")
    mixtures.check_part(replay, "replay")
    size = formulas.batch_for(chance, old_weight, replay)
    missed = float(formulas.starvation(old_weight, size, replay))
    return TrainingAdvice(
        "How many samples must a batch have so that it hardly ever lacks old behaviour?",
        f"{size:,} samples: a batch then contains no old behaviour with probability {missed:.2g}.",
        {"batch": size, "chance": missed, "without_replay": formulas.batch_for(chance, old_weight)},
        (
            "samples of a batch are independent",
            "the old behaviour has this probability in every step; it shrinks if it is forgotten",
        ),
        (
            "batches of several completions per prompt: count prompts, not completions",
            "stratified replay, where every batch contains old data by construction",
            "for faster recovery: replay reduces its spread, not its median (P5)",
        ),
        ("P3", "P4", "P5"),
    )


REPLAY_ASSUMES = (
    "training runs to its optimum; before that, more is left",
    "the replayed data are unbiased: a shifted buffer shifts the old behaviour as far (P1)",
)
REPLAY_NOT_FOR = (
    "reverse KL with importance weights: replay does not change its optimum (P2)",
    "networks that share parameters between prompts, where mass is not a free parameter",
)


def replay_fraction(keep: float, base: float | None = None) -> TrainingAdvice:
    """Compute how much old data supervised fine-tuning needs.

    Args:
        keep: old mass to keep; 0 needs no replay.
        base: probability of old behaviour in the replayed data, if they are sampled from the model
            before rather than pure old data.
    """
    mixtures.check_part(keep, "keep")
    pure = _old_in_replay(base)
    fraction = keep / pure
    possible = fraction < 1
    sentence = (
        f"Replay {fraction:.1%} of the training data."
        if possible
        else f"Not possible: the replayed data contain only {pure:.1%} old behaviour."
    )
    if not keep:
        sentence = "Replay nothing: new data alone drive the old mass to 0."
    return TrainingAdvice(
        "What fraction of training data must be old to keep this much old mass?",
        sentence,
        {"fraction": fraction if possible else None, "keeps": keep},
        REPLAY_ASSUMES,
        REPLAY_NOT_FOR,
        ("F1", "P1", "P2"),
    )


def replay_mass(fraction: float, base: float | None = None) -> TrainingAdvice:
    """Compute how much old mass a replayed fraction keeps.

    Args:
        fraction: replayed fraction of the training data; 0 means none.
        base: as for `replay_fraction`.
    """
    mixtures.check_part(fraction, "fraction")
    kept = float(formulas.replay_weight(fraction, _old_in_replay(base)))
    sentence = (
        f"{kept:.1%} of old mass is kept in the long run."
        if fraction
        else "None in the long run: new data alone drive the old mass to 0, however slowly."
    )
    return TrainingAdvice(
        "How much old mass does this fraction of old data keep?",
        sentence,
        {"fraction": fraction, "keeps": kept},
        REPLAY_ASSUMES,
        REPLAY_NOT_FOR,
        ("F1", "P1", "P2"),
    )


def _old_in_replay(base: float | None) -> float:
    if base is None:
        return 1.0
    mixtures.check_share(base, "base")
    return base


def kl_strength(
    start: float, floor: float, gap: float = 1.0, eta: float | None = None
) -> TrainingAdvice:
    """Compute how strong a KL penalty must be to keep a floor of old mass.

    Args:
        start: old mass of the model before.
        floor: old mass to keep.
        gap: mean reward of new minus that of old behaviour.
        eta: inverse temperature of an entropic utility (TTT-Discover); None for expected reward.
    """
    _check_floor(start, floor)
    _check_gap(gap)
    expected = formulas.temperature_for(start, gap, floor)
    values: dict[str, float | int | bool | None] = {"expected_reward": expected}
    sentence = f"Expected reward: a KL coefficient of at least {expected:.3g}."
    if not gap:
        sentence = "None is needed: the rewards of old and new are equal, so no mass moves."
    if eta is not None:
        mixtures.check_positive(eta, "eta")
        tilted = formulas.strength_for(start, math.exp(-eta * gap), floor)
        anyway = formulas.strength_for(start, 0.0, floor)
        values |= {"entropic": tilted, "entropic_any_reward": anyway}
        sentence += f" Entropic utility: at least {tilted:.3g}; {anyway:.3g} whatever the rewards."
    return TrainingAdvice(
        "How strong must the KL penalty to the model before be to keep this much old mass?",
        sentence,
        values,
        (
            "rewards and KL are summed over whole completions and on the same scale",
            "rewards are flat on old behaviour; a slope there moves it even without overlap (TT3)",
            "training runs to its optimum",
        ),
        (
            "KL estimates that are clipped, or averaged per token",
            "a reference model that is updated during training: each update uses the floor again",
        ),
        ("L3", "TT2", "TT3"),
    )


def oapl_refreshes(
    start: float, floor: float, gap: float, temperature: float = 1.0
) -> TrainingAdvice:
    """Compute how often the lagged policy of OAPL may be refreshed.

    Args:
        start: old mass of the model before.
        floor: old mass to keep.
        gap: mean reward of new minus that of old behaviour; at 0 refreshes cost nothing.
        temperature: both temperatures of OAPL, if equal.
    """
    _check_floor(start, floor)
    _check_gap(gap)
    mixtures.check_positive(temperature, "temperature")
    drop = gap / temperature
    count = formulas.oapl_refreshes(start, floor, drop) if drop else None
    left = float(formulas.oapl_weight(start, drop, count or 0))
    sentence = (
        f"Any number: the rewards of old and new are equal, so {left:.3g} of the old mass stays."
        if count is None
        else f"{count} refreshes; {left:.3g} of old mass is then left."
    )
    return TrainingAdvice(
        "How many refreshes of the lagged policy keep this much old mass?",
        sentence,
        {"refreshes": count, "left": left, "drop_in_log_odds": drop},
        (
            "both temperatures are equal and every round is solved to its optimum",
            "rewards are flat on each behaviour",
        ),
        (
            "unequal temperatures: a small second one removes lower rewards in one round (OA2)",
            "rounds of few gradient steps, which keep more old behaviour than this",
            "old behaviour that the lagged policy no longer writes: it does not come back (OA4)",
        ),
        ("OA1", "OA2", "OA4"),
    )


def sdft_anchor(shown: int, tried: int, keep: float, level: float = 0.95) -> TrainingAdvice:
    """Check whether the demonstration-conditioned teacher keeps enough old behaviour.

    Args:
        shown: number of completions of that teacher on old prompts with old behaviour.
        tried: number of sampled completions.
        keep: old mass to keep.
        level: level of the one-sided lower bound.
    """
    mixtures.check_share(keep, "keep")
    if not 0 <= shown <= tried or tried < 1:
        raise UsageError(
            f"{shown} of {tried} completions is not possible",
            hint="use counts with 0 <= shown <= tried.",
        )
    lower = _lower_limit(shown, tried, level)
    enough = lower >= keep
    verdict = "Enough" if enough else "Not shown to be enough"
    return TrainingAdvice(
        "Does the teacher that has seen the demonstrations keep the old behaviour?",
        f"{verdict}: at least {lower:.1%} (one-sided {level:.0%} bound), required {keep:.1%}.",
        {"observed": shown / tried, "lower_limit": lower, "enough": enough},
        (
            "the student ends where the demonstration-conditioned teacher is (SD1)",
            "the anchor is not 0; without one nothing pulls back (SD3)",
            "completions were sampled on old prompts, at temperature 1",
        ),
        (
            "a teacher mixed with demonstrations of new behaviour only, which forgets (SD4)",
            "few updates: the student is then still close to its start",
        ),
        ("SD1", "SD3", "SD4"),
    )


def _lower_limit(shown: int, tried: int, level: float) -> float:
    """Return Wilson's one-sided lower bound."""
    z = NormalDist().inv_cdf(level)
    share, spread = shown / tried, z * z / tried
    middle = share + spread / 2
    reach = z * math.sqrt(share * (1 - share) / tried + spread / (4 * tried))
    return max(0.0, (middle - reach) / (1 + spread))


def _check_floor(start: float, floor: float) -> None:
    mixtures.check_share(start, "start")
    mixtures.check_share(floor, "floor")
    if not floor < start:
        raise FieldError(
            f"a floor of {floor:g} is not below the start of {start:g}",
            field="floor",
            hint="use a floor below the start.",
        )


def _check_gap(gap: float) -> None:
    if not 0 <= gap < math.inf:
        raise FieldError(
            f"gap is {gap:g}, but must be at least 0 and finite",
            field="gap",
            hint="use the reward of new minus the reward of old; if it is negative, the old "
            "mass grows.",
        )
