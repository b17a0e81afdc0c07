"""Problems in a log: parts that could not be used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a log that could not be used, and the reason."""

    file: str
    line: int | None
    field: str | None
    message: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line is not None else ""
        about = f", field '{self.field}'" if self.field else ""
        return f"{self.file}{line}{about}: {self.message}"
