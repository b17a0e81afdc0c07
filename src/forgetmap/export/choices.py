"""Choices and defaults of export options.

Imports no computing library, because every `--help` imports it.
"""

from __future__ import annotations

from typing import Literal

RowFormat = Literal["chat", "prompt-completion"]
"""Formats of training examples, as TRL reads them."""
RerunHarness = Literal["lm-eval", "inspect", "lighteval", "forgetmap"]
"""Harnesses that evaluate items again."""
RerunKind = Literal["forgotten", "gained", "unpaired", "undecided"]
"""Items to evaluate again."""
PER_ITEM = 5
"""Number of training examples for each forgotten item."""
MIN_SIMILARITY = 0.1
"""Minimum similarity of a training example to a forgotten item; 1 means the same words."""
CARD_ROWS = 10
"""Number of groups in the table of a model card."""
