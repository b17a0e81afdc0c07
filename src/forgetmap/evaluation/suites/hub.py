"""Data sets from the Hugging Face Hub, or from local folders with the same layout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap._lazy import require
from forgetmap.errors import InputError, MissingInputError, UnreadableError

ROOT_VARIABLE = "FORGETMAP_DATA"
EXPORT = "refs/convert/parquet"
"""Branch with Parquet copies of data sets that have a loading script; scripts are never run."""

HubRow = Mapping[str, Any]
"""One row of a data set by column."""


@dataclass(frozen=True, slots=True)
class HubData:
    """One split of a data set.

    Attributes:
        dataset: its id on the hub, such as `cais/mmlu`.
        split: name of the split.
        config: name of the subset.
        exported: whether to read the Parquet copy, because the data set has a loading script.
    """

    dataset: str
    split: str
    config: str | None = None
    exported: bool = False

    def __str__(self) -> str:
        subset = f", subset {self.config}" if self.config else ""
        return f"{self.dataset}{subset}, split {self.split}"


def data_root(root: Path | None) -> Path | None:
    """Return the folder with local copies: as given, or from FORGETMAP_DATA."""
    folder = os.environ.get(ROOT_VARIABLE)
    return root or (Path(folder) if folder else None)


def load_rows(data: HubData, *, root: Path | None = None) -> list[HubRow]:
    """Return all rows of the split.

    Args:
        data: the split to read.
        root: a folder with local copies; `root/cais/mmlu` replaces `cais/mmlu`.
    """
    root = data_root(root)
    if root is not None and not (root / data.dataset).is_dir():
        raise MissingInputError(
            f"there is no local copy of {data.dataset}",
            file=str(root / data.dataset),
            hint="download it: hf download --repo-type dataset "
            f"{data.dataset}{f' --revision {EXPORT}' if data.exported else ''} --local-dir "
            f"{root / data.dataset}; or remove the folder option to read from the hub.",
        )
    require("datasets", "Reading data sets from the hub")
    with _readable(data), _quiet():
        return list(_load(data, root))


def _load(data: HubData, root: Path | None) -> Any:
    import datasets

    where: dict[str, Any] = {"path": str(root / data.dataset) if root else data.dataset}
    if data.exported:
        where["data_files"] = {data.split: f"{data.config or '*'}/{data.split}/*.parquet"}
        if root is None:
            where["revision"] = EXPORT
    else:
        where["name"] = data.config
    # The cache does not notice changes of a local copy; streaming does not use it.
    return datasets.load_dataset(**where, split=data.split, streaming=root is not None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Disable the progress bars of data sets: there are many, and a run has its own."""
    import datasets

    if datasets.are_progress_bars_disabled():
        yield
        return
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.enable_progress_bars()


@contextmanager
def _readable(data: HubData) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the loader raises errors of a dozen libraries
        raise _explained(data, error) from error


def _explained(data: HubData, error: Exception) -> InputError:
    text = str(error).strip() or type(error).__name__
    first = text.splitlines()[0]
    if "gated" in text.lower():
        return MissingInputError(
            f"{data.dataset} is gated: {first}",
            file=str(data),
            hint=f"accept its terms at https://huggingface.co/datasets/{data.dataset}, then run: "
            "hf auth login.",
        )
    copies = f"set --data-root or {ROOT_VARIABLE} to a folder with copies"
    if isinstance(error, FileNotFoundError | ConnectionError):
        return MissingInputError(
            f"the data set cannot be found: {first}",
            file=str(data),
            hint=f"check its name and the connection; without a connection {copies}.",
        )
    return UnreadableError(
        f"the data set cannot be read: {first}",
        file=str(data),
        hint=f"check subset and split, or {copies}.",
    )
