"""Any cell that is written to a table is read back unchanged."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from forgetmap.records.folder import write_run
from forgetmap.records.tables import write_table
from forgetmap.sources.open import open_run
from run_folders import ENDINGS, Row, both_tables, run_of

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)

odd = st.sampled_from(["\r", "\n", '"', "nan", "NULL", "true", "\ufeff", " ", "\\", '"\n', "1.0"])

cells = st.fixed_dictionaries(
    {
        "score": st.none() | st.floats(0, 1),
        "answer": st.none() | texts | odd,
        "response": texts | odd,
        "seed": st.none() | st.integers(-(2**63), 2**63 - 1),
        "logprob_gold": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    }
)


@examples(15)
@given(st.dictionaries(texts | odd, cells, min_size=1, max_size=4))
def test_any_cell_survives(items: dict[str, Row]) -> None:
    rows = [{"task": "t", "item": item} | row for item, row in items.items()]
    with TemporaryDirectory() as name:
        folder = Path(name)
        first = write_run(run_of(rows), folder / "run")
        for ending in ENDINGS:
            table = write_table(run_of(rows), folder / f"table.{ending}")
            again = write_run(open_run(table), folder / ending)
            assert both_tables(again) == both_tables(first)
