"""Figures: one module each, all drawn from a payload in one grammar (look)."""
