"""Figures: one module each, all drawn from a payload with the conventions of look.py."""
