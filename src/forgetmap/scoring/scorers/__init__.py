"""Scorers by rule, one subject each; registry.py has their names."""
