"""Adapter for the logs of EvalScope."""
