"""Probes: small sets of items that represent a full run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.probe.check import GroupFinding, check_probe, findings_json
    from forgetmap.probe.choose import Probe, choose_probe, write_probe

__all__ = [
    "GroupFinding",
    "Probe",
    "check_probe",
    "choose_probe",
    "findings_json",
    "write_probe",
]

__getattr__ = load_on_use(__name__, __file__)
