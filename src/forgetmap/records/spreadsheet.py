"""Texts that a spreadsheet would run as formulas: harmless in a CSV, the same when read back."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_RISKY = r"\A'*[=+\-@\t\r]"
_NUMBER = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
_QUOTED = re.compile(r"'+[=+\-@\t\r]")


def quote_formulas(table: pa.RecordBatch | pa.Table) -> list[pa.Array | pa.ChunkedArray]:
    """The columns with a quote before each text that begins like a formula; numbers stay."""
    return [_quoted(c) if pa.types.is_string(c.type) else c for c in table.columns]


def _quoted(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    risky = pc.match_substring_regex(column, _RISKY)
    number = pc.match_substring_regex(column, _NUMBER)
    quoted = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(pc.and_not(risky, number), quoted, column)


def unquote_formula(text: str) -> str:
    """A cell as it was before `quote_formulas`."""
    return text[1:] if _QUOTED.match(text) else text


def unquoted_sql(column: str) -> str:
    """The same for a column of the engine."""
    is_quoted = f"starts_with({column}, '''') AND regexp_matches({column}, '^''+[=+\\-@\\t\\r]')"
    return f"CASE WHEN {is_quoted} THEN substr({column}, 2) ELSE {column} END"
