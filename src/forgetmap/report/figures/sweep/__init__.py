"""Figures of merges along the path from base to tuned."""
