"""Choices of `confirm`. Imports no computing library, because every `--help` imports it."""

from __future__ import annotations

from typing import Literal

ItemFormat = Literal["lm-eval", "inspect", "jsonl"]
"""Formats of the items: for `lm_eval --samples`, for `inspect eval --sample-id`, or plain."""
