"""The models of a map, of which one at a time is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from forgetmap.evaluation import Backend, Examinee, Settings, Step, Suite, open_model, run_model

Report = Callable[[str, Step], None]
"""Called with the name of the run and how far it is."""


@dataclass(slots=True)
class Models:
    """Asks models by their place: 0 is the model before.

    Attributes:
        given: paths, hub ids or addresses.
        names: of their runs.
        loading: dtype, device and the like, as for `open_model`.
        overwrite: start anew, whatever is there.
        report: called after every answer.
    """

    given: Sequence[Any]
    names: Sequence[str]
    loading: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    report: Report | None = None
    _opened: tuple[int, Backend, Examinee] | None = None

    def ask(
        self, place: int, suite: Suite, folder: Path, settings: Settings | None, part: str = ""
    ) -> None:
        """Write the run of one model; what is already there is not done again."""
        backend, who = self._open(place)
        said = f"{self.names[place]}{part}"
        seen = None if self.report is None else partial(self.report, said)
        run_model(backend, suite, folder, who, settings, overwrite=self.overwrite, report=seen)

    def close(self) -> None:
        """Let go of the model that is loaded."""
        self._opened = None

    def order(self) -> list[int]:
        """All places, the one that is loaded first."""
        places = list(range(len(self.given)))
        return places[::-1] if self._opened and self._opened[0] == places[-1] else places

    def _open(self, place: int) -> tuple[Backend, Examinee]:
        if self._opened is None or self._opened[0] != place:
            self.close()
            # Two runs of one model must not share random numbers, or they would agree by chance.
            salt = str(place + 1)
            opened = open_model(
                self.given[place], name=self.names[place], salt=salt, **self.loading
            )
            self._opened = (place, *opened)
        return self._opened[1], self._opened[2]
