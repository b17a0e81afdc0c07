"""Figures of comparisons: a pair, several models, or a chain."""
