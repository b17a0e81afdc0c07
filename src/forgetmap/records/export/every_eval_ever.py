"""Export of a run to every_eval_ever, the shared format of the EvalEval coalition.

One JSON object per line and result. Values without a field in that schema go into `metadata`, from
where forgetmap reads them back. The schema requires a score: results without one are left out and
counted, because a zero would mean that the answer was wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa

from forgetmap._disk import whole_file
from forgetmap.records.folder import batches_of, fill_scores, fill_texts, writable
from forgetmap.records.manifest import MetricInfo
from forgetmap.records.outcome import Outcome
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import KEY, TEXT_NAMES, scores_schema, texts_schema

VERSION = "0.3.0"
ROWS_PER_SLICE = 1_000
_FIELDS = (
    "repeat", "metric", "scorer", "outcome", "k", "category", "tags", "cluster", "gold_index",
    "choice", "seed", "tokens_in", "tokens_out", "finish_reason", "logprob_answer", "logprob_gold",
)  # fmt: skip
METADATA_KEYS = {name: f"forgetmap_{name}" for name in _FIELDS}
"""Our fields that the schema lacks, or has only in part -> keys in its metadata."""


@dataclass(frozen=True, slots=True)
class ExportCounts:
    """Number of rows written, and of results left out because they have no score."""

    rows: int
    left_out: int


def write_instances(run: Run, path: Path) -> ExportCounts:
    """Write the results of a run as JSON lines; the file appears only when it is complete.

    Args:
        run: the run, which is read batch by batch.
        path: the file to write, such as `samples.jsonl`.
    """
    rows = left_out = 0
    with (
        writable(path),
        whole_file(path) as partial,
        partial.open("w", encoding="utf-8") as file,
    ):
        for row in _rows(run):
            if row["score"] is None or not isfinite(row["score"]):
                left_out += 1
                continue
            rows += 1
            file.write(json.dumps(_instance(row, run), ensure_ascii=False) + "\n")
    return ExportCounts(rows, left_out)


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    """Iterate over scores joined with their texts, if there are any."""
    frame: Frame = fill_scores(run.scores)
    schema = scores_schema()
    if run.texts is not None:
        texts = fill_texts(run.texts).unique(list(KEY), keep="any")
        frame = frame.join(texts, on=list(KEY), how="left")
        for name in TEXT_NAMES:
            schema = schema.append(texts_schema().field(name))
    schema = pa.schema([field.with_nullable(nullable=True) for field in schema])
    for batch in batches_of(frame.select(*schema.names), schema, run):
        for start in range(0, batch.num_rows, ROWS_PER_SLICE):
            yield from batch.slice(start, ROWS_PER_SLICE).to_pylist()


def _instance(row: Mapping[str, Any], run: Run) -> dict[str, Any]:
    model = run.info.model.name or run.name
    raw, reference = row.get("question") or "", [row["gold"]] if row["gold"] is not None else []
    response = row.get("response")
    instance = {
        "schema_version": VERSION,
        "evaluation_id": f"forgetmap/{model.replace('/', '_')}/{run.info.created or 'undated'}",
        "model_id": model,
        "evaluation_name": row["task"],
        "evaluation_result_id": f"{row['task']}/{row['metric']}/{row['scorer']}",
        "sample_id": row["item"],
        "sample_hash": sha256((raw + "".join(reference)).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": raw,
            "formatted": row.get("prompt"),
            "reference": reference,
            "choices": row.get("options"),
        },
        "output": {"raw": [] if response is None else [response]},
        "messages": None,
        "answer_attribution": _attribution(row),
        "evaluation": {"score": row["score"], "is_correct": _is_right(row, run)},
        "token_usage": _tokens(row),
        "error": row.get("error"),
        "metadata": {
            key: str(row[name]) for name, key in METADATA_KEYS.items() if row[name] is not None
        },
    }
    return {name: value for name, value in instance.items() if value is not None}


def _attribution(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    if row["answer"] is None:
        return []
    return [
        {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": row["answer"],
            "extraction_method": row["scorer"],
            "is_terminal": True,
        }
    ]


def _is_right(row: Mapping[str, Any], run: Run) -> bool:
    """Whether the answer is right: by its outcome, else if the metric has its best value."""
    if row["outcome"] is not None:
        return bool(row["outcome"] == Outcome.CORRECT)
    metric = run.info.metrics.get(row["metric"], MetricInfo())
    best = metric.high if metric.higher_is_better else metric.low
    return best is not None and row["score"] == best


def _tokens(row: Mapping[str, Any]) -> dict[str, int] | None:
    read, written = row["tokens_in"], row["tokens_out"]
    if read is None or written is None:
        return None
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
