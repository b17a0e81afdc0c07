"""Logs of lighteval."""
