"""What servers took, and what they could not be relied on for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from forgetmap.records import ServiceInfo


def print_services(folders: Iterable[Path]) -> None:
    """Of every run among these that a server answered; each note once."""
    from forgetmap.records import (
        MANIFEST,  # heavy
        read_manifest,
    )

    found = {folder.name: read_manifest(folder / MANIFEST).service for folder in folders}
    served = {name: service for name, service in found.items() if service is not None}
    print_notes(note for service in served.values() for note in service.notes)
    for name, service in served.items():
        click.echo(f"{name}: {_taken(service)}", err=True)


def print_notes(notes: Iterable[str]) -> None:
    """Each once."""
    for note in dict.fromkeys(notes):
        click.echo(f"Note: {note}", err=True)


def _taken(service: ServiceInfo) -> str:
    cost = "" if service.cost is None else f", cost {service.cost:,.4f}"
    again = f" ({service.retries:,} of them again after a failure)" if service.retries else ""
    return (
        f"{service.requests or 0:,} requests{again}, {service.tokens_in or 0:,} tokens read, "
        f"{service.tokens_out or 0:,} written{cost}"
    )
