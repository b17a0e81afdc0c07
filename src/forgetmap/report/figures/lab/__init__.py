"""Figures of ways to train: what each keeps, what it learns, what it costs."""
