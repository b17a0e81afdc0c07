"""Output folders: results together with their reports."""

from __future__ import annotations

import json
from pathlib import Path

from forgetmap.comparison import Comparison, write_result
from forgetmap.export import card_section
from forgetmap.overlap import BridgeResult
from forgetmap.records import complete_folder, writable
from forgetmap.report.figures.overlap import bridge_figures
from forgetmap.report.html.report import write_report
from forgetmap.report.markdown import as_markdown
from forgetmap.report.payloads.comparison import make_payload
from forgetmap.report.static import standalone_spec, write_figure
from forgetmap.sweep import Sweep

SPACE_CARD = """---
title: {title}
emoji: 🗺️
colorFrom: blue
colorTo: gray
sdk: static
app_file: index.html
pinned: false
---

{section}
"""
"""Card of a static Space of the Hugging Face hub, which shows `index.html`."""
COMPARISONS, RESULT, MARKDOWN, REPORT = "compared", "sweep.json", "report.md", "report.html"
SPACE_PAGE = "index.html"


def write_sweep(sweep: Sweep, folder: Path) -> Path:
    """Write a sweep with its comparisons and its report; return the page."""
    write_result(sweep.from_base, folder / COMPARISONS / "from-base", overwrite=True)
    for name, comparisons in sweep.from_tuned.items():
        write_result(comparisons, folder / COMPARISONS / f"from-{name}", overwrite=True)
    with writable(folder / RESULT):
        (folder / RESULT).write_text(sweep.to_json() + "\n", encoding="utf-8")
        (folder / MARKDOWN).write_text(as_markdown(sweep), encoding="utf-8")
    return write_report(sweep, folder / REPORT)


def write_space(
    comparison: Comparison, folder: Path, *, texts: bool = False, overwrite: bool = False
) -> Path:
    """Write the report as a static Space of the Hugging Face hub, atomically.

    Args:
        comparison: a result of `compare`.
        folder: folder to write; it is the repository of the Space.
        texts: include questions, answers and responses.
        overwrite: replace an earlier result.

    Returns:
        The page.
    """
    names = comparison.result.before.name, comparison.result.after.name
    title = json.dumps("What {1} forgot of {0}".format(*names), ensure_ascii=False)
    with complete_folder(folder, overwrite=overwrite) as partial:
        card = SPACE_CARD.format(title=title, section=card_section(comparison.result))
        (partial / "README.md").write_text(card, encoding="utf-8")
        (partial / "manifest.json").write_text(
            '{"schema_version": 1, "space": true}\n', encoding="utf-8"
        )
        write_report(make_payload(comparison, texts=texts), partial / SPACE_PAGE)
    return folder / SPACE_PAGE


def write_bridge(result: BridgeResult, folder: Path, *, overwrite: bool = False) -> None:
    """Write how well divergence predicts forgetting, with figures as SVG, PNG and Vega-Lite."""
    with complete_folder(folder, overwrite=overwrite) as partial:
        (partial / "bridge.json").write_text(result.to_json() + "\n", encoding="utf-8")
        (partial / "manifest.json").write_text(
            '{"schema_version": 1, "bridge": true}\n', encoding="utf-8"
        )
        for figure in bridge_figures(result):
            stem = partial / figure.name.replace("_", "-")
            write_figure(figure, stem.with_suffix(".svg"), ground=True)
            write_figure(figure, stem.with_suffix(".png"))
            spec = json.dumps(standalone_spec(figure.spec or {}, []))
            stem.with_suffix(".vl.json").write_text(spec + "\n", encoding="utf-8")
