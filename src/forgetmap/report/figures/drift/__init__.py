"""Figures of how capabilities drifted."""
