"""Adapters for the logs of lm-evaluation-harness 0.3 and later."""
