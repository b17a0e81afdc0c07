"""Flipped items as columns."""

from __future__ import annotations

import page_reports as reports


def test_arrow_tables_with_texts_and_no_flips_make_a_report() -> None:
    rows = reports.rows_of(0)
    (items,) = reports.payload_of(rows, rows).items
    assert items.total == {"forgotten": 0, "gained": 0}
    assert items.columns["item"] == []
