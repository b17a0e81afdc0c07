"""The models of a map, loaded one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from forgetmap.evaluation import (
    AskedModel,
    Backend,
    ModelIdentity,
    Settings,
    Step,
    Suite,
    open_model,
    run_model,
)

OnMapProgress = Callable[[str, Step], None]
"""Called with the name of the run and its progress."""


@dataclass(slots=True)
class Models:
    """Evaluates models by their index: 0 is the model before.

    Attributes:
        models: paths, hub ids or addresses, each with its own settings.
        folders: names of their run folders.
        labels: display names.
        loading: dtype, device and the like, as for `open_model`.
        overwrite: start again even if there are results.
        on_progress: called after every answer.
    """

    models: Sequence[AskedModel]
    folders: Sequence[str]
    labels: Sequence[str]
    loading: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    on_progress: OnMapProgress | None = None
    _opened: tuple[int, Backend, ModelIdentity] | None = None

    def ask(
        self, index: int, suite: Suite, folder: Path, settings: Settings | None, part: str = ""
    ) -> None:
        """Write the run of one model; existing answers are kept."""
        backend, identity = self._open(index)
        label = f"{self.labels[index]}{part}"
        progress = None if self.on_progress is None else partial(self.on_progress, label)
        run_model(
            backend,
            suite,
            folder,
            identity,
            self.models[index].settings(settings),
            overwrite=self.overwrite,
            on_progress=progress,
        )

    def backends(self) -> Iterator[Backend]:
        """Open the models one after the other."""
        for index in range(len(self.models)):
            yield self._open(index)[0]

    def close(self) -> None:
        """Unload the current model."""
        self._opened = None

    def order(self) -> list[int]:
        """Return all indices, that of the loaded model first."""
        indices = list(range(len(self.models)))
        return indices[::-1] if self._opened and self._opened[0] == indices[-1] else indices

    def _open(self, index: int) -> tuple[Backend, ModelIdentity]:
        if self._opened is None or self._opened[0] != index:
            self.close()
            # Two runs of one model must not share random numbers, or they would agree by
            # construction.
            salt = str(index + 1)
            opened = open_model(
                self.models[index].model, name=self.labels[index], salt=salt, **self.loading
            )
            self._opened = (index, *opened)
        return self._opened[1], self._opened[2]
