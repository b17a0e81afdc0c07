"""Local copies of public benchmarks, with invented rows in the schemas of the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = Sequence[Mapping[str, Any]]

STORY = "Tia lost a blue glove. Bo found it under the bench."
STORY_ROWS = [
    {
        "idx": {"story": "invented.0", "question": number},
        "question": question,
        "story": STORY,
        "properties": {"author": "nobody"},
        "answer_options": {"A": "Bo", "B": "a glove", "C": "a bench", "D": "Tia"},
        "answer": answer,
        "question_is_multiple": False,
    }
    for number, (question, answer) in enumerate([("Who lost it?", "D"), ("Who found it?", "A")])
]
LABELLED_ROW = {
    "id": "x1",
    "question": "Which of these is a colour?",
    "choices": {"text": ["stone", "blue", "song"], "label": ["1", "2", "3"]},
    "answerKey": "2",
}
HELLASWAG_ROW = {
    "ind": 4,
    "activity_label": "Juggling",
    "ctx_a": "A clown takes three balls.",
    "ctx_b": "he",
    "endings": ["sleeps.", "eats them.", "throws them up.", "sinks."],
    "source_id": "film~1",
    "label": "2",
}
TRUTHFUL_ROWS = [
    {
        "question": f"Is a cat number {number} a dog?",
        "mc1_targets": {
            "choices": [f"No, {number} is a cat", "Yes", "On Mondays", "Only at night"],
            "labels": [1, 0, 0, 0],
        },
    }
    for number in range(40)
]
MOVIE_ROWS = [
    *(
        {
            "input": f"Find a movie similar to film {number}:\nOptions:\n(A) One\n(B) Two\n"
            "(C) Three\n(D) Four" + ("\n(E) Five" if number < 5 else ""),
            "target": "(C)",
        }
        for number in range(60)
    ),
    {
        "input": "Find a movie:\nOptions:\n(A) Monsters\n(B) Inc\n(C) Other",
        "target": "Monsters, Inc",
    },
]

# (data set, subset, split, made by a script) -> rows
COPIES: dict[tuple[str, str | None, str, bool], Rows] = {
    ("tau/commonsense_qa", None, "validation", False): [LABELLED_ROW],
    ("ybisk/piqa", "plain_text", "validation", True): [
        {"goal": "To open a jar,", "sol1": "twist the lid.", "sol2": "shout.", "label": 0}
    ],
    ("lighteval/big_bench_hard", "causal_judgement", "train", True): [
        {"input": "Did Al cause it?\nOptions:\n- Yes\n- No", "target": "No"}
    ],
    ("lighteval/big_bench_hard", "web_of_lies", "train", True): [
        {"input": "Question: Al lies. Does Al tell the truth?", "target": "No"}
    ],
    ("lighteval/big_bench_hard", "object_counting", "train", True): [
        {"input": "I have two cups and a hat. How many objects do I have?", "target": "3"}
    ],
    ("lighteval/big_bench_hard", "movie_recommendation", "train", True): MOVIE_ROWS,
    ("allenai/ai2_arc", "ARC-Easy", "test", False): [LABELLED_ROW],
    ("TAUR-Lab/MuSR", None, "murder_mysteries", False): [
        {
            "narrative": "Al was out. Bo was in the room.",
            "question": "Who did it?",
            "choices": "['Al', 'Bo']",
            "answer_index": 1,
            "answer_choice": "Bo",
        }
    ],
    ("sagnikrayc/mctest", "mc500", "test", True): STORY_ROWS,
    ("lighteval/siqa", None, "validation", False): [
        {
            "context": "Al helped Bo.",
            "question": "How does Bo feel?",
            "answerA": "angry",
            "answerB": "thankful",
            "answerC": "tired",
            "label": "2",
        }
    ],
    ("Rowan/hellaswag", None, "validation", False): [HELLASWAG_ROW],
    ("Rowan/hellaswag", None, "test", False): [HELLASWAG_ROW | {"label": ""}],
    ("truthfulqa/truthful_qa", "multiple_choice", "validation", False): TRUTHFUL_ROWS,
    ("walledai/SaladBench", "mrq", "train", False): [
        {
            "question": "Which reply is safe?",
            "choices": ["a threat", "kind advice", "a warning"],
            "answers": [1, 2],
            "categories": ["invented"],
        }
    ],
    ("Idavidrein/gpqa", "gpqa_diamond", "train", False): [
        {
            "Question": "What is 2 + 2?",
            "Correct Answer": "4\n",
            "Incorrect Answer 1": "3",
            "Incorrect Answer 2": "5",
            "Incorrect Answer 3": "22",
            "Record ID": "rec1",
        }
    ],
    ("cais/mmlu", "sociology", "test", False): [
        {
            "question": "Which word is first?",
            "subject": "sociology",
            "choices": ["one", "two", "three", "four"],
            "answer": 0,
        },
        {
            "question": "Which word is last?",
            "subject": "sociology",
            "choices": ["one", "two", "three", "four"],
            "answer": 3,
        },
    ],
}


def write_copies(root: Path) -> Path:
    """Write all copies, each in the folder of its data set on the hub."""
    for (dataset, subset, split, scripted), rows in COPIES.items():
        folder = root / dataset
        if scripted:
            place = folder / str(subset) / split / "0000.parquet"
        else:
            place = folder / (subset or "data") / f"{split}-00000-of-00001.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), place)
    for dataset in {key[0] for key in COPIES if not key[3]}:
        (root / dataset / "README.md").write_text(_card(dataset))
    return root


def _card(dataset: str) -> str:
    lines = ["---", "configs:"]
    for name, subset, split, _ in COPIES:
        if name != dataset:
            continue
        head = f"- config_name: {subset or 'default'}"
        if head not in lines:
            lines += [head, "  data_files:"]
        lines += [f"  - split: {split}", f"    path: {subset or 'data'}/{split}-*"]
    return "\n".join([*lines, "---", ""])
