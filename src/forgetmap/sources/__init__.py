"""Foreign results in: one file per format, recognised by content, never by file name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.sources.adapter import Adapter, Log, Problems, Sample, Score
    from forgetmap.sources.column_maps import save_map
    from forgetmap.sources.files import LogFile
    from forgetmap.sources.harnesses.captrack import PROVISIONAL_SCORER, captrack_samples
    from forgetmap.sources.logs import Progress, Reading, choose, label, open_logs, recognise
    from forgetmap.sources.open import is_remote, open_run
    from forgetmap.sources.registry import ADAPTERS
    from forgetmap.sources.remote import typed_failures, without_secrets

__all__ = [
    "ADAPTERS",
    "PROVISIONAL_SCORER",
    "Adapter",
    "Log",
    "LogFile",
    "Problems",
    "Progress",
    "Reading",
    "Sample",
    "Score",
    "captrack_samples",
    "choose",
    "is_remote",
    "label",
    "open_logs",
    "open_run",
    "recognise",
    "save_map",
    "typed_failures",
    "without_secrets",
]

__getattr__ = load_on_use(__name__, __file__)
