"""What the theory does not know; printed with every report that uses it."""

from __future__ import annotations

LIMITS = (
    (
        "Formulas are derived here from first principles. Of arXiv 2603.12163 only the abstract "
        "was known: where a result fits its wording that is said, and no theorem of it is quoted."
    ),
    (
        "That forward KL drives the old weight to 0 holds for an old component that is fixed or "
        "well separated; one that is trained and overlaps merges with the new one instead (F4)."
    ),
    (
        "That reverse KL converges is local: it can stay in a collapsed state for exponentially "
        "long (L1), and it needs the old mode in its target (L2). Exchanged labels look like a "
        "huge drift; drift is therefore measured after matching components to modes."
    ),
    (
        "One context, two Gaussian modes of one covariance, no prompts and no shared network. Most "
        "forgetting of real models is interference between prompts, which is not in here: use the "
        "estimators on real models, and take the dynamics as checks of mechanisms."
    ),
    (
        "Not examined: adaptive optimisers, more than two modes, trained covariances, targets that "
        "cannot be fitted (but for P2), factorisation into tokens."
    ),
)
