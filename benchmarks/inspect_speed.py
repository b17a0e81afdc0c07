"""How fast Inspect logs are read here, beside Inspect's own table of samples: same files.

    python benchmarks/inspect_speed.py --peers PYTHON [--samples N] [--logs N]

PYTHON is the interpreter of an environment with inspect_ai and pandas, which also writes the logs.
Every measurement is a separate process; imports and a first small log are not timed. Ours ends with
the scores and the identity of every item on disk as Parquet (nothing from the cache), theirs with
`samples_df` in memory. It reads the summaries, forgetmap the samples, which say everything; then
both read every sample for its texts.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 3
LEAST = 3.0
WORDS = ("kara", "lono", "mire", "suta", "vone", "rali", "nope", "dugen", "tas", "elor")


def words(source: random.Random, count: int) -> str:
    return " ".join(source.choice(WORDS) for _ in range(count))


def write_logs(folder: Path, logs: int, samples: int) -> None:
    """Write multiple-choice tasks of one model with Inspect."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log

    source = random.Random(11)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(logs):
        spec = EvalSpec(
            created=f"2026-01-0{number % 9 + 1}T00:00:00+00:00",
            task=f"task{number}",
            dataset=EvalDataset(name="made up", samples=samples),
            model="mockllm/model",
            config=EvalConfig(),
        )
        made = [_sample(source, at + 1) for at in range(samples)]
        log = EvalLog(eval=spec, status="success", samples=made)
        write_eval_log(log, str(folder / f"task{number}.eval"))


def _sample(source: random.Random, number: int) -> object:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

    question, options = words(source, 40), [f"{words(source, 4)} {place}" for place in range(4)]
    gold, said = source.choice("ABCD"), source.choice("ABCD")
    response = f"{words(source, 120)}\nANSWER: {said}"
    output = ModelOutput.from_content("mock", response)
    return EvalSample(
        id=number,
        epoch=1,
        input=question,
        choices=options,
        target=gold,
        messages=[ChatMessageUser(content=question), ChatMessageAssistant(content=response)],
        output=output,
        scores={
            "choice": Score(value="C" if said == gold else "I", answer=said, explanation=response)
        },
        metadata={"subject": source.choice(WORDS)},
        model_usage={"mockllm/model": ModelUsage(input_tokens=90, output_tokens=150)},
    )


def ours(*, texts: bool) -> Callable[[Path], int]:
    from forgetmap.sources.logs import Reading
    from forgetmap.sources.open import open_run

    def read(folder: Path) -> int:
        run = open_run(folder, reading=Reading(texts=texts, cached=False))
        return len(run.scores.select("item").collect())

    return read


def theirs(*, texts: bool) -> Callable[[Path], int]:
    from inspect_ai.analysis import SampleMessages, SampleSummary, samples_df

    columns = [*SampleSummary, *SampleMessages] if texts else SampleSummary

    def read(folder: Path) -> int:
        return len(samples_df(str(folder), columns=columns, quiet=True))

    return read


def measure(read: Callable[[Path], int], folder: Path) -> dict[str, float]:
    """Return the fastest of several rounds, after a small log that is not timed."""
    read(folder / "small")
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = read(folder / "logs")
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "samples": found}


def in_process(python: str, work: str, folder: Path) -> dict[str, float]:
    command = [python, __file__, "--work", work, "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def work(name: str, folder: Path, logs: int, samples: int) -> None:
    """Run one contender in this process."""
    if name == "write":
        write_logs(folder / "small", 1, 5)
        write_logs(folder / "logs", logs, samples)
        return
    who, _, what = name.partition("-")
    make = ours if who == "ours" else theirs
    print(json.dumps(measure(make(texts=what == "texts"), folder)))


def compare(peers: str, logs: int, samples: int) -> bool:
    """Print both rates; return whether ours is fast enough."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        size = ["--logs", str(logs), "--samples", str(samples)]
        command = [peers, __file__, "--work", "write", "--folder", place, *size]
        subprocess.run(command, check=True, capture_output=True)
        ratios = {}
        for what in ("scores", "texts"):
            mine = in_process(sys.executable, f"ours-{what}", folder)
            other = in_process(peers, f"theirs-{what}", folder)
            if mine["samples"] != other["samples"]:
                raise SystemExit(f"{mine['samples']} samples here, {other['samples']} there")
            ratios[what] = other["seconds"] / mine["seconds"]
            print(
                f"{what:7} {mine['samples']:.0f} samples: forgetmap {mine['seconds']:.2f} s, "
                f"inspect_ai.analysis {other['seconds']:.2f} s: {ratios[what]:.1f} times as fast"
            )
    return ratios["scores"] >= LEAST


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="interpreter with inspect_ai and pandas")
    parser.add_argument("--logs", type=int, default=4)
    parser.add_argument("--samples", type=int, default=2500, help="in each log")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.folder, given.logs, given.samples)
        return 0
    if not given.peers:
        parser.error("--peers is needed")
    print(shlex.join([Path(sys.executable).name, *sys.argv]))
    return 0 if compare(given.peers, given.logs, given.samples) else 1


if __name__ == "__main__":
    sys.exit(main())
