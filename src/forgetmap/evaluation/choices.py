"""Choices of evaluation options; a module without imports, because every `--help` loads it."""

from typing import Literal

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
"""Number format of the weights."""
ProtocolName = Literal["same", "published"]
"""How models are prompted: all in the same way, or as in Harmon et al. (2026)."""
Stage = Literal["base", "tuned"]
"""Type of a model: only pretrained, or trained to follow instructions."""
Scoring = Literal["auto", "loglikelihood", "generate"]
"""How multiple-choice answers are scored."""
