"""Places in a log that could not be used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One place in a log that could not be used, and what is wrong there."""

    file: str
    line: int | None
    field: str | None
    message: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line is not None else ""
        about = f", field '{self.field}'" if self.field else ""
        return f"{self.file}{line}{about}: {self.message}"
