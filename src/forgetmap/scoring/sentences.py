"""Sentences of a text, in any language; lines end sentences too.

For taking a response apart into what it claims. How many sentences a reader would count, who reads
on at the end of a line, prose.py says.
"""

from __future__ import annotations

import re
from itertools import pairwise

_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Mr|Ms|Dr|St|vs|No))(?<!\b(?:Mrs|Jr.|i\.e|e\.g|etc))"
    "(?<![.!?])[.!?]++[\"')\\]*_]*+(?=[\\s\u3040-\u9fff])(?!\\s+[a-z])|[。।\u06d4؟]|\n+"
)


def sentences(text: str) -> list[str]:
    """In order, without blanks around them; abbreviations and decimals end none."""
    ends = [0, *(end.end() for end in _END.finditer(text)), len(text)]
    found = (text[start:end].strip() for start, end in pairwise(ends))
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]
