"""How fast responses are scored: rule metrics of CapTrack on many made-up responses.

    python benchmarks/drift_speed.py [--responses N] [--reference N] [--scaling N] [--quick N]

1. Cost per scorer: one process, one sample after the other.
2. The reference: a plain loop over samples, one scorer after the other, against which every value
   of the streamed measurement is compared row by row.
3. The quick profile, with drift of two models.
4. One process and two in turn, the best of three.
5. The whole: a run folder of N responses, streamed by two processes; peak memory of all processes
   together.

Responses are like those of models: short and long, right and wrong, with and without steps, lists
and code, a tenth of them in other scripts. They are drawn from a seed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.capabilities.api import drift
from forgetmap.capabilities.batches import as_scorer_input
from forgetmap.capabilities.measure import Measuring, measure
from forgetmap.capabilities.taxonomy import load_taxonomy
from forgetmap.records.folder import MANIFEST, read_run
from forgetmap.records.manifest import ModelInfo, RunInfo
from forgetmap.records.run import Run
from forgetmap.records.schema import SCORES, TEXTS, scores_schema, texts_schema
from forgetmap.scoring.registry import find_scorer, needs_of, signature_of

Row = dict[str, Any]
WORDS = str.split(
    "the model answers that rivers flow into seas because water moves down and people live beside "
    "them while ships carry grain and salt between towns which grew around old bridges and markets"
)
OTHER = ("这条河流经过许多城市", "然后注入大海", "Река", "течёт", "через", "город", "к", "морю")
CHUNK = 50_000
ROUNDS = 3


def prose(rng: random.Random, words: int) -> str:
    source = OTHER if rng.random() < 0.1 else WORDS
    text = [rng.choice(source) for _ in range(words)]
    for place in range(12, len(text), 14):
        text[place] += "."
        if place + 1 < len(text):
            text[place + 1] = text[place + 1].capitalize()
    return " ".join(text)


def number(rng: random.Random, _: int) -> Row:
    gold = rng.randrange(5_000)
    said = gold if rng.random() < 0.7 else gold + 1
    ends = (
        f"Answer: {said:,}",
        f"**Answer:** {said}",
        f"So there are {said} of them.",
        f"${said}$",
    )
    steps = "\n".join(f"Step {k}: {prose(rng, 15)} = {rng.randrange(99)}" for k in range(1, 4))
    return {"gold": str(gold), "response": f"{steps}\n{rng.choice(ends)}"}


def option(rng: random.Random, _: int) -> Row:
    options = [prose(rng, 4) + f" {k}" for k in range(rng.choice((4, 10)))]
    place = rng.randrange(len(options))
    letter = "ABCDEFGHIJ"[rng.randrange(len(options))]
    said = (letter, f"Answer: {letter}", f"{prose(rng, 40)}\nThe answer is {letter}.")
    return {"options": options, "gold": options[place], "response": rng.choice(said)}


def maths(rng: random.Random, _: int) -> Row:
    a, b = rng.randrange(1, 40), rng.randrange(2, 40)
    said = rng.choice((rf"\boxed{{\frac{{{a}}}{{{b}}}}}", f"Answer: {a}/{b}", f"Answer: {a}"))
    return {"gold": rf"\frac{{{a}}}{{{b}}}", "response": f"{prose(rng, 60)}\n{said}"}


def alias(rng: random.Random, n: int) -> Row:
    names = [f"Name {rng.randrange(500)}", f"Other {n}"]
    said = f"{prose(rng, 20)} {rng.choice(names)} {prose(rng, 5)}"
    return {"gold": names[0], "response": said, "material": {"gold": names}}


def passage(rng: random.Random, _: int) -> Row:
    text = prose(rng, 120)
    word = rng.choice(text.split())
    material = {"context": [text], "gold": {"answer": word}}
    return {"gold": word, "response": f"Answer: {word}", "material": material}


def yes_no(rng: random.Random, _: int) -> Row:
    said = rng.choice(("Answer: Yes", "No, it does not.", f"{prose(rng, 30)}\nAnswer: no"))
    return {"gold": "true", "response": said}


def needle(rng: random.Random, _: int) -> Row:
    gold = str(rng.randrange(10**6, 10**7))
    said = gold if rng.random() < 0.8 else "unknown"
    return {"gold": gold, "response": f"The number is {said}.", "material": {"gold": [gold]}}


def schema(rng: random.Random, n: int) -> Row:
    kind = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    body = json.dumps({"answer": str(n)} if rng.random() < 0.9 else {"answr": n})
    said = rng.choice((body, f"```json\n{body}\n```", f"Here it is: {body}"))
    return {"gold": str(n), "response": said, "material": {"schema": kind}}


def calls(rng: random.Random, n: int) -> Row:
    gold = [f"weather.get(city='Town {n % 50}', days={rng.randrange(9)})"]
    said = gold[0] if rng.random() < 0.7 else gold[0].replace("city", "town")
    return {"gold": gold[0], "response": said, "material": {"gold": gold}}


def citations(rng: random.Random, _: int) -> Row:
    titles = [f"Title {k}" for k in range(8)]
    gold = {"answer": "x", "supporting_facts": {"title": titles[:2], "sent_id": [0, 1]}}
    said = f"{prose(rng, 30)} [{rng.choice(titles)}] {prose(rng, 10)} [{rng.choice(titles)}]."
    return {"gold": "x", "response": said, "material": {"gold": gold, "titles": titles}}


def constraints(rng: random.Random, _: int) -> Row:
    ids = ["punctuation:no_comma", "length_constraints:number_words"]
    kwargs = [{}, {"relation": "at least", "num_words": 50}]
    return {
        "gold": ids[0],
        "response": prose(rng, rng.randrange(20, 120)),
        "material": {"instructions": ids, "kwargs": kwargs},
    }


def chat(rng: random.Random, _: int) -> Row:
    said = prose(rng, rng.randrange(30, 300))
    if rng.random() < 0.5:
        said += "\n\n" + "\n".join(f"- {prose(rng, 8)}" for _ in range(5))
    if rng.random() < 0.1:
        said += "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    return {"gold": None, "response": said}


MAKERS: dict[str, Callable[[random.Random, int], Row]] = {
    "option": option,
    "number": number,
    "maths": maths,
    "alias": alias,
    "short_answer": passage,
    "yes_no": yes_no,
    "retrieval": needle,
    "json_schema": schema,
    "calls": calls,
    "citations": citations,
    "constraints": constraints,
    "style": chat,
    "refusal": needle,
}


def tasks() -> dict[str, tuple[str, int]]:
    """Return task -> its rule scorer and its number of items in CapTrack."""
    found: dict[str, tuple[str, int]] = {}
    taxonomy = load_taxonomy("captrack")
    sizes = {task.name: task.items or 400 for task in taxonomy.tasks}
    for metric in taxonomy.metrics:
        if metric.scorer and needs_of(find_scorer(metric.scorer)) == "rule":
            found.setdefault(metric.task, (metric.scorer, sizes[metric.task]))
    return found


def made_rows(count: int, seed: int) -> Iterator[Row]:
    """Yield responses to all tasks, in the proportions of CapTrack."""
    known = tasks()
    total = sum(size for _, size in known.values())
    for task, (name, size) in known.items():
        rng = random.Random(f"{task} {seed}")
        for n in range(max(1, round(count * size / total))):
            row = MAKERS[name](rng, n)
            material = row.get("material")
            yield {
                "task": task,
                "item": f"q{n}",
                "repeat": 0,
                "metric": "none",
                "scorer": "none",
                "question": f"{task} question {n}",
                "options": row.get("options"),
                "gold": row["gold"],
                "response": row["response"],
                "material": json.dumps(material) if material else None,
            }


def write_made_run(folder: Path, count: int, seed: int) -> Path:
    """Write a run folder of made-up responses without scores."""
    folder.mkdir(parents=True)
    schemas = {SCORES: scores_schema(), TEXTS: texts_schema()}
    writers = {name: pq.ParquetWriter(folder / name, each) for name, each in schemas.items()}
    held: list[Row] = []

    def flush() -> None:
        for name, writer in writers.items():
            writer.write_table(pa.Table.from_pylist(held, schemas[name]))
        held.clear()

    for row in made_rows(count, seed):
        held.append(row)
        if len(held) >= CHUNK:
            flush()
    flush()
    for writer in writers.values():
        writer.close()
    info = RunInfo(run_id=folder.name, model=ModelInfo(name=folder.name))
    (folder / MANIFEST).write_text(info.model_dump_json())
    return folder


def cost_per_scorer(each: int = 1_000) -> list[tuple[str, float]]:
    """Return microseconds per response, the slowest scorer first."""
    found = []
    for name, make in MAKERS.items():
        rule: Any = find_scorer(name)
        rng = random.Random(name)
        samples = [as_scorer_input(_given(make(rng, n))) for n in range(each)]
        rule.score(samples[0])
        start = time.process_time()
        for sample in samples:
            rule.score(sample)
        found.append((name, 1e6 * (time.process_time() - start) / each))
    return sorted(found, key=lambda pair: -pair[1])


def _given(row: Row) -> Row:
    material = row.get("material")
    return {
        "question": "What?",
        "options": row.get("options"),
        "gold": row["gold"],
        "gold_index": None,
        "response": row["response"],
        "material": json.dumps(material) if material else None,
        "finish_reason": None,
    }


def compare_with_reference(count: int, folder: Path) -> tuple[float, float]:
    """Return seconds of the plain loop and of the measurement in one process; values must agree."""
    path = write_made_run(folder / "reference", count, seed=1)
    run = read_run(path)
    start = time.perf_counter()
    streamed = measure(run, load_taxonomy("captrack"), Measuring(processes=1, cached=False))
    ours = time.perf_counter() - start
    values = {
        (row["task"], row["item"], row["metric"], row["scorer"]): (row["score"], row["outcome"])
        for row in streamed.scores.collect().to_arrow().to_pylist()
        if row["scorer"] != "none"
    }
    named = tasks()
    start = time.perf_counter()
    expected = {}
    for row in made_rows(count, seed=1):
        rule: Any = find_scorer(named[row["task"]][0])
        sample = as_scorer_input(_given({**row, "material": json.loads(row["material"] or "null")}))
        for field, judged in rule.score(sample).items():
            key = (row["task"], row["item"], field, signature_of(rule))
            expected[key] = (judged.score, judged.outcome)
    loop = time.perf_counter() - start
    assert values.keys() == expected.keys()
    differing = [key for key in expected if values[key] != expected[key]]
    assert not differing, differing[:3]
    print(f"reference: {len(expected):,} values of {count:,} responses, all the same")
    return loop, ours


class Peak:
    """Peak memory of this process and its children together."""

    def __enter__(self) -> Self:
        self.bytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._done.wait(0.2):
            total = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self.bytes = max(self.bytes, total)


def stream(run: Run, workers: int) -> tuple[float, int, int]:
    """Return seconds, peak bytes and number of values."""
    with Peak() as peak:
        start = time.perf_counter()
        scored = measure(run, load_taxonomy("captrack"), Measuring(processes=workers, cached=False))
        seconds = time.perf_counter() - start
    rows = scored.scores.select(nw.len()).collect().item()
    return seconds, peak.bytes, int(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=1_000_000)
    parser.add_argument("--reference", type=int, default=20_000)
    parser.add_argument("--scaling", type=int, default=250_000)
    parser.add_argument("--quick", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["FORGETMAP_CACHE"] = str(folder / "cache")
        print("scorer           us per response")
        for scorer_name, cost in cost_per_scorer():
            print(f"{scorer_name:<16} {cost:10,.0f}")
        loop, ours = compare_with_reference(given.reference, folder)
        print(f"plain loop {loop:.1f} s, measured by one process {ours:.1f} s")
        paths = [write_made_run(folder / f"m{seed}", given.quick, seed) for seed in (1, 2)]
        start = time.perf_counter()
        drift(*paths, profile="quick")
        print(f"quick profile, two runs of {given.quick:,}: {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        drift(*paths)
        print(f"all rule metrics, the same runs: {time.perf_counter() - start:.1f} s")
        scaling(read_run(write_made_run(folder / "some", given.scaling, seed=3)), given.scaling)
        run = read_run(write_made_run(folder / "large", given.responses, seed=4))
        seconds, peak, rows = stream(run, workers=2)
        print(
            f"{given.responses:,} responses, two processes: {seconds:.0f} s, "
            f"{given.responses / seconds:,.0f}/s, {rows:,} values, peak {peak / 1e6:,.0f} MB"
        )


def scaling(run: Run, count: int) -> None:
    """Time one and two processes in turn, under the same load; print the best of each."""
    results = {1: stream(run, 1), 2: stream(run, 2)}
    for _ in range(ROUNDS - 1):
        for workers, best in results.items():
            results[workers] = min(best, stream(run, workers))
    for workers, (seconds, peak, _) in results.items():
        print(
            f"{count:,} responses, {workers} process(es): {seconds:.1f} s, "
            f"{count / seconds:,.0f}/s, peak {peak / 1e6:,.0f} MB"
        )
    print(f"two over one: {results[1][0] / results[2][0]:.2f}x")


if __name__ == "__main__":
    main()
