"""Answers: what was said, what it counts as, and how it ended."""
