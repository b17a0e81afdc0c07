"""Results with their reports in folders."""

from __future__ import annotations

import json
from pathlib import Path

from forgetmap.comparison import write_result
from forgetmap.overlap import BridgeResult
from forgetmap.records import complete_folder, writable
from forgetmap.report.figures.overlap import bridge_figures
from forgetmap.report.html.report import write_report
from forgetmap.report.markdown import as_markdown
from forgetmap.report.static import standalone_spec, write_figure
from forgetmap.sweep import Sweep

COMPARISONS, RESULT, MARKDOWN, REPORT = "compared", "sweep.json", "report.md", "report.html"


def write_sweep(sweep: Sweep, folder: Path) -> Path:
    """Write a sweep with its comparisons and its report; returns the page."""
    write_result(sweep.from_base, folder / COMPARISONS / "from-base", overwrite=True)
    for name, comparisons in sweep.from_tuned.items():
        write_result(comparisons, folder / COMPARISONS / f"from-{name}", overwrite=True)
    with writable(folder / RESULT):
        (folder / RESULT).write_text(sweep.to_json() + "\n", encoding="utf-8")
        (folder / MARKDOWN).write_text(as_markdown(sweep), encoding="utf-8")
    return write_report(sweep, folder / REPORT)


def write_bridge(result: BridgeResult, folder: Path, *, overwrite: bool = False) -> None:
    """Write how well divergence predicts forgetting, with figures as SVG, PNG and Vega-Lite."""
    with complete_folder(folder, overwrite=overwrite) as partial:
        (partial / "bridge.json").write_text(result.to_json() + "\n", encoding="utf-8")
        (partial / "manifest.json").write_text('{"bridge": true}\n', encoding="utf-8")
        for figure in bridge_figures(result):
            stem = partial / figure.name.replace("_", "-")
            write_figure(figure, stem.with_suffix(".svg"), ground=True)
            write_figure(figure, stem.with_suffix(".png"))
            spec = json.dumps(standalone_spec(figure.spec or {}, []))
            stem.with_suffix(".vl.json").write_text(spec + "\n", encoding="utf-8")
