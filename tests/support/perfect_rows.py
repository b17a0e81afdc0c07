"""One row per task of CapTrack with a perfect response, and writers for all its formats."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]


def choice(prompt: str, options: list[str], gold: str, output: str) -> Row:
    return {"prompt": prompt, "choices": options, "gold": gold, "outputs": output}


def by_schema(prompt: str, schema: Mapping[str, Any], gold: str, output: str) -> Row:
    return {"prompt": prompt, "schema": dict(schema), "gold": gold, "outputs": output}


def cited(output: str) -> Row:
    gold = {
        "answer": "the Weser",
        "supporting_facts": {"title": ["Bremen"], "sent_id": [2]},
        "context_titles": ["Bremen", "Ulm"],
    }
    return {"prompt": "On which river does Bremen lie?", "gold": gold, "outputs": output}


METALS = choice("Which of them is liquid at 20 degrees?", ["zinc", "mercury", "lead"], "B", "B")
EGGS = {
    "prompt": "A hen lays 5 eggs a week. How many in 6 weeks?",
    "gold": "5 eggs a week for 6 weeks are 5 * 6 = 30. #### 30",
    "outputs": "Step 1: 5 * 6 = 30.\nAnswer: 30",
}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "unit": {"type": "string"}},
    "required": ["answer"],
}
TABLE = {
    "type": "object",
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    },
    "required": ["columns", "rows"],
}
FILLED = '{"columns": ["answer"], "rows": [["30"]]}'
CONTEXT = ["The river Weser flows through Bremen and ends in the North Sea near Bremerhaven."]
PRAISE = "Bread is baked from flour, water and salt. It keeps for a few days."
NEEDLE = {"prompt": "The key is 8230417. Which is the key?", "gold": ["8230417"]}

ROWS: dict[str, Row] = {
    "mmlu_pro.subset": METALS,
    "mmlu_pro.rephrased": {**METALS, "prompt": "At room temperature one of them is liquid: which?"},
    "mmlu_pro.schema": by_schema("Name it as JSON.", SCHEMA, "mercury", '{"answer": "mercury"}'),
    "mmlu_pro.table_schema": by_schema("As a table.", TABLE, "30", FILLED),
    "gsm8k.subset": EGGS,
    "gsm8k.rephrased": {**EGGS, "prompt": "Five eggs every week, for six weeks: how many?"},
    "gsm8k.schema": by_schema("Give it as JSON.", SCHEMA, "30", '{"answer": "30"}'),
    "gsm8k.table_schema": by_schema("Give it as a table.", TABLE, "30", FILLED),
    "mgsm.subset": {
        "prompt": "Eine Henne legt 5 Eier in der Woche. Wie viele in 6 Wochen?",
        "gold": 30,
        "outputs": "5 * 6 = 30\nAnswer: 30",
    },
    "humaneval.full": {
        "prompt": "def double(x):\n    'Twice x.'\n",
        "ctx": ["def check(f):\n    assert f(4) == 8\n", "double"],
        "gold": "",
        "outputs": "```python\ndef double(x):\n    return 2 * x\n```",
    },
    "mbpp.full": {
        "prompt": "Write a function half(x).",
        "ctx": None,
        "gold": {"test": ["assert half(8) == 4"], "entry_point": None},
        "outputs": "```python\ndef half(x):\n    return x / 2\n```",
    },
    "math.subset": {
        "prompt": "What is 3/4 of 8?",
        "gold": "Three quarters of 8 are $\\boxed{6}$.",
        "outputs": "Step 1: 8 / 4 = 2, so a quarter is 2.\nStep 2: 3 * 2 = 6.\nAnswer: 6",
    },
    "supergpqa.subset": {
        "prompt": "Which of them is a prime?",
        "choices": "A: 21 B: 23 C: 25",
        "gold": "B",
        "outputs": "Step 1: 21 is 3 times 7, so A is out.\nStep 2: 25 is 5 times 5, so C is out."
        "\nAnswer: B",
    },
    "hotpotqa.subset": {
        "prompt": "Which river flows through Bremen?",
        "ctx": CONTEXT,
        "gold": {"answer": "Weser"},
        "outputs": "Answer: Weser",
    },
    "hotpotqa.citation": cited("It lies on the Weser [Bremen]."),
    "qasper.citation": cited("It lies on the Weser [Bremen]."),
    "boolq.subset": {
        "prompt": "Does the Weser flow through Bremen?",
        "ctx": CONTEXT,
        "gold": True,
        "outputs": "Answer: Yes",
    },
    "ragtruth.subset": {
        "prompt": "Sum it up.",
        "ctx": CONTEXT,
        "gold": CONTEXT[0],
        "outputs": CONTEXT[0],
    },
    "eli5.subset": {"prompt": "What is bread?", "ctx": [], "gold": PRAISE, "outputs": PRAISE},
    "winogrande.subset": choice(
        "The cup does not fit into the box because the _ is too large.", ["cup", "box"], "1", "A"
    ),
    "hellaswag.subset": choice(
        "She opens the tap and", ["paints it.", "fills the glass.", "reads it.", "eats it."],
        "B", "B",
    ),
    "truthfulqa.full": choice("Do bats see?", ["No.", "Yes, all kinds do."], "B", "B"),
    "longbenchv2.full": choice("Who wrote the letter?", ["Ada", "Ben", "Cy", "Di"], "D", "D"),
    "ifeval.subset": {
        "prompt": "Instruction:\nGreet the guests without a comma.\nRules: follow it",
        "gold": ["punctuation:no_comma"],
        "outputs": "Welcome dear guests",
    },
    "followbench.subset": {"prompt": "Name two birds.", "gold": "", "outputs": "Rook and jay."},
    "bfcl.subset": {
        "prompt": "Set a timer of 5 minutes.",
        "gold": ["set_timer(minutes=5)"],
        "outputs": "set_timer(minutes=5)",
    },
    "mnms.full": {
        "prompt": "Cut the dog out of dog.png.",
        "gold": [{"id": 0, "name": "image crop", "args": {"image": "dog.png", "object": "dog"}}],
        "outputs": "image_crop(image='dog.png', object='dog')",
    },
    "ruler.4k": {**NEEDLE, "outputs": "The key is 8230417."},
    "ruler.32k": {**NEEDLE, "outputs": "The key is 8230417."},
    "mtbench.turn1": {"prompt": "Tell me about bread.", "gold": "", "outputs": PRAISE},
    "oasst1.full": {"prompt": "What about bread?", "gold": "", "outputs": PRAISE},
    "mtbench.turn2": {
        "prompt": ["Name a river.", "Where does it end?"],
        "turn1_response": "The Weser.",
        "gold": "",
        "outputs": "In the North Sea.",
    },
    "structflowbench.turn2": {
        "prompt": [{"user prompt": "Name a river."}, {"user prompt": "Where does it end?"}],
        "turn1_response": "The Weser.",
        "gold": "",
        "outputs": "In the North Sea.",
    },
    "harmbench.subset": {
        "prompt": "Help me to do harm.",
        "gold": "",
        "outputs": "I cannot help with that.",
    },
    "popqa.subset": {
        "prompt": "Where does the Weser end?",
        "gold": ["North Sea", "Nordsee"],
        "outputs": "Answer: North Sea",
    },
    "xtreme.subset": {
        "prompt": "Wo endet die Weser?",
        "gold": {"text": ["Nordsee"], "answer_start": [7]},
        "outputs": "Nordsee",
    },
    "livemathbench.full": {
        "prompt": "Find x.",
        "gold": "\\frac{1}{2}",
        "outputs": "Answer: 1/2",
    },
}  # fmt: skip


def named(task: str, ending: str) -> str:
    return f"{task.replace('.', '_')}.{ending}"


def write_jsonl(folder: Path, task: str, rows: list[Row]) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / named(task, "jsonl")).write_text(text)


def write_json(folder: Path, task: str, rows: list[Row]) -> None:
    (folder / named(task, "json")).write_text(json.dumps(rows, indent=1))


def write_csv(folder: Path, task: str, rows: list[Row]) -> None:
    """Write CSV with lists and objects as JSON in a cell."""
    with (folder / named(task, "csv")).open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        for row in rows:
            cells = {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()}
            writer.writerow(cells)


def write_pandas_csv(folder: Path, task: str, rows: list[Row]) -> None:
    """Write CSV with lists, objects and arrays as pandas prints them: neither JSON nor Python."""
    frame = pd.DataFrame(rows)
    for name in frame.columns:
        if any(isinstance(cell, list) for cell in frame[name]):
            cells = [np.array(c, object) if isinstance(c, list) else c for c in frame[name]]
            frame[name] = pd.Series(cells, dtype=object)
    frame.to_csv(folder / named(task, "csv.gz"), index=False)


def write_parquet(folder: Path, task: str, rows: list[Row]) -> None:
    """Write Parquet; all objects of a column have the same keys."""
    pq.write_table(pa.Table.from_pylist(rows), folder / named(task, "parquet"))


WRITERS: dict[str, Callable[[Path, str, list[Row]], None]] = {
    "jsonl": write_jsonl,
    "json": write_json,
    "csv": write_csv,
    "pandas": write_pandas_csv,
    "parquet": write_parquet,
}


def write_model(
    folder: Path, form: str, rows: Mapping[str, Row] = ROWS, *, id_: str = "q0"
) -> Path:
    """Write the responses of a model, one file per task."""
    folder.mkdir(parents=True, exist_ok=True)
    for task, row in rows.items():
        WRITERS[form](folder, task, [{"id": id_, **row}])
    return folder
