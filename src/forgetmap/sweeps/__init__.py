"""Sweeps: many merges of two models, evaluated, and compared with both of their parents."""
