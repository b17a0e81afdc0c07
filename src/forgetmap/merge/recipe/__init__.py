"""Recipes: reading, validation, and the parameter values of each tensor."""
