"""How fast is each format of logs read? Ours against a `json.loads` loop over the same bytes.

    .venv/bin/python benchmarks/import_formats.py                     256 MiB of each format
    .venv/bin/python benchmarks/import_formats.py --size 32 --only verifiers

lm-eval, plain JSON lines, EvalScope and verifiers are one file of lines each, Inspect is a folder
of `.eval` archives; texts are made up and about as long as real ones. The loop is one process:
every line (for Inspect, every sample in its archive) through `json.loads`, without storing
anything. Ours ends with a run whose scores and identity are counted, and again with all texts, in
one process. Every contender runs in a new process, in turn; seconds are from the call to the
result, without imports, and rates are by processor seconds. Memory is the peak resident size of a
contender, sampled ten times a second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from import_speed import DATA, RESULTS, Writer, in_own_process, timed

SAMPLES_PER_ARCHIVE = 2_000
Rows = Iterator[dict[str, Any]]


def lm_eval_rows(writer: Writer) -> Rows:
    """Yield multiple choice after five examples, as in `import_speed`."""
    number = 0
    while True:
        yield from writer.rows("mmlu_anatomy", number)
        number += 1


def plain_rows(writer: Writer) -> Rows:
    """Yield a table with question, options and response."""
    number = 0
    while True:
        number += 1
        yield {
            "task": f"task {number % 20}",
            "item": f"item-{number}",
            "score": number % 2,
            "question": writer.text(20, 60),
            "gold": writer.text(1, 4),
            "answer": writer.text(1, 4),
            "response": writer.text(60, 200),
        }


def evalscope_rows(writer: Writer) -> Rows:
    """Yield reviews of multiple choice, in the format of EvalScope 1.8."""
    number = 0
    while True:
        options = "\n".join(f"{letter}) {writer.text(2, 14)}" for letter in "ABCD")
        answer = "ABCD"[number % 4]
        content = f"{writer.text(60, 200)}\nANSWER: {answer}"
        yield {
            "index": number,
            "target": "B",
            "messages": [
                {"id": "a", "role": "user", "content": f"{writer.text(20, 60)}\n\n{options}"},
                {
                    "id": "b",
                    "role": "assistant",
                    "content": content,
                    "model": "m",
                    "perf_metrics": {"input_tokens": 90, "output_tokens": 150},
                },
            ],
            "sample_score": {
                "score": {
                    "value": {"acc": float(answer == "B")},
                    "extracted_prediction": answer,
                    "prediction": content,
                    "explanation": None,
                    "metadata": {},
                    "main_score_name": None,
                },
                "sample_id": number,
                "group_id": number,
                "sample_metadata": {},
            },
        }
        number += 1


def verifiers_rows(writer: Writer) -> Rows:
    """Yield rollouts, four per example, in the format of verifiers 0.3."""
    number = 0
    while True:
        question, answer = writer.text(20, 60), writer.text(1, 4)
        for _ in range(4):
            yield {
                "example_id": number,
                "prompt": [{"role": "user", "content": question}],
                "completion": [{"role": "assistant", "content": writer.text(100, 400)}],
                "answer": answer,
                "reward": float(number % 2),
                "info": {},
                "error": None,
                "is_truncated": False,
                "metrics": {"correct": float(number % 2), "num_turns": 1.0},
                "token_usage": {"input_tokens": 90.0, "output_tokens": 300.0},
                "stop_condition": "stop",
            }
        number += 1


def inspect_samples(writer: Writer) -> Rows:
    """Yield samples of multiple choice with their events, in the format of Inspect."""
    number = 0
    while True:
        number += 1
        question, options = writer.text(20, 60), [writer.text(2, 14) for _ in range(4)]
        answer = "ABCD"[number % 4]
        content = f"{writer.text(60, 200)}\nANSWER: {answer}"
        messages = [
            {"role": "user", "content": question},
            {"role": "assistant", "content": content},
        ]
        yield {
            "id": number,
            "epoch": 1,
            "input": question,
            "choices": options,
            "target": "B",
            "messages": messages,
            "output": {"model": "m", "choices": [{"message": messages[1]}]},
            "scores": {"choice": {"value": "C" if answer == "B" else "I", "answer": answer}},
            "metadata": {},
            "model_usage": {"m": {"input_tokens": 90, "output_tokens": 150, "total_tokens": 240}},
            "events": [{"event": "model", "input": messages, "output": content}],
        }


def write_lines(path: Path, rows: Rows, size: int) -> None:
    """Write one file of lines of about this size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        left = size
        while left > 0:
            left -= file.write(json.dumps(next(rows)) + "\n")


def write_archives(folder: Path, rows: Rows, size: int) -> None:
    """Write archives of samples and their summaries, of about this size before compression."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while size > 0:
        path = folder / f"task{number}.eval"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            summaries = []
            for sample in (next(rows) for _ in range(SAMPLES_PER_ARCHIVE)):
                name = f"samples/{sample['id']}_epoch_1.json"
                archive.writestr(name, data := json.dumps(sample))
                size -= len(data)
                wanted = ("id", "epoch", "input", "choices", "target", "scores", "metadata")
                summaries.append({field: sample[field] for field in wanted})
            header = {
                "status": "success",
                "eval": {"task": f"task{number}", "model": "m", "created": "2026-01-01T00:00:00"},
            }
            archive.writestr("summaries.json", json.dumps(summaries))
            archive.writestr("header.json", json.dumps(header))
        number += 1


LINES: dict[str, tuple[str, Callable[[Writer], Rows]]] = {
    "lm-eval": ("samples_mmlu_anatomy_2026-01-02T03-04-05.678901.jsonl", lm_eval_rows),
    "plain JSONL": ("table.jsonl", plain_rows),
    "EvalScope": ("reviews/m/quiz_default.jsonl", evalscope_rows),
    "verifiers": ("env--m/results.jsonl", verifiers_rows),
}
FORMATS = (*LINES, "Inspect")
CONTENDERS = ("loop", "scores", "texts")


def generate(name: str, folder: Path, mib: int) -> None:
    """Write the files of a format unless they exist."""
    done = folder / ".size"
    if done.exists() and done.read_text() == str(mib):
        return
    rows = inspect_samples if name == "Inspect" else LINES[name][1]
    if name == "Inspect":
        write_archives(folder, rows(Writer(7)), mib << 20)
    else:
        write_lines(folder / LINES[name][0], rows(Writer(7)), mib << 20)
    done.write_text(str(mib))


def unpacked(folder: Path) -> Iterator[bytes]:
    """Yield every line of a file, or every sample of an archive."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".jsonl", ".eval"}):
        if path.suffix == ".jsonl":
            with path.open("rb") as file:
                yield from file
            continue
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("samples/"):
                    yield archive.read(name)


def run_loop(folder: Path) -> Callable[[], int]:
    """Run everything through `json.loads`, without storing anything."""

    def call() -> int:
        count = 0
        for data in unpacked(folder):
            json.loads(data)
            count += 1
        return count

    return call


def run_ours(folder: Path, *, texts: bool) -> Callable[[], int]:
    """Read with forgetmap, up to a run whose rows are counted."""
    import pandas as pd  # noqa: F401  # pyarrow imports it at its first array

    from forgetmap.sources.logs import Reading
    from forgetmap.sources.open import open_run
    from forgetmap.sources.registry import adapters

    adapters()  # imports them

    def call() -> int:
        reading = Reading(texts=texts, cached=False)
        run = open_run(folder, reading=reading)
        return len(run.scores.select("task").collect())

    return call


def measure(contender: str, folder: Path) -> dict[str, float]:
    """Return seconds and results of one contender in this process."""
    if contender == "loop":
        return timed(run_loop(folder))
    return timed(run_ours(folder, texts=contender == "texts"))


def report(name: str, rounds: list[dict[str, dict[str, float]]], mib: float) -> dict[str, Any]:
    """Print the lines of a format."""
    seconds = {who: statistics.median(r[who]["seconds"] for r in rounds) for who in CONTENDERS}
    cpu = {who: statistics.median(r[who]["cpu"] for r in rounds) for who in CONTENDERS}
    samples = rounds[0]["loop"]["rows"]
    results: dict[str, Any] = {}
    for who in CONTENDERS:
        times, gib = cpu["loop"] / cpu[who], max(r[who]["gib"] for r in rounds)
        print(
            f"{name:12} {who:18} {seconds[who]:7.2f} s (CPU {cpu[who]:6.2f}) "
            f"{mib / seconds[who]:7.0f} MiB/s "
            f"{samples / seconds[who]:10,.0f} rows/s {times:6.2f}x {gib:5.2f} GiB"
        )
        results[who] = {"seconds": seconds[who], "cpu": cpu[who], "times": times, "gib": gib}
    return {"mib": mib, "rows": samples, **results}


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=256, help="MiB of each format")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=FORMATS)
    parser.add_argument("--contender", choices=CONTENDERS)
    parser.add_argument("--data", type=Path, default=DATA / "formats")
    args = parser.parse_args()
    if args.contender:
        print(json.dumps(measure(args.contender, args.data)))
        return
    results = {}
    for name in args.only or FORMATS:
        folder = args.data / name.replace(" ", "-")
        generate(name, folder, args.size)
        rounds = [
            {who: in_own_process(who, folder, script=__file__) for who in CONTENDERS}
            for _ in range(args.rounds)
        ]
        mib = sum(map(len, unpacked(folder))) / (1 << 20)
        results[name] = report(name, rounds, mib)
        sys.stdout.flush()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "import_formats.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
