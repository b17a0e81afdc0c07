"""Choices and defaults of export options.

Imports no computing library, because every `--help` imports it.
"""

from __future__ import annotations

from typing import Literal

RowFormat = Literal["chat", "prompt-completion"]
"""Formats of training examples, as TRL reads them."""
PER_ITEM = 5
"""Number of training examples for each forgotten item."""
MIN_SIMILARITY = 0.1
"""Minimum similarity of a training example to a forgotten item; 1 means the same words."""
CARD_ROWS = 10
"""Number of groups in the table of a model card."""
