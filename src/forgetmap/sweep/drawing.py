"""Figures of weights as files, drawn without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from forgetmap.errors import UsageError
from forgetmap.merge import WeightDrift
from forgetmap.records import writable
from forgetmap.report import Format, picture
from forgetmap.sweep.figures import drift_figure


def draw_drift(drift: WeightDrift, path: Path) -> Path:
    """Draw how far each layer and kind of module moved; the name of the file says the format."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in get_args(Format):
        raise UsageError(f"{path.name} is no kind of picture", hint="call it .svg, .png or .pdf.")
    content = picture(drift_figure(drift), [], cast("Format", kind), "light", words=True)
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path
