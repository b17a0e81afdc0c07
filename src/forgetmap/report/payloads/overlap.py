"""Sentences on forgetting and divergence."""

from __future__ import annotations

from forgetmap.overlap import Fit

DIVERGENCES = {
    "kl": "KL(before||after), nats per completion",
    "kl_old": "KL(before||after) on old prompts, nats per completion",
    "kl_new": "KL(before||after) on new prompts, nats per completion",
    "reverse_kl": "KL(after||before), nats per completion",
    "reverse_kl_old": "KL(after||before) on old prompts, nats per completion",
    "reverse_kl_new": "KL(after||before) on new prompts, nats per completion",
}


def divergence_name(fit: Fit) -> str:
    """Return the name of a divergence without its unit."""
    return DIVERGENCES[fit.divergence].partition(",")[0]


def fit_sentence(fit: Fit, of: str = "of all items") -> str:
    """Return one sentence on how well a divergence predicts forgetting.

    Args:
        fit: one divergence as the predictor.
        of: items of which forgetting is a share.
    """
    better = fit.r_squared_left_out
    share = "" if better is None else f", R\u00b2 {better:.2f} compared with the mean of the others"
    return (
        f"{divergence_name(fit)} predicts the forgetting of {fit.n} models of {fit.methods} "
        f"methods with an error of {fit.error_left_out:.1%} {of}, each method left out of the "
        f"fit in turn{share}."
    )
