"""Does every pair of logs with known cells give exactly those cells?

    tools/check_truth DIR

DIR has a `truth.json`: a list of {name, before, after, n11, n10, n01, n00, ...} with paths below
DIR and counts by an independent script (n10: right before, wrong after). Without it the logs of
BFCL, EvalPlus, tau2-bench, MT-Bench and promptfoo in DIR are counted by `tools/count_logs.py`,
which does not use forgetmap. Each pair is compared unchanged, and again after its files were
renamed, reordered, split and gzipped. Further optional fields:

    only_before, only_after   items without counterpart
    tasks                     {TASK: {n11, n10, n01, n00}}
    run                       [BEFORE, AFTER]: names of models, if one path has several
    metric, correct_at        as in `forgetmap compare`
    forms                     changed forms to try; all by default
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import forgetmap as fm
from count_logs import count_pairs
from forgetmap.errors import ForgetmapError

CELLS = ("n11", "n10", "n01", "n00")
Change = Callable[[Path, Path], bool]
"""Writes a changed copy of a file; returns whether there was anything to change."""


OPTIONS = ("run", "metric", "correct_at")


def counted(pair: dict[str, Any], before: Path, after: Path) -> dict[str, Any]:
    """Return the cells of a pair as forgetmap counts them, and unpaired items."""
    options = {name: pair[name] for name in OPTIONS if name in pair}
    result = fm.compare(before, after, **options).result
    return {
        **{name: getattr(result.total, name) for name in CELLS},
        "tasks": {task.name: {n: getattr(task, n) for n in CELLS} for task in result.tasks},
        "only_before": result.pairing.only_before,
        "only_after": result.pairing.only_after,
    }


def check(pair: dict[str, Any], before: Path, after: Path) -> str | None:
    """Return what is wrong with a pair, if anything."""
    try:
        found = counted(pair, before, after)
    except ForgetmapError as error:
        return f"{type(error).__name__}: {error.message}"
    wrong = [
        f"{name} is {found[name]}, not {pair[name]}"
        for name in (*CELLS, "only_before", "only_after")
        if name in pair and found[name] != pair[name]
    ]
    wrong += [
        f"{task} is {found['tasks'].get(task)}, not {cells}"
        for task, cells in pair.get("tasks", {}).items()
        if found["tasks"].get(task) != cells
    ]
    return "; ".join(wrong) or None


def renamed(source: Path, target: Path) -> bool:
    """Copy a file under a neutral name."""
    place = sum(1 for _ in target.parent.iterdir()) if target.parent.is_dir() else 0
    shutil.copyfile(source, target.with_name(f"f{place}"))
    return True


def gzipped(source: Path, target: Path) -> bool:
    """Copy a file with gzip."""
    with source.open("rb") as raw, gzip.open(f"{target}.gz", "wb", compresslevel=1) as packed:
        shutil.copyfileobj(raw, packed)
    return True


def reordered(source: Path, target: Path) -> bool:
    """Write the rows in another order."""
    return _rewritten(source, target, lambda rows: [random.Random(1).sample(rows, len(rows))])


def split(source: Path, target: Path) -> bool:
    """Write the rows into two files."""
    return _rewritten(source, target, lambda rows: [rows[::2], rows[1::2]])


def _rewritten(source: Path, target: Path, arrange: Callable[[list[Any]], list[list[Any]]]) -> bool:
    """Write the rows of a file again, into one file or several; files without rows are copied."""
    data = source.read_bytes()
    if zipfile.is_zipfile(source):
        return _rewritten_archive(source, target, arrange)
    rows, is_array = _rows(data)
    parts = arrange(rows) if rows else []
    for place, part in enumerate(parts):
        name = target.name if len(parts) == 1 else f"{target.stem}-{place}{target.suffix}"
        text = json.dumps(part) if is_array else "\n".join(part) + "\n"
        target.with_name(name).write_text(text, encoding="utf-8")
    if not parts:
        shutil.copyfile(source, target)
    return bool(parts)


def _rows(data: bytes) -> tuple[list[Any], bool]:
    """Return lines of objects or elements of an array; empty for a single document."""
    text = data.decode("utf-8")
    if text.lstrip().startswith("["):
        return json.loads(text), True
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        json.loads(lines[0])
    except json.JSONDecodeError:
        return [], False
    return (lines, False) if len(lines) > 1 else ([], False)


def _rewritten_archive(
    source: Path, target: Path, arrange: Callable[[list[Any]], list[list[Any]]]
) -> bool:
    """Write the members in another order, and their rows too; an archive is not split."""
    if len(arrange([1, 2])) > 1:
        return False
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", 8) as new:
        for info in arrange(old.infolist())[0]:
            data = old.read(info)
            rows, is_array = _rows(data) if len(old.infolist()) == 1 else ([], False)
            new.writestr(info.filename, json.dumps(arrange(rows)[0]) if is_array else data)
    return True


CHANGES: dict[str, Change] = {
    "renamed": renamed,
    "reordered": reordered,
    "split": split,
    "gzipped": gzipped,
}


def changed(source: Path, folder: Path, change: Change) -> Path | None:
    """Return a copy of a file or folder with every file changed; None if nothing changed."""
    files = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
    base = source.parent if source.is_file() else source
    folder.mkdir()
    touched = False
    for file in files:
        target = folder / file.relative_to(base)
        target.parent.mkdir(parents=True, exist_ok=True)
        touched = change(file, target) or touched
    if not touched:
        return None
    found = list(folder.iterdir())
    return found[0] if source.is_file() and len(found) == 1 else folder


def known_pairs(folder: Path) -> list[dict[str, Any]]:
    """Return the pairs of `truth.json`, or else those that can be counted."""
    truth = folder / "truth.json"
    if not truth.exists():
        return count_pairs(folder)
    pairs: list[dict[str, Any]] = json.loads(truth.read_text(encoding="utf-8"))
    return pairs


def as_they_are(pair: dict[str, Any], folder: Path, place: Path) -> tuple[Path, Path]:
    """Return both sides of a pair; a log that is paired with itself is copied."""
    before, after = folder / pair["before"], folder / pair["after"]
    if before != after or "run" in pair:
        return before, after
    return before, Path(shutil.copy(after, place))


def check_all(folder: Path) -> int:
    """Check every pair in every form; return the number of failures."""
    failures = 0
    for pair in known_pairs(folder):
        with tempfile.TemporaryDirectory() as place:
            said = {"as it is": check(pair, *as_they_are(pair, folder, Path(place)))}
        for name in pair.get("forms", CHANGES):
            change = CHANGES[name]
            with tempfile.TemporaryDirectory() as place:
                copies = [
                    changed(folder / pair[side], Path(place) / side, change)
                    for side in ("before", "after")
                ]
                if all(copies):
                    said[name] = check(pair, *filter(None, copies))
        failures += sum(wrong is not None for wrong in said.values())
        print(f"{pair['name']}: {', '.join(n for n, wrong in said.items() if wrong is None)}")
        for name, wrong in said.items():
            if wrong is not None:
                print(f"  {name}: {wrong}")
    return failures


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the pairs of a folder; exit with 1 if any fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with truth.json")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["FORGETMAP_CACHE"] = cache
        failures = check_all(given.folder)
    print("all pairs give their cells" if not failures else f"{failures} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
