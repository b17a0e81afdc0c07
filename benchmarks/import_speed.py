"""How fast are logs read? lm-eval samples against the loop people write for them.

    .venv/bin/python benchmarks/import_speed.py                 1 GiB, median of 3
    .venv/bin/python benchmarks/import_speed.py --size 64 --rounds 1

Four kinds of rows, each a quarter of the bytes (a fixed mix, not tuned to any contender): letters
after 5 examples like MMLU, endings after 10 like HellaSwag, texts after 25 like ARC, and generated
answers with two filters, like GSM8K with 5. Multiple-choice rows repeat their prompt in each of
four requests; lengths are like those of the real data, and rows have the format of lm-eval 0.4.9.
The loop is `json.loads` on every line, of which only id, hash and metric are kept; two more
contenders show what is possible: the loop that also writes texts to Parquet, and the JSON reader of
DuckDB on all cores, which reads the fields and documents but computes no identity. Ours reads the
same files to Parquet, once scores with identity (hashes of question, options, right answer and
prompt), once with all texts, in one process. Every contender runs in a separate process, in turn;
seconds are from the call to the result, imports excluded on all sides, and rates are by processor
seconds. Memory is the peak resident size of a contender, sampled ten times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results"
TASKS = ("mmlu_anatomy", "hellaswag", "arc_challenge", "gsm8k")
"""Tasks with equal shares of all bytes."""
MOST_MEMORY = 1.5
BARS = {"scores": 1.2, "texts": 0.5}
"""Required speed relative to the loop, by processor seconds."""
ROWS_OF_LOOP = 8_192


class Writer:
    """Generates rows like those of lm-eval."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._random.choices(letters, k=self._random.randint(2, 9)))
            for _ in range(5_000)
        ]

    def text(self, low: int, high: int) -> str:
        """Return some words."""
        return " ".join(self._random.choices(self._words, k=self._random.randint(low, high)))

    def rows(self, task: str, doc_id: int) -> list[dict[str, Any]]:
        """Return the rows of one document."""
        made = {
            "mmlu_anatomy": self._letters,
            "hellaswag": self._endings,
            "arc_challenge": self._texts,
            "gsm8k": self._worked,
        }
        return made[task](doc_id)

    def _letters(self, doc_id: int) -> list[dict[str, Any]]:
        """Return a row like MMLU: options in the prompt, letters as continuations."""
        shots = "".join(self._shown(*self._question()) + " B\n\n" for _ in range(5))
        question, choices = self._question()
        gold = self._random.randrange(4)
        doc = {"question": question, "subject": "anatomy", "choices": choices, "answer": gold}
        prompt = shots + self._shown(question, choices)
        return [self._chosen(doc_id, doc, prompt, [" A", " B", " C", " D"], gold, ["acc"])]

    def _endings(self, doc_id: int) -> list[dict[str, Any]]:
        """Return a row like HellaSwag: the options are the continuations."""
        shots = "".join(self.text(50, 70) + "\n\n" for _ in range(10))
        start, endings = self.text(15, 35), [self.text(8, 16) for _ in range(4)]
        gold = self._random.randrange(4)
        query = f"Roof shingle removal: {start}"
        doc = {
            "ind": doc_id,
            "activity_label": "Roof shingle removal",
            "ctx": start,
            "endings": endings,
            "label": str(gold),
            "query": query,
            "choices": endings,
            "gold": gold,
        }
        continuations = [f" {ending}" for ending in endings]
        metrics = ["acc", "acc_norm"]
        return [self._chosen(doc_id, doc, shots + query, continuations, gold, metrics)]

    def _texts(self, doc_id: int) -> list[dict[str, Any]]:
        """Return a row like ARC."""
        shots = "".join(
            f"Question: {self.text(15, 40)}\nAnswer: {self.text(2, 10)}\n\n" for _ in range(25)
        )
        question, choices = self._question()
        gold = self._random.randrange(4)
        doc = {
            "id": f"Mercury_{doc_id}",
            "question": question,
            "choices": {"text": choices, "label": list("ABCD")},
            "answerKey": "ABCD"[gold],
        }
        prompt = f"{shots}Question: {question}\nAnswer:"
        continuations = [f" {choice}" for choice in choices]
        metrics = ["acc", "acc_norm"]
        return [self._chosen(doc_id, doc, prompt, continuations, gold, metrics)]

    def _chosen(
        self,
        doc_id: int,
        doc: dict[str, Any],
        prompt: str,
        continuations: list[str],
        gold: int,
        metrics: list[str],
    ) -> dict[str, Any]:
        lls = [-self._random.random() * 20 for _ in continuations]
        pairs = [[str(ll), "False"] for ll in lls]
        row = {
            "doc_id": doc_id,
            "doc": doc,
            "target": str(gold),
            "arguments": {
                f"gen_args_{i}": {"arg_0": prompt, "arg_1": each}
                for i, each in enumerate(continuations)
            },
            "resps": [[pair] for pair in pairs],
            "filtered_resps": pairs,
        }
        lengths = {"acc": [1] * len(lls), "acc_norm": [len(each) - 1 for each in continuations]}
        right = {}
        for metric in metrics:
            values = [ll / length for ll, length in zip(lls, lengths[metric], strict=True)]
            right[metric] = float(values.index(max(values)) == gold)
        return _finished(row, "none", right)

    def _worked(self, doc_id: int) -> list[dict[str, Any]]:
        """Return two rows like GSM8K, one per filter."""
        shots = "".join(
            f"Question: {self.text(30, 60)}\nAnswer: {self._solution()}\n\n" for _ in range(5)
        )
        doc = {"question": self.text(30, 60), "answer": self._solution()}
        response = self._solution()
        said = response.rpartition(" ")[2]
        row = {
            "doc_id": doc_id,
            "doc": doc,
            "target": doc["answer"],
            "arguments": {
                "gen_args_0": {
                    "arg_0": f"{shots}Question: {doc['question']}\nAnswer:",
                    "arg_1": {"until": ["Question:", "</s>"], "do_sample": False},
                }
            },
            "resps": [[response]],
        }
        right = float(said == doc["answer"].rpartition(" ")[2])
        return [
            _finished({**row, "filtered_resps": [answer]}, scorer, {"exact_match": right})
            for scorer, answer in (("strict-match", said), ("flexible-extract", said))
        ]

    def _question(self) -> tuple[str, list[str]]:
        return self.text(20, 60), [self.text(2, 14) for _ in range(4)]

    def _shown(self, question: str, choices: list[str]) -> str:
        lines = "\n".join(f"{letter}. {c}" for letter, c in zip("ABCD", choices, strict=True))
        return f"{question}\n{lines}\nAnswer:"

    def _solution(self) -> str:
        steps = "\n".join(self.text(10, 20) for _ in range(3))
        return f"{steps}\n#### {self._random.randrange(20)}"


def _finished(row: dict[str, Any], scorer: str, scores: dict[str, float]) -> dict[str, Any]:
    """Add names, hashes and the score."""
    prompt = row["arguments"]["gen_args_0"]["arg_0"]
    hashed = {"doc": json.dumps(row["doc"]), "prompt": prompt, "target": row["target"]}
    return {
        **row,
        "filter": scorer,
        "metrics": list(scores),
        **{f"{name}_hash": sha256(text.encode()).hexdigest() for name, text in hashed.items()},
        **scores,
    }


def generate(folder: Path, mib: int) -> None:
    """Write the files unless they exist; one filter after the other, like lm-eval."""
    done = folder / "done.txt"
    if done.exists() and done.read_text() == str(mib):
        return
    folder.mkdir(parents=True, exist_ok=True)
    writer = Writer(7)
    for task in TASKS:
        path = folder / f"samples_{task}_2026-01-02T03-04-05.678901.jsonl"
        blocks: list[list[str]] = [[], []]
        left, doc_id = (mib << 20) // len(TASKS), 0
        while left > 0:
            for block, row in zip(blocks, writer.rows(task, doc_id), strict=False):
                block.append(json.dumps(row, ensure_ascii=False) + "\n")
                left -= len(block[-1])
            doc_id += 1
        with path.open("w", encoding="utf-8") as file:
            file.writelines(line for block in blocks for line in block)
    done.write_text(str(mib))


def run_loop(folder: Path) -> Callable[[], int]:
    """Run the usual loop: every line parsed, three values kept."""

    def call() -> int:
        kept = []
        for path in sorted(folder.glob("*.jsonl")):
            with path.open(encoding="utf-8") as file:
                for line in file:
                    row = json.loads(line)
                    kept.append((row["doc_id"], row["doc_hash"], row[row["metrics"][0]]))
        return len(kept)

    return call


def run_text_loop(folder: Path) -> Callable[[], int]:
    """Run the loop that also writes prompt, question and response to Parquet."""
    import pandas as pd  # noqa: F401  # pyarrow imports it at its first array
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ("task", "filter", "doc", "prompt", "response")
    schema = pa.schema(
        [("doc_id", pa.int64()), ("score", pa.float64()), *((name, pa.string()) for name in texts)]
    )

    def call() -> int:
        count, rows = 0, []
        with (
            tempfile.TemporaryDirectory() as target,
            pq.ParquetWriter(
                f"{target}/texts.parquet", schema, compression="zstd", compression_level=1
            ) as writer,
        ):
            for path in sorted(folder.glob("*.jsonl")):
                with path.open(encoding="utf-8") as file:
                    for line in file:
                        rows.append(_with_texts(path.stem, json.loads(line)))
                        if len(rows) == ROWS_OF_LOOP:
                            writer.write_table(pa.Table.from_pylist(rows, schema))
                            count, rows = count + len(rows), []
            writer.write_table(pa.Table.from_pylist(rows, schema))
        return count + len(rows)

    return call


def _with_texts(task: str, row: dict[str, Any]) -> dict[str, Any]:
    response = row["resps"][0][0]
    return {
        "task": task,
        "doc_id": row["doc_id"],
        "filter": row["filter"],
        "score": float(row[row["metrics"][0]]),
        "doc": json.dumps(row["doc"]),
        "prompt": row["arguments"]["gen_args_0"]["arg_0"],
        "response": response if isinstance(response, str) else None,
    }


def run_duckdb(folder: Path) -> Callable[[], int]:
    """Run the JSON reader of DuckDB on all cores: fields and documents, no identity."""
    import duckdb

    def call() -> int:
        names = [str(path) for path in sorted(folder.glob("*.jsonl"))]
        rows = duckdb.connect().sql(
            "select doc_id, doc_hash, doc, filter, acc, exact_match from read_json(?, "
            "columns={doc_id: 'BIGINT', doc_hash: 'VARCHAR', doc: 'JSON', filter: 'VARCHAR', "
            "acc: 'DOUBLE', exact_match: 'DOUBLE'}, format='newline_delimited')",
            params=[names],
        )
        return len(rows.to_arrow_table())

    return call


def run_ours(folder: Path, *, texts: bool) -> Callable[[], int]:
    """Read with forgetmap into a run folder in Parquet, with identity."""
    import pandas as pd  # noqa: F401  # pyarrow imports it at its first array

    from forgetmap.sources.logs import Reading, open_logs, recognise
    from forgetmap.sources.registry import adapters

    adapters()  # imports them

    def call() -> int:
        reading = Reading(texts=texts, cached=False)
        run = open_logs(folder, recognise(folder), reading)
        return len(run.scores.select("task").collect())

    return call


CONTENDERS: dict[str, Callable[[Path], Callable[[], int]]] = {
    "loop": run_loop,
    "loop-texts": run_text_loop,
    "duckdb": run_duckdb,
    "scores": lambda folder: run_ours(folder, texts=False),
    "texts": lambda folder: run_ours(folder, texts=True),
}


def measure(name: str, folder: Path) -> dict[str, float]:
    """Return seconds and rows of one contender in this process."""
    call = CONTENDERS[name](folder)
    return timed(call)


def timed(call: Callable[[], int]) -> dict[str, float]:
    """Return wall-clock and processor seconds of a call, over all processes."""
    before, started = cpu_seconds(), time.perf_counter()
    rows = call()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "cpu": cpu_seconds() - before, "rows": rows}


def cpu_seconds() -> float:
    """Return the processor seconds of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def in_own_process(name: str, folder: Path, script: str = __file__) -> dict[str, float]:
    """Run a contender in a new process with an empty cache, and measure peak memory."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, script, "--contender", name, "--data", str(folder)]
        process = psutil.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "FORGETMAP_CACHE": cache},
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident_bytes(process))
            time.sleep(0.1)
        output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{name} failed")
    return {**json.loads(output), "gib": peak / (1 << 30)}


def resident_bytes(process: psutil.Process) -> int:
    """Return the resident size of a process and its children."""
    total = 0
    try:
        for member in (process, *process.children(recursive=True)):
            total += member.memory_info().rss
    except psutil.Error:  # one of them has just ended
        return total
    return total


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=1024, help="MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contender", choices=CONTENDERS)
    parser.add_argument("--data", type=Path, default=DATA / "lm_eval")
    args = parser.parse_args()
    if args.contender:
        print(json.dumps(measure(args.contender, args.data)))
        return
    generate(args.data, args.size)
    rounds = [{n: in_own_process(n, args.data) for n in CONTENDERS} for _ in range(args.rounds)]
    report(rounds, args.size)


def report(rounds: list[dict[str, dict[str, float]]], mib: int) -> None:
    """Print medians, and whether each requirement is met."""
    seconds = {n: statistics.median(r[n]["seconds"] for r in rounds) for n in CONTENDERS}
    memory = {n: max(r[n]["gib"] for r in rounds) for n in CONTENDERS}
    cpu = {n: statistics.median(r[n]["cpu"] for r in rounds) for n in CONTENDERS}
    found = {}
    for name in CONTENDERS:
        times = cpu["loop"] / cpu[name]
        bar = BARS.get(name)
        verdict = "" if bar is None else f"  asked {bar}x: {'yes' if times >= bar else 'NO'}"
        fits = "" if memory[name] <= MOST_MEMORY else "  TOO MUCH MEMORY"
        print(
            f"{name:10} {seconds[name]:7.2f} s  (CPU {cpu[name]:6.2f})  "
            f"{mib / seconds[name]:6.0f} MiB/s  {times:5.2f}x  {memory[name]:5.2f} GiB  "
            f"{rounds[0][name]['rows']:,.0f} rows{verdict}{fits}"
        )
        found[name] = {
            "seconds": seconds[name],
            "cpu": cpu[name],
            "times": times,
            "gib": memory[name],
        }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "import_speed.json").write_text(json.dumps({"mib": mib, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
