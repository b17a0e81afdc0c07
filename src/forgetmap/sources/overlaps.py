"""Detection of results and answers that occur in several parts of a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.records import KEY, text_digests

Digests = npt.NDArray[np.uint64]
ResultDigests = Mapping[tuple[str, ...], Digests]
"""Task, metric and scorer -> hashes of items and repeats."""
_MEASURE = ("task", "metric", "scorer")
_STEP = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that all repeats of an item have different hashes."""


def result_digests(scores: Path) -> ResultDigests:
    """Return the hashes of the results of a part."""
    with pa.OSFile(str(scores)) as source, pa.ipc.open_file(source) as opened:
        table = opened.read_all().select([*KEY, "metric", "scorer"])
    digests = answer_digests(table)
    names = [table[name].combine_chunks().dictionary_encode() for name in _MEASURE]
    sizes = [len(name.dictionary) for name in names]
    codes = np.ravel_multi_index([np.asarray(name.indices) for name in names], sizes)
    found: dict[tuple[str, ...], Digests] = {}
    for code in np.flatnonzero(np.bincount(codes)):
        places = np.unravel_index(code, sizes)
        texts = (
            name.dictionary[int(place)].as_py() for name, place in zip(names, places, strict=True)
        )
        found[tuple(texts)] = digests[codes == code]
    return found


def answer_digests(table: pa.Table) -> Digests:
    """Return a hash of task, item and repeat for each row."""
    tasks = table["task"].combine_chunks().dictionary_encode()
    of_tasks = text_digests(tasks.dictionary.to_pylist())[np.asarray(tasks.indices)]
    items = text_digests(table["item"].to_pylist())
    repeats = table["repeat"].to_numpy().astype(np.uint64)
    digests: Digests = items + _STEP * (of_tasks + repeats)
    return digests


def text_row_digests(texts: Path) -> list[int]:
    """Return the hashes of the rows of a table of texts, in order."""
    digests: list[int] = answer_digests(pq.read_table(texts, columns=list(KEY))).tolist()
    return digests


def are_apart(parts: Sequence[ResultDigests]) -> bool:
    """Whether no result is in two parts; rarely False because of a hash collision."""
    digests: dict[tuple[str, ...], list[Digests]] = defaultdict(list)
    for part in parts:
        for measure, of_part in part.items():
            digests[measure].append(of_part)
    return all(_are_unique(np.concatenate(of_parts)) for of_parts in digests.values())


def _are_unique(digests: Digests) -> bool:
    return len(np.unique(digests)) == len(digests)
