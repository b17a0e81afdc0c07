"""Why post-training forgets: a two-mode model, its claims, and estimators on log-probabilities.

Uses numpy and scipy only and knows nothing of the rest of the package but its errors.
"""
