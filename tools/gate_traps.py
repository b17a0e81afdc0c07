"""Six releases that mislead a gate, and what is said of each.

    tools/gate_traps DIR
    tools/gate_traps DIR --nel VENV/bin/nel

DIR has a `truth.json`: a list of {name, before, after, ...} with paths below DIR; the first pair of
outputs of MMLU-Pro's own scripts is used. Each release is written in the format of NeMo Evaluator,
so that `nel compare` and `nel gate` (nemo-evaluator 0.3.0, Python 3.12) can be run on the same
files. Each is decided twice, with accept = "items" and "net". Exits with 1 if forgetmap is wrong
about any of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from check_verdict import bundle_row, read_outputs, write_bundle
from forgetmap.gate import Accept, run_gate

Row = dict[str, Any]
FAILURES, MISSING = 48, 258
MARGIN = 0.02
POLICY = "version: 1\ndefaults:\n  tier: critical\n  max_drop: 0.02\n"
"""The same policy for nel: nothing may fall by more than two points."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A release that misleads a gate.

    Attributes:
        name: how it was made.
        truth: the true change.
        right: right decisions with accept = "items", and with "net" after a slash.
        before: rows of the bundle before.
        after: rows of the bundle after.
        options: options of the gate.
    """

    name: str
    truth: str
    right: tuple[str, ...]
    before: Sequence[Row]
    after: Sequence[Row]
    options: Mapping[str, Any] = field(default_factory=dict)


def make_traps(before: Sequence[Row], after: Sequence[Row], seed: int = 0) -> Iterator[Trap]:
    """Yield all six, from the outputs of two models.

    Args:
        before: rows of MMLU-Pro's scripts.
        after: rows of a model that gained more than it lost.
        seed: random seed.
    """
    random = np.random.default_rng(seed)
    rows = [bundle_row(*row) for row in enumerate(before)]
    order = random.permutation(len(before))
    moved = [bundle_row(place, before[index]) for place, index in enumerate(order)]
    yield Trap("rows in another order", "nothing lost", ("PASS / PASS",), rows, moved)
    yield Trap(
        f"{FAILURES} infrastructure failures",
        "nothing lost",
        ("PASS / PASS", "INCONCLUSIVE / INCONCLUSIVE"),
        rows,
        _fail(rows, random),
    )
    right = [index for index, row in enumerate(rows) if row["reward"]]
    gone = set(random.choice(right, MISSING, replace=False).tolist())
    left = [row for index, row in enumerate(rows) if index not in gone]
    yield Trap(
        f"{MISSING} items it would fail are missing",
        f"{len(gone) / len(rows):.1%} unknown",
        ("INCONCLUSIVE / INCONCLUSIVE",),
        rows,
        left,
    )
    yield Trap(
        "noise, two repeats",
        "nothing lost",
        ("PASS / PASS", "INCONCLUSIVE / PASS"),
        *_noise(rows, random),
    )
    judged = [_judge(row, 0.9) for row in rows]
    low = random.random(len(rows)) < 0.3
    fallen = [_judge(row, 0.3 if is_low else 0.9) for row, is_low in zip(rows, low, strict=True)]
    yield Trap(
        "judge scores .9 to .3 on 30 %",
        "30 % lost",
        ("FAIL / FAIL",),
        judged,
        fallen,
        {"selected": False},  # all are right before, though nobody chose them
    )
    later = [bundle_row(*row) for row in enumerate(after)]
    cells = _cells(before, after)
    yield Trap(
        "forgetting under a larger gain",
        f"{cells[1, 0]:,} wrong after, {cells[0, 1]:,} gained",
        ("INCONCLUSIVE / PASS",),
        rows,
        later,
    )


def _fail(rows: Sequence[Row], random: np.random.Generator) -> list[Row]:
    """Replace some answers by errors: the harness grades them 0 and names the kind of error."""
    failed = set(random.choice(len(rows), FAILURES, replace=False).tolist())
    error = {"error_category": "infrastructure", "error": "connection reset"}
    return [
        {**row, "reward": 0.0, "model_response": "", "extracted_answer": None,
         "scoring_details": {**row["scoring_details"], **error}}
        if index in failed
        else row
        for index, row in enumerate(rows)
    ]  # fmt: skip


def _noise(rows: Sequence[Row], random: np.random.Generator) -> tuple[list[Row], list[Row]]:
    """Draw two answers per item on both sides, with the same probability of being right."""
    chance = random.beta(0.5, 0.5, len(rows))

    def answers() -> list[Row]:
        return [
            _open_ended(row, float(random.random() < p), repeat)
            for row, p in zip(rows, chance, strict=True)
            for repeat in (0, 1)
        ]

    return answers(), answers()


def _judge(row: Row, score: float) -> Row:
    graded = _open_ended(row, score, 0)
    return {**graded, "scoring_details": {"method": "llm_judge"}}


def _open_ended(row: Row, reward: float, repeat: int) -> Row:
    """Return an answer without options, of which only the score is known."""
    names = ("question_id", "question", "category")
    metadata = {name: row["metadata"][name] for name in names if name in row["metadata"]}
    return {
        **row,
        "repeat": repeat,
        "reward": reward,
        "prompt": row["metadata"]["question"],
        "model_response": "",
        "extracted_answer": None,
        "expected_answer": "",
        "scoring_details": {"method": "exact"},
        "metadata": metadata,
    }


def _cells(before: Sequence[Row], after: Sequence[Row]) -> Counter[tuple[int, int]]:
    """Return how many items changed in which way, by their ids."""
    first, second = (
        {row["question_id"]: int(row.get("pred") == row["answer"]) for row in rows}
        for rows in (before, after)
    )
    return Counter((first[item], second[item]) for item in first.keys() & second.keys())


def write_release(trap: Trap, folder: Path) -> tuple[Path, Path]:
    """Write both bundles of a release."""
    sides = []
    for side, rows in (("before", trap.before), ("after", trap.after)):
        path = write_bundle([], folder / side / "mmlu_pro", side)
        (path / "results.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
        (bundle,) = path.glob("eval-*.json")
        content = json.loads(bundle.read_text(encoding="utf-8"))
        rewards = np.array([row["reward"] for row in rows])
        error = 1.96 * rewards.std() / len(rewards) ** 0.5
        mean = float(rewards.mean())
        content["benchmark"] = {
            "name": "mmlu_pro",
            "samples": len(rows),
            "scores": {
                "mean_reward": {"value": mean, "ci_lower": mean - error, "ci_upper": mean + error}
            },
        }
        bundle.write_text(json.dumps(content), encoding="utf-8")
        sides.append(path)
    return sides[0], sides[1]


def ask_nel(nel: Path, before: Path, after: Path, folder: Path) -> str:
    """Return the output of `nel compare` and `nel gate` on the same files."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    commands: dict[str, list[str | Path]] = {
        "compare": ["--max-drop", str(MARGIN), "--no-report"],
        "gate": ["--policy", policy, "--no-report"],
    }
    words = []
    for command, options in commands.items():
        sides = (before, after) if command == "compare" else (before.parent, after.parent)
        report = folder / f"{command}.json"
        subprocess.run(
            [nel, command, *sides, "-o", report, *options], capture_output=True, check=False
        )
        words.append(_nel_words(report))
    return ", ".join(words)


def _nel_words(report: Path) -> str:
    if not report.exists():
        return "no report"
    content = json.loads(report.read_text(encoding="utf-8"))
    content = content[0] if isinstance(content, list) else content
    verdict = str(content.get("verdict") or content.get("status") or "?")
    flips = (content.get("flip_report") or {}).get("summary")
    return verdict if flips is None else f"{verdict} ({flips['n_regressions']:,} regressions)"


def judge_traps(
    traps: Iterator[Trap], folder: Path, nel: Path | None = None
) -> Iterator[tuple[Trap, str, str, str | None]]:
    """Yield each trap with our decision, our headline, and the output of nel."""
    for number, trap in enumerate(traps):
        place = folder / str(number)
        before, after = write_release(trap, place)
        kinds: tuple[Accept, ...] = get_args(Accept)
        results = [run_gate(before, after, accept=kind, **trap.options) for kind in kinds]
        answer = None if nel is None else ask_nel(nel, before, after, place)
        status = " / ".join(result.status for result in results)
        yield trap, status, results[0].headline, answer


def make_table(rows: Sequence[tuple[Trap, str, str, str | None]]) -> str:
    """Return all decisions as a Markdown table."""
    heads = ["release", "truth", "forgetmap gate, items / net", "nel compare, nel gate"]
    columns = heads if rows[0][3] is not None else heads[:-1]
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for trap, status, _, nel in rows:
        mark = status if status in trap.right else f"{status} (WRONG)"
        lines.append(f"| {' | '.join([trap.name, trap.truth, mark, nel or ''][: len(columns)])} |")
    return "\n".join(lines)


def find_pair(folder: Path) -> tuple[list[Row], list[Row]] | None:
    """Return the outputs of the first pair that is of MMLU-Pro."""
    pairs: list[Mapping[str, Any]] = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    for pair in pairs:
        before, after = (read_outputs(folder / pair[side]) for side in ("before", "after"))
        if before and after:
            return before, after
    return None


def main(arguments: Sequence[str] | None = None, show: Callable[[str], None] = print) -> None:
    """Print the table; exit with 1 if forgetmap is wrong about any release."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with truth.json")
    parser.add_argument("--nel", type=Path, help="the nel command of nemo-evaluator 0.3.0")
    options = parser.parse_args(arguments)
    pair = find_pair(options.folder)
    if pair is None:
        parser.error(f"{options.folder} has no pair of MMLU-Pro outputs in its truth.json")
    with tempfile.TemporaryDirectory() as place:
        os.environ["FORGETMAP_CACHE"] = str(Path(place) / "cache")
        rows = list(judge_traps(make_traps(*pair), Path(place), options.nel))
    show(make_table(rows))
    for trap, _, headline, _ in rows:
        show(f"\n{trap.name}: {headline}")
    sys.exit(any(status not in trap.right for trap, status, _, _ in rows))


if __name__ == "__main__":
    main()
