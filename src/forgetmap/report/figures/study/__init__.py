"""Figures of a study: many pairs, with several models before."""
