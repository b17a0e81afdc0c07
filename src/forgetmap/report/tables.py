"""Tables of a study as LaTeX, CSV and Markdown, one per stage, as published and with intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from forgetmap.records import quote_formulas
from forgetmap.results import Estimate
from forgetmap.study import TOTAL, Effect, PairDetail, StudyDetail
from forgetmap.text import (
    counted,
    escape_latex,
    escape_markdown,
    latex_table,
    markdown_table,
)

EFFECTS: dict[Effect, str] = {
    "forgetting": "Forgetting",
    "backward_transfer": "Backward transfer",
}
MERGES = "merges"
WriteCell = Callable[[PairDetail, str, Effect], str]
"""Formats a cell from pair, category and effect."""
PRINTED_WORDS = (
    "mean over tasks and seeds in percent of all items, clipped at 0 per task and seed as "
    "published; ± is the standard deviation over seeds, in brackets the maximum that accuracy "
    "allows"
)
INTERVAL_WORDS = (
    "percent of all items, adjusted for chance and not clipped, with {} % intervals over items"
)
DOCUMENT = r"""\documentclass[10pt]{{article}}
\usepackage[utf8]{{inputenc}}
\usepackage[T1]{{fontenc}}
\usepackage{{booktabs,graphicx}}
\usepackage[margin=2cm]{{geometry}}
\begin{{document}}
{inputs}
\end{{document}}
"""
DASH = "\N{EN DASH}"


def slug_of(name: str) -> str:
    """Return a name as part of a file name or a label."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:48].strip("-") or "x"


def table_groups(detail: StudyDetail) -> dict[str, list[PairDetail]]:
    """Return stages with their pairs, then merges."""
    groups = {
        group: [pair for pair in detail.pairs if pair.group == group] for group in detail.groups
    }
    if detail.merges:
        groups[MERGES] = detail.merges
    return {name: pairs for name, pairs in groups.items() if pairs}


def table_names(detail: StudyDetail) -> dict[str, str]:
    """Return stage -> prefix of the names of its files."""
    return {
        group: f"{number:02d}-{slug_of(group)}"
        for number, group in enumerate(table_groups(detail), start=1)
    }


def write_study_tables(detail: StudyDetail, folder: Path) -> list[Path]:
    """Write every table into a folder; `all.tex` is a document with all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    names = table_names(detail)
    intervals = INTERVAL_WORDS.format(f"{100 * detail.study.level:g}")
    paths, inputs = [], []
    for group, pairs in table_groups(detail).items():
        stem = names[group]
        texts = {
            f"{stem}.tex": _latex(group, pairs, stem, printed_cell, PRINTED_WORDS),
            f"{stem}.md": _markdown(group, pairs, printed_cell, PRINTED_WORDS),
            f"{stem}-intervals.tex": _latex(
                group, pairs, f"{stem}-intervals", interval_cell, intervals
            ),
            f"{stem}-intervals.md": _markdown(group, pairs, interval_cell, intervals),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            paths.append(folder / name)
        _write_csv(pair_rows(pairs), folder / f"{stem}.csv")
        inputs += [rf"\input{{{stem}}}", rf"\input{{{stem}-intervals}}", r"\clearpage"]
    every = [*detail.pairs, *detail.merges]
    _write_csv(pair_rows(every), folder / "all.csv")
    if any(pair.tasks for pair in every):
        _write_csv(task_rows(every), folder / "tasks.csv")
    document = DOCUMENT.format(inputs="\n".join(inputs))
    (folder / "all.tex").write_text(document, encoding="utf-8")
    return [*paths, folder / "all.tex"]


def study_latex(detail: StudyDetail) -> str:
    """Return every stage with intervals, one table after the other."""
    words = INTERVAL_WORDS.format(f"{100 * detail.study.level:g}")
    names = table_names(detail)
    return "\n".join(
        _latex(group, pairs, f"{names[group]}-intervals", interval_cell, words)
        for group, pairs in table_groups(detail).items()
    )


def pair_rows(pairs: Sequence[PairDetail]) -> list[dict[str, Any]]:
    """Return one record per pair and category, with unrounded numbers."""
    rows = []
    for pair in pairs:
        printed = {one.category: one for one in pair.printed}
        for change in pair.categories:
            row: dict[str, Any] = {
                "stage": pair.group, "pair": pair.label, "before": pair.before,
                "after": pair.after, "style_changes": pair.changed_style,
                "category": change.category, "tasks": change.tasks, "items": change.items,
                "forgotten": change.forgotten, "gained": change.gained,
                "accuracy_before": change.acc_before, "accuracy_after": change.acc_after,
            }  # fmt: skip
            for effect in EFFECTS:
                estimate: Estimate = getattr(change, effect)
                row |= {
                    effect: estimate.value,
                    f"{effect}_low": estimate.low,
                    f"{effect}_high": estimate.high,
                }
            if change.category in printed:
                values = printed[change.category].model_dump(exclude={"category"})
                row |= {f"printed_{name}": value for name, value in values.items()}
            rows.append(row)
    return rows


def task_rows(pairs: Sequence[PairDetail]) -> list[dict[str, Any]]:
    """Return one record per pair and task."""
    return [
        {"stage": pair.group, "pair": pair.label, "before": pair.before, "after": pair.after}
        | task.model_dump()
        for pair in pairs
        for task in pair.tasks
    ]


def _write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    safe = pa.table(quote_formulas(table), names=names)
    pa.csv.write_csv(safe, path)


def _categories(pairs: Sequence[PairDetail]) -> list[str]:
    return list(dict.fromkeys(one.category for pair in pairs for one in pair.categories))


def printed_cell(pair: PairDetail, category: str, effect: Effect) -> str:
    """Format `8.3 ± 0.2 [61.0]`: value, deviation over seeds, ceiling; a dash if missing."""
    values = next((one for one in pair.printed if one.category == category), None)
    value = getattr(values, effect, None)
    if value is None:
        return DASH
    deviation, most = getattr(values, f"{effect}_sd"), getattr(values, f"{effect}_max")
    spread = "" if deviation is None else f" ± {100 * deviation:.1f}"
    ceiling = "" if most is None else f" [{100 * most:.1f}]"
    return f"{100 * value:.1f}{spread}{ceiling}"


def interval_cell(pair: PairDetail, category: str, effect: Effect) -> str:
    """Format `8.3 (6.1 to 10.5)`; a dash if missing."""
    change = pair.category(category)
    estimate = None if change is None else getattr(change, effect)
    if estimate is None or estimate.value is None:
        return DASH
    limits = (
        "" if estimate.low is None else f" ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"
    )
    return f"{100 * estimate.value:.1f}{limits}".replace("-", "\N{MINUS SIGN}")


def pair_label(pair: PairDetail) -> str:
    """Return both models, with the label of the pair if it adds information."""
    names = f"{pair.before} → {pair.after}"
    return names if pair.label in (pair.after, "") else f"{pair.label} ({names})"


def _rows(pairs: Sequence[PairDetail], effect: Effect, cell: WriteCell) -> list[list[str]]:
    names = _categories(pairs)
    return [[pair_label(pair), *(cell(pair, name, effect) for name in names)] for pair in pairs]


def _title(effect: Effect, group: str, pairs: Sequence[PairDetail]) -> str:
    return f"{EFFECTS[effect]}, {group}, {counted(len(pairs), 'pair')}"


def _latex(group: str, pairs: Sequence[PairDetail], label: str, cell: WriteCell, words: str) -> str:
    heads = ["pair", *_categories(pairs)]
    parts = [
        latex_table(
            [escape_latex(head) for head in heads],
            [[escape_latex(text) for text in row] for row in _rows(pairs, effect, cell)],
            caption=escape_latex(f"{_title(effect, group, pairs)}: {words}."),
            label=f"tab:{label}-{slug_of(effect)}",
            strong=1 if TOTAL in heads else 0,
        )
        for effect in EFFECTS
    ]
    return "% needs \\usepackage{booktabs,graphicx}\n" + "\n".join(parts)


def _markdown(group: str, pairs: Sequence[PairDetail], cell: WriteCell, words: str) -> str:
    heads = [escape_markdown(head) for head in ["pair", *_categories(pairs)]]
    parts = []
    for effect in EFFECTS:
        rows = [[escape_markdown(text) for text in row] for row in _rows(pairs, effect, cell)]
        title = escape_markdown(_title(effect, group, pairs))
        parts.append(f"**{title}**: {words}.\n\n{markdown_table(heads, rows, align='---:')}\n")
    return "\n".join(parts)
