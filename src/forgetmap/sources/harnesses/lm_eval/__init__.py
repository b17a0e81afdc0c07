"""Logs of lm-evaluation-harness, from its first versions on."""
