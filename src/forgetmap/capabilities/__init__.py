"""Forgetting as drift of what a model can do, will do, and how it does it."""
