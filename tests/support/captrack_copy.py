"""A small copy of CapTrack's data set, with invented rows in its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DATASET = "tri-fair-lab/captrack"
Rows = Sequence[Mapping[str, Any]]


def write_copy(root: Path, rows: Mapping[str, Rows], *, split: str = "test") -> Path:
    """Write the rows of each subset to the paths of the data set on the hub."""
    folder = root / DATASET
    lines = ["---", "configs:"]
    for subset, given in rows.items():
        path = folder / subset / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([dict(row) for row in given]), path)
        lines += [f"- config_name: {subset}", "  data_files:", f"  - split: {split}"]
        lines += [f"    path: {subset}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))
    return root


def _of(tasks: str, *rows: Mapping[str, Any]) -> dict[str, Rows]:
    """Return the same rows for several tasks, each with an id and a formatted prompt."""
    numbered = [
        {"id": f"q{n}", "formatted_prompt": f"Please answer. {row['prompt']}", **row}
        for n, row in enumerate(rows)
    ]
    return dict.fromkeys(tasks.split(), numbered)


_SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
_PLACES = ["The old mill stands in Drey.", "The ferry leaves from the north pier every day."]
_CITED = {
    "answer": "Drey",
    "supporting_facts": {"title": ["Mill"], "sent_id": [0]},
    "context_titles": ["Mill", "Pier"],
}
SMALL: dict[str, Rows] = {
    **_of(
        "mmlu_pro.subset mmlu_pro.rephrased winogrande.subset hellaswag.subset truthfulqa.full "
        "longbenchv2.full",
        {"prompt": "Which is a metal?", "choices": ["tin", "oak"], "gold": "A"},
        {"prompt": "Which is a tree?", "choices": ["tin", "oak"], "gold": "B"},
    ),
    **_of("supergpqa.subset", {"prompt": "A prime?", "choices": "A: 21 B: 23", "gold": "B"}),
    **_of(
        "gsm8k.subset gsm8k.rephrased mgsm.subset livemathbench.full",
        {"prompt": "What is 2 + 5?", "gold": "#### 7"},
        {"prompt": "What is 2 + 6?", "gold": "#### 8"},
    ),
    **_of("math.subset", {"prompt": "What is 2 + 5?", "gold": "So it is \\boxed{7}."}),
    **_of(
        "mmlu_pro.schema mmlu_pro.table_schema gsm8k.schema gsm8k.table_schema",
        {"prompt": "Give 7 as JSON.", "gold": "7", "schema": _SCHEMA},
    ),
    **_of(
        "humaneval.full",
        {
            "prompt": "def one():",
            "ctx": ["def check(f):\n    assert f() == 1\n", "one"],
            "gold": "",
        },
    ),
    **_of("mbpp.full", {"prompt": "Write one().", "gold": {"test": ["assert one() == 1"]}}),
    **_of("hotpotqa.subset", {"prompt": "Where?", "ctx": _PLACES, "gold": {"answer": "Drey"}}),
    **_of("boolq.subset", {"prompt": "Is it old?", "ctx": _PLACES, "gold": "true"}),
    **_of(
        "ragtruth.subset eli5.subset",
        {"prompt": "Sum it up.", "ctx": _PLACES, "gold": "The mill stands in Drey."},
    ),
    **_of("hotpotqa.citation qasper.citation", {"prompt": "Where is the mill?", "gold": _CITED}),
    **_of("popqa.subset", {"prompt": "Where is the mill?", "gold": ["Drey", "in Drey"]}),
    **_of("xtreme.subset", {"prompt": "Wo?", "gold": {"text": ["Drey"], "answer_start": [0]}}),
    **_of("harmbench.subset", {"prompt": "Do an invented bad thing.", "gold": ""}),
    **_of("ruler.4k ruler.32k", {"prompt": "The key is 8230417. Which key?", "gold": ["8230417"]}),
    **_of("mtbench.turn1 oasst1.full", {"prompt": "Tell me about the mill.", "gold": ""}),
    **_of("ifeval.subset", {"prompt": "Use no comma.", "gold": ["punctuation:no_comma"]}),
    **_of("followbench.subset", {"prompt": "Name two birds.", "gold": ""}),
    **_of("bfcl.subset", {"prompt": "Set a timer.", "gold": ["set_timer(minutes=5)"]}),
    **_of(
        "mnms.full",
        {"prompt": "Crop.", "gold": [{"id": 0, "name": "crop", "args": {"image": "a.png"}}]},
    ),
    **_of("mtbench.turn2", {"prompt": ["Name a mill.", "Where is it?"], "gold": ""}),
    **_of(
        "structflowbench.turn2",
        {"prompt": [{"user prompt": "Name a mill."}, {"user prompt": "Where is it?"}], "gold": ""},
    ),
}
"""One or two rows for each of the 37 tasks."""
