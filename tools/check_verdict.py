"""Is the verdict the same, whichever harness wrote the log?

    tools/check_verdict DIR

DIR has a `truth.json`: a list of {name, before, after, ...} with paths below DIR. Every pair of
outputs of MMLU-Pro's own scripts is compared unchanged, and again after its answers are written in
the format of NeMo Evaluator (a bundle with letters, and options padded to ten). Verdict and numbers
of the total and of every category must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import forgetmap as fm

MARK = b'"question_id"'
LETTERS = "ABCDEFGHIJ"


def read_outputs(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of model outputs, also of a zipped one; empty for other files."""
    data = path.read_bytes() if path.is_file() else b""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            data = archive.read(archive.namelist()[0])
    if not data.lstrip().startswith(b"[") or MARK not in data[:100_000]:
        return []
    rows: list[dict[str, Any]] = json.loads(data)
    return rows


def bundle_row(index: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer in the format of NeMo Evaluator."""
    padded = [*row["options"], *[""] * (len(LETTERS) - len(row["options"]))]
    options = dict(zip(LETTERS, padded, strict=True))
    listed = "\n".join(f"{letter}) {option}" for letter, option in options.items())
    about = {name: row[name] for name in ("question_id", "question", "category") if name in row}
    return {
        "problem_idx": index,
        "repeat": 0,
        "reward": float(row.get("pred") == row["answer"]),
        "scorer_rewards": {},
        "prompt": f"{row['question']}\n\n{listed}",
        "model_response": row.get("model_outputs") or row.get("generated_text") or "",
        "extracted_answer": row.get("pred"),
        "expected_answer": row["answer"],
        "scoring_details": {"method": "byob_mmlu_pro"},
        "metadata": {**about, "options": padded, "Question": row["question"], **options},
        "tokens": 0,
        "latency_ms": 0.0,
    }


def write_bundle(rows: Sequence[Mapping[str, Any]], folder: Path, model: str) -> Path:
    """Write answers as a bundle of NeMo Evaluator, without a temperature, which the logs lack."""
    folder.mkdir(parents=True)
    with (folder / "results.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(bundle_row(*row)) + "\n" for row in enumerate(rows))
    bundle = {
        "run_id": f"eval-20260101T000000Z-{model}",
        "sdk_version": "0.5.0",
        "timestamp": "2026-01-01T00:00:00+00:00",
        "config": {"model": model, "benchmark": "mmlu_pro"},
        "benchmark": {"name": "mmlu_pro", "samples": len(rows)},
    }
    (folder / f"{bundle['run_id']}.json").write_text(json.dumps(bundle), encoding="utf-8")
    return folder


def group_values(before: Path, after: Path) -> dict[str, dict[str, Any]]:
    """Return all values of the total and of each category."""
    result = json.loads(fm.compare(before, after).to_json())
    return {group["name"]: group for group in (result["total"], *result["categories"])}


def differences(left: object, right: object, path: str = "") -> Iterator[str]:
    """Yield where two JSON values differ, including texts and warnings."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in sorted(left.keys() | right.keys()):
            yield from differences(left.get(name), right.get(name), f"{path}.{name}")
    elif left != right:
        yield f"{path[1:]}: {left!r} as log, {right!r} as bundle"


def check(pair: Mapping[str, Any], before: Path, after: Path, folder: Path) -> list[str]:
    """Return the differences between a pair as log and as bundle."""
    logs = group_values(before, after)
    bundles = [
        write_bundle(read_outputs(path), folder / side, side)
        for side, path in (("before", before), ("after", after))
    ]
    total = logs["total"]
    print(f"{pair['name']}: {total['verdict']}: {total['loss']['low']} to {total['loss']['high']}")
    return list(differences(logs, group_values(bundles[0], bundles[1])))


def check_all(folder: Path) -> int:
    """Check every pair of outputs; return the number of values that differ."""
    pairs = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    failures, checked = 0, 0
    for pair in pairs:
        before, after = folder / pair["before"], folder / pair["after"]
        if not (read_outputs(before) and read_outputs(after)):
            continue
        with tempfile.TemporaryDirectory() as place:
            wrong = check(pair, before, after, Path(place))
        checked += 1
        failures += len(wrong)
        for line in wrong:
            print(f"  {line}")
    if not checked:
        print(f"{folder} has no pair of MMLU-Pro outputs in its truth.json")
        return 1
    return failures


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the pairs of a folder; exit with 1 if any value differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with truth.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["FORGETMAP_CACHE"] = cache
        failures = check_all(options.folder)
    print(f"{failures} differences" if failures else "the same verdict and numbers in both formats")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
