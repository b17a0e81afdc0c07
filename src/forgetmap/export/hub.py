"""A data set folder for the Hugging Face Hub: the outcome of each item, and a card.

    FOLDER/
      README.md                    the card: configuration, contents and verdict
      data/transitions.parquet     one row per item and repeat
      data/unpaired.parquet        results that are not compared, with reasons
      comparison.json              all numbers, the output of `compare --json`

Questions, answers and responses are left out by default, because models are trained on benchmarks
that are published on the web.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.comparison import CELL_NAMES, KINDS, Comparison, ComparisonResult
from forgetmap.errors import UsageError
from forgetmap.export.card import card_section
from forgetmap.records import complete_folder, reading, sort_items
from forgetmap.text import counted, escape_markdown

TRANSITIONS, UNPAIRED = "data/transitions.parquet", "data/unpaired.parquet"
PRIVATE = ("gold", "answer_before", "answer_after", "choice_before", "choice_after")
"""Columns that quote a benchmark or a model."""
SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M",
         10_000_000: "1M<n<10M", 100_000_000: "10M<n<100M"}  # fmt: skip
"""Number of rows -> size category of the hub below it."""
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True, slots=True)
class HubSummary:
    """The written data set.

    Attributes:
        out: path of the folder.
        rows: number of transitions.
        unpaired: number of results that were not compared.
        texts: whether questions, answers and responses are in it.
    """

    out: str
    rows: int
    unpaired: int
    texts: bool

    def to_json(self) -> str:
        """Return the output of `--json`."""
        return json.dumps(asdict(self), indent=2)


def write_hub(
    comparison: Comparison,
    out: str | Path,
    *,
    license: str | None = None,  # noqa: A002  # the name that the hub has for it
    name: str | None = None,
    texts: bool = False,
    overwrite: bool = False,
) -> HubSummary:
    """Write a folder that `datasets.load_dataset` reads, all or nothing.

    Args:
        comparison: result of `compare`.
        out: the folder to write.
        license: license of the data set by its name on the hub, such as `cc-by-4.0`; none by
            default.
        name: name of the data set; by default composed of the names of the runs.
        texts: also write questions, options, answers and responses.
        overwrite: replace an earlier result.
    """
    out = Path(out)
    if license is not None and not _LICENSE.fullmatch(license):
        raise UsageError(
            f"{license!r} is not a license identifier of the hub",
            hint="give an identifier such as apache-2.0, cc-by-4.0 or other.",
        )
    with reading(comparison.before, comparison.after):
        transitions = _transitions(comparison, texts=texts)
        unpaired = _unpaired(comparison)
    title = name or f"{comparison.before.name} and {comparison.after.name}, item by item"
    with complete_folder(out, overwrite=overwrite) as folder:
        (folder / "data").mkdir()
        pq.write_table(transitions, folder / TRANSITIONS, compression="zstd")
        tables = {"transitions": transitions}
        if len(unpaired):
            pq.write_table(unpaired, folder / UNPAIRED, compression="zstd")
            tables["unpaired"] = unpaired
        published = _without_paths(comparison.result).to_json() + "\n"
        (folder / "comparison.json").write_text(published, encoding="utf-8")
        card = _card(comparison, title, license, tables, texts=texts)
        (folder / "README.md").write_text(card, encoding="utf-8")
    return HubSummary(str(out), len(transitions), len(unpaired), texts)


def _without_paths(result: ComparisonResult) -> ComparisonResult:
    """Return the result without the private paths of the runs."""
    before, after = (replace(run, origin=run.name) for run in (result.before, result.after))
    return replace(result, before=before, after=after)


def _transitions(comparison: Comparison, *, texts: bool) -> pa.Table:
    """Return every scored pair with its transition."""
    parts = [
        comparison.flip_frame(kind, texts=texts)  # type: ignore[arg-type]  # one of KINDS
        .with_columns(transition=nw.lit(kind))
        .collect()
        .to_arrow()
        for kind in KINDS
    ]
    table = pa.concat_tables(parts, promote_options="permissive")
    left_out = () if texts else PRIVATE
    names = [column for column in table.column_names if column not in left_out]
    first = ["task", "item", "item_after", "repeat", "transition"]
    table = table.select([*first, *(column for column in names if column not in first)])
    return sort_items(nw.from_native(table).lazy(), "repeat").collect().to_arrow()


def _unpaired(comparison: Comparison) -> pa.Table:
    unpaired = nw.from_native(comparison.unpaired())
    frame = unpaired.collect() if isinstance(unpaired, nw.LazyFrame) else unpaired
    return frame.to_arrow()


def _card(
    comparison: Comparison,
    title: str,
    license_name: str | None,
    tables: Mapping[str, pa.Table],
    *,
    texts: bool,
) -> str:
    result = comparison.result
    counts = {kind: getattr(result.total, CELL_NAMES[states]) for kind, states in KINDS.items()}
    words = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    words = f"{counted(result.total.n, 'result')}, {words}"
    before, after = (escape_markdown(run.name) for run in (result.before, result.after))
    parts = [
        _header(title, license_name, tables),
        f"# {escape_markdown(title)}",
        f"What {after} forgot and gained compared with {before}: {words} right.",
        _contents(tables["transitions"], texts=texts),
        card_section(result),
    ]
    return "\n\n".join(parts) + "\n"


def _header(title: str, license_name: str | None, tables: Mapping[str, pa.Table]) -> str:
    """Return the YAML header for the hub and `datasets`; texts are JSON, which is YAML too."""
    size = next(
        (word for most, word in SIZES.items() if len(tables["transitions"]) < most), "n>100M"
    )
    lines = ["---", f"pretty_name: {json.dumps(title)}"]
    lines += [f"license: {license_name}"] if license_name else []
    lines += ["tags:", "- forgetting", "- evaluation", "- forgetmap"]
    lines += ["size_categories:", f"- {size}", "configs:"]
    files = {"transitions": TRANSITIONS, "unpaired": UNPAIRED}
    for name in tables:
        lines += [f"- config_name: {name}", *(["  default: true"] if name == "transitions" else [])]
        lines += ["  data_files:", "  - split: train", f"    path: {files[name]}"]
    return "\n".join([*lines, "---"])


_MEANINGS: Mapping[str, str] = {
    "task": "task of the item",
    "item": "id of the item before",
    "item_after": "id of the item after",
    "repeat": "number of the answer by the same model",
    "transition": "forgotten, gained, kept, or never right",
    "category": "group of the item",
    "k": "number of options",
    "gold": "the right answer",
    "score": "score {side}",
    "outcome": "outcome of the answer {side}",
    "answer": "extracted answer {side}",
    "choice": "chosen option {side}",
    "question": "the question",
    "options": "the options as shown",
    "prompt": "the prompt {side}",
    "response": "complete response {side}",
    "error": "error message {side}",
}


def _contents(table: pa.Table, *, texts: bool) -> str:
    lines = ["| column | meaning |", "|---|---|"]
    for name in table.column_names:
        stem, _, side = name.rpartition("_")
        is_sided = stem in _MEANINGS and side in ("before", "after") and name not in _MEANINGS
        meaning: Any = _MEANINGS.get(stem if is_sided else name, "")
        lines.append(f"| `{name}` | {meaning.format(side=side)} |")
    note = (
        "The data set contains questions and answers of benchmarks. A model trained on them can "
        "no longer be evaluated on these benchmarks."
        if texts
        else (
            "The data set contains no questions, answers or responses, so no benchmark leaks "
            "from it."
        )
    )
    return "\n".join(lines) + f"\n\n{note}"
