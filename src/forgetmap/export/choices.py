"""Choices and defaults of export options.

Imports nothing that computes: the command line needs it for every `--help`.
"""

from __future__ import annotations

from typing import Literal

RowFormat = Literal["chat", "prompt-completion"]
"""How a training example is written, as TRL reads it."""
RerunHarness = Literal["lm-eval", "inspect", "lighteval", "forgetmap"]
"""Who is to ask items again."""
RerunKind = Literal["forgotten", "gained", "unpaired", "undecided"]
"""Which items are to be asked again."""
PER_ITEM = 5
"""Training examples for each forgotten item."""
MIN_SIMILARITY = 0.1
"""Of a training example to a forgotten item; 1 is the same words."""
CARD_ROWS = 10
"""Groups in the table of a model card."""
