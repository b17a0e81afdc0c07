"""Forgetting against divergence, over several ways of training: drawn as `overlap` draws it."""

from __future__ import annotations

from forgetmap.overlap import BridgeResult, bridge_section
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure
from forgetmap.report.payload import Payload

_DRAWN = ("data", "layer", "height")


def bridge(payload: Payload, found: BridgeResult) -> list[Figure]:
    """Forgetting against divergence, and predicted against measured forgetting."""
    section = bridge_section(found)
    notes = "".join(f" {notice}" for notice in section["notices"])
    figures = []
    for drawn in section["figures"]:
        spec = look.vega_lite(payload, drawn["alt"], one=False)
        spec |= {name: drawn["spec"][name] for name in _DRAWN}
        caption = f"{section['text']} {drawn['caption']}{notes}"
        figures.append(
            Figure(
                name=drawn["name"].replace("-", "_"),
                title=drawn["title"],
                caption=caption,
                alt=drawn["alt"],
                table=drawn["table"],
                spec=spec,
            )
        )
    return figures
