"""Logs of EvalScope."""
