"""Runs every command once, in an installation with some of the extras.

usage: python walk_commands.py FOLDER [--extras-only] EXTRA...

A command either works or ends with exit code 2 and one sentence with the `pip install` that it
needs; if its extra is installed, any other typed error is fine too (there is no server). Needs
only forgetmap, so that it can run in a minimal environment.
"""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from unittest.mock import patch

SERVER = "http://127.0.0.1:9/v1#model"
UNCAUGHT = 99
EXTRAS_ONLY = "--extras-only"
CLIENT = "server or run or drift"
"""Extras that include httpx, which is needed for servers."""
ON_SERVER = "server or run"
ON_HUB = "run or server"
"""Extras that include the packages of the hub, which is queried first."""
OTHER_PROGRAM = "lm_eval"
"""Not an extra: a missing program has its own message."""
RECIPE = """merge_method: linear
models:
  - model: base
    parameters: {weight: 1.0}
"""


def commands(folder: Path, *, extras_only: bool) -> Iterator[tuple[str, str]]:
    """Yield every command and the extra it needs; empty if it works in every installation.

    With `extras_only`, only the first command of the core, which writes the runs, is included.
    """
    yield from islice(core_commands(folder), 1 if extras_only else None)
    yield from commands_of_extras(folder)


def core_commands(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands that work in every installation.

    Repeated answers take several times as long to compare, so few commands use them.
    """
    base, tuned, out = folder / "runs/before", folder / "runs/after", folder / "out"
    often, often_tuned = folder / "repeated/before", folder / "repeated/after"
    yield f"simulate --out {folder / 'runs'} --tasks 2 --items 30", ""
    yield f"simulate --out {folder / 'repeated'} --tasks 2 --items 30 --repeats 2", ""
    yield f"compare {often} {often_tuned}", ""
    yield f"compare {base} {tuned} --json --out {out / 'result'}", ""
    yield f"report {base} {tuned} --out {out / 'report.html'}", ""
    yield f"report {base} {tuned} --out {out / 'report.md'}", ""
    yield f"gate {base} {tuned} --margin 0.9", ""
    yield f"gate init {base} {tuned} --out {out / 'policy.toml'}", ""
    yield f"gate accept {base} --as main --store {out / 'store'}", ""
    yield f"gate history --store {out / 'store'}", ""
    yield f"confirm {base} {tuned} --out {out / 'confirm'}", ""
    yield f"export card {base} {tuned} --out {out / 'README.md'}", ""
    yield f"export hub {base} {tuned} --license mit --out {out / 'dataset'}", ""
    yield f"plan {often} {often_tuned}", ""
    yield f"records check {base}", ""
    yield f"records show {base}", ""
    yield "records schema record", ""
    yield f"records convert {base} --out {out / 'table.csv'}", ""
    yield f"records import {out / 'table.csv'} --out {out / 'imported'}", ""
    yield f"compare {out / 'table.csv'} {out / 'table.csv'}", ""
    yield f"drift {folder / 'scored.csv'} {folder / 'scored.csv'}", ""
    yield f"probe choose {often} --out {out / 'probe.jsonl'}", ""
    yield f"probe check {out / 'probe.jsonl'} {often_tuned}", ""
    yield f"overlap records {base} {tuned}", ""
    yield "theory verify F1", ""
    yield f"theory page --out {out / 'theory.html'}", ""
    yield "merge --help", ""
    yield "merge methods", ""
    yield "merge linear --help", ""
    yield f"doctor {SERVER} --json", ""
    yield "completion bash", ""


def commands_of_extras(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands that need extras."""
    base, tuned, out = folder / "runs/before", folder / "runs/after", folder / "out"
    item, model = folder / "items.jsonl", folder / "model"
    yield f"drift {folder / 'unscored.csv'} {folder / 'unscored.csv'}", "drift"
    yield f"merge linear {model} {model} --out {out / 'merged'}", "run"
    yield f"merge apply {folder / 'recipe.yaml'} --out {out / 'applied'}", "run"
    yield f"merge drift {model} {model}", "run"
    yield f"merge sweep {model} {model} --suite basics --out {out / 'sweep'}", "run"
    yield f"overlap models {model} {model} --prompts {folder / 'prompts.txt'}", "run"
    yield f"overlap models {SERVER} {SERVER} --prompts {folder / 'prompts.txt'}", CLIENT
    yield f"run {model} --suite basics --out {out / 'run'}", "run"
    yield f"run {model} --suite {item} --out {out / 'run2'}", "run"
    yield f"run {SERVER} --suite basics --out {out / 'run3'}", ON_SERVER
    yield f"run org/name --suite basics --out {out / 'run4'}", ON_HUB
    yield f"run {model} --suite hub:org/name --out {out / 'run5'}", ON_HUB
    yield f"run {SERVER} --harness lm-eval --tasks a --out {out / 'run6'}", OTHER_PROGRAM
    yield f"map {model} {model} --suite basics --out {out / 'map'}", "run"
    yield f"map {SERVER} {SERVER}x --suite basics --out {out / 'map2'}", ON_SERVER
    yield f"run vllm:{model} --suite basics --out {out / 'run7'}", "vllm"
    yield f"run {model} --engine ray --suite basics --out {out / 'run8'}", "ray"
    yield f"serve {base} {tuned} --port 0", "serve"
    yield f"compare s3://bucket/before {tuned}", "remote"


def prepare(folder: Path) -> None:
    """Write a minimal model folder, items, a recipe and prompts."""
    (folder / "model").mkdir(parents=True)
    # Small, because transformers initialises the weights that are not in the file.
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 16}
    config = {"model_type": "llama", "num_attention_heads": 1, "num_key_value_heads": 1, **sizes}
    (folder / "model" / "config.json").write_text(json.dumps(config))
    (folder / "recipe.yaml").write_text(RECIPE.replace("base", str(folder / "model")))
    (folder / "prompts.txt").write_text("Once upon a time\n")
    (folder / "items.jsonl").write_text('{"question": "1+1?", "gold": "2"}\n')
    (folder / "out").mkdir()
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(4)
    (folder / "model" / "model.safetensors").write_bytes(weights)
    for name, task, columns, cells in (
        ("scored", "gsm8k.subset", "score", "1"),
        ("unscored", "ifeval.subset", "score,response", ",A reply."),
    ):
        rows = "".join(f"{task},{number},Why?,7,{cells}\n" for number in range(20))
        text = f"task,item,question,gold,{columns}\n{rows}"
        (folder / f"{name}.csv").write_text(text)


def run(command: str) -> tuple[int, str]:
    """Run a command in this process; return exit code and output, including tracebacks."""
    from forgetmap.cli.main import main

    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            with patch.object(sys, "argv", ["forgetmap", *command.split()]):
                main()
        except SystemExit as end:
            return int(end.code or 0) if not isinstance(end.code, str) else 1, output.getvalue()
        except BaseException:  # noqa: BLE001  # every fault is reported
            traceback.print_exc(file=output)
            return UNCAUGHT, output.getvalue()
    return 0, output.getvalue()


def fault_of(need: str, extras: Iterable[str], code: int, output: str) -> str | None:
    """Return the fault of a command's result; None if there is none."""
    enough = set(need.split(" or "))
    sentence = f'pip install "forgetmap[{need.partition(" or ")[0]}]"'
    is_there = not enough.isdisjoint(extras)
    is_missing = bool(need) and not is_there and need != OTHER_PROGRAM
    faults = {
        "a traceback": "Traceback (most recent call last)" in output or code == UNCAUGHT,
        "options that do not exist": "Usage: forgetmap" in output and code == 2,
        "it must work with the core alone": not need and "pip install" in output and code == 2,
        f"it has {need} and still asks for it": is_there and sentence in output,
        f"no sentence with {sentence}": is_missing and (code != 2 or sentence not in output),
    }
    return next((fault for fault, is_so in faults.items() if is_so), None)


def stop_at_once(*_: object, **__: object) -> None:
    """Replace a server that would run forever."""


def main() -> int:
    folder, *arguments = sys.argv[1:]
    extras = [each for each in arguments if each != EXTRAS_ONLY]
    prepare(Path(folder))
    os.environ["HF_HUB_OFFLINE"] = "1"
    if "serve" in extras:
        import uvicorn

        uvicorn.Server.run = stop_at_once  # type: ignore[method-assign]
    faults = 0
    for command, need in commands(Path(folder), extras_only=EXTRAS_ONLY in arguments):
        code, output = run(command)
        fault = fault_of(need, extras, code, output)
        if fault is not None:
            faults += 1
            print(f"FAULT: forgetmap {command}\n  {fault}; exit code {code}:\n{output[-1500:]}")
        elif "-v" in os.environ.get("WALK", ""):
            print(f"ok {code}: forgetmap {command}\n   {output.strip().splitlines()[-2:]}")
    print(f"{faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
