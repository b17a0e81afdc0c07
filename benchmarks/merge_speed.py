"""How fast are models merged, and in how much memory? Against mergekit, and against bare copying.

    .venv/bin/python benchmarks/merge_speed.py --mergekit .venv-mergekit/bin/python
    .venv/bin/python benchmarks/merge_speed.py --layers 4 --rounds 1        small, without mergekit

Two checkpoints of a Llama shape (1.2 billion parameters, bfloat16, 2.4 GB each, in shards of 1 GB)
are generated and merged with `linear`, half and half. The contenders run in separate processes, in
turn, in every round:

- bare: a loop that reads both inputs in blocks of 1 MiB, averages nothing, writes as many bytes as
  a merged model has, and syncs them. Nothing that merges two models can do with less.
- ours: `forgetmap.merge.apply_recipe`, which computes in float32, checks every value for NaN and
  infinity, writes checksums to go on after a kill, and syncs.
- mergekit: `run_merge` with the fastest of several settings, found out in a round of its own; it
  does not sync, and time is taken both when it returns and once its files are synced.

Seconds are from the call to the result, imports excluded on all sides (they are reported
separately). Memory is the largest sum of RssAnon and RssShmem of a process, sampled in /proc every
5 ms: its own memory, without mapped files, which the system can reclaim. For mergekit also the
smallest of all settings is reported, and the limit is relative to that one. Cold means that the
inputs were dropped from the page cache (posix_fadvise) and are read from the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "data" / "merge"
RESULTS = HERE / "results"
BLOCK = 1 << 20
SHARD = 1_000_000_000
WIDTH, INNER, HEADS, KEYS, TOKENS = 2048, 5632, 32, 4, 32_000
LAYERS = 24
PROGRESS_INTERVAL_S = 0.005
MOST_OVER_BARE = 1.5
MOST_MEMORY = 0.5
"""Maximum memory relative to mergekit."""
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "float32": {"dtype": "float32"},
    "threads": {"num_threads": 2},
    "one thread": {"num_threads": 1},
    "async": {"async_write": True, "write_threads": 2, "out_shard_size": 500_000_000},
    "small shards": {"out_shard_size": 100_000_000, "lazy_unpickle": True},
    "small shards, async": {"async_write": True, "out_shard_size": 100_000_000},
}
"""Settings of mergekit: `dtype` of the recipe, and its options; it counts shards in parameters."""


# --- The checkpoints ----------------------------------------------------------------------------


def shapes(layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield names and shapes of the tensors of a Llama."""
    yield "model.embed_tokens.weight", (TOKENS, WIDTH)
    narrow = WIDTH // HEADS * KEYS
    for at in range(layers):
        yield f"model.layers.{at}.input_layernorm.weight", (WIDTH,)
        yield f"model.layers.{at}.mlp.down_proj.weight", (WIDTH, INNER)
        yield f"model.layers.{at}.mlp.gate_proj.weight", (INNER, WIDTH)
        yield f"model.layers.{at}.mlp.up_proj.weight", (INNER, WIDTH)
        yield f"model.layers.{at}.post_attention_layernorm.weight", (WIDTH,)
        yield f"model.layers.{at}.self_attn.k_proj.weight", (narrow, WIDTH)
        yield f"model.layers.{at}.self_attn.o_proj.weight", (WIDTH, WIDTH)
        yield f"model.layers.{at}.self_attn.q_proj.weight", (WIDTH, WIDTH)
        yield f"model.layers.{at}.self_attn.v_proj.weight", (narrow, WIDTH)
    yield "model.norm.weight", (WIDTH,)
    yield "lm_head.weight", (TOKENS, WIDTH)


def generate(folder: Path, layers: int, seed: int) -> None:
    """Write a checkpoint unless it exists."""
    import torch
    from safetensors.torch import save_file

    done = folder / "done.txt"
    if done.exists() and done.read_text() == f"{layers}":
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    largest = TOKENS * WIDTH
    generator = torch.Generator().manual_seed(seed)
    pool = (torch.randn(largest + (1 << 20), generator=generator) * 0.02).bfloat16()
    groups: list[dict[str, Any]] = [{}]
    size = 0
    for place, (name, shape) in enumerate(shapes(layers)):
        count = torch.Size(shape).numel()
        start = place * 4099 % (1 << 20)  # different values for every tensor, without drawing them
        if size + 2 * count > SHARD:
            groups.append({})
            size = 0
        groups[-1][name] = pool[start : start + count].reshape(shape)
        size += 2 * count
    places: dict[str, str] = {}
    for number, tensors in enumerate(groups, start=1):
        shard = f"model-{number:05}-of-{len(groups):05}.safetensors"
        places |= dict.fromkeys(tensors, shard)
        save_file({n: t.clone() for n, t in tensors.items()}, folder / shard, {"format": "pt"})
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(config(layers)))
    os.sync()
    done.write_text(f"{layers}")


def config(layers: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
        "intermediate_size": INNER, "num_hidden_layers": layers, "num_attention_heads": HEADS,
        "num_key_value_heads": KEYS, "vocab_size": TOKENS, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "hidden_act": "silu", "rms_norm_eps": 1e-5,
        "max_position_embeddings": 2048,
    }  # fmt: skip


def recipe(data: Path, dtype: str) -> str:
    """Return the recipe in mergekit's YAML, which both read."""
    models = "".join(
        f"  - model: {data / name}\n    parameters: {{weight: 0.5}}\n" for name in ("a", "b")
    )
    out = "out_dtype: bfloat16\n" if dtype != "bfloat16" else ""
    return f"merge_method: linear\nmodels:\n{models}dtype: {dtype}\n{out}"


# --- The contenders, each run in a separate process ---------------------------------------------


def bare(data: Path, out: Path, _: dict[str, Any]) -> Callable[[], None]:
    """Read everything, write as much as one model, sync."""

    def call() -> None:
        out.mkdir()
        buffers = bytearray(BLOCK), bytearray(BLOCK)
        for first in sorted((data / "a").glob("*.safetensors")):
            second = data / "b" / first.name
            with (
                first.open("rb", buffering=0) as one,
                second.open("rb", buffering=0) as two,
                (out / first.name).open("wb", buffering=0) as file,
            ):
                while count := one.readinto(buffers[0]):
                    two.readinto(buffers[1])
                    file.write(memoryview(buffers[0])[:count])
                os.fsync(file.fileno())

    return call


def ours(data: Path, out: Path, settings: dict[str, Any]) -> Callable[[], None]:
    """Merge with forgetmap."""
    from forgetmap.merge.api import apply_recipe
    from forgetmap.merge.plan import plan_merge  # noqa: F401  # imports torch
    from forgetmap.merge.recipe.read import read_recipe

    path = data / "bfloat16.yaml"
    path.write_text(recipe(data, "bfloat16"))
    read = read_recipe(path)

    def call() -> None:
        apply_recipe(read, out, **settings)

    return call


def mergekit(data: Path, out: Path, settings: dict[str, Any]) -> Callable[[], None]:
    """Merge with mergekit, with the function behind its command."""
    import yaml  # type: ignore[import-untyped]
    from mergekit.config import MergeConfiguration  # type: ignore[import-not-found]
    from mergekit.merge import run_merge  # type: ignore[import-not-found]
    from mergekit.options import MergeOptions  # type: ignore[import-not-found]

    options = dict(settings)
    told = yaml.safe_load(recipe(data, options.pop("dtype", "bfloat16")))
    configuration = MergeConfiguration.model_validate(told)
    chosen = MergeOptions(copy_tokenizer=False, write_model_card=False, quiet=True, **options)

    def call() -> None:
        run_merge(configuration, str(out), chosen)

    return call


CONTENDERS = {"bare": bare, "ours": ours, "mergekit": mergekit}


def measure(name: str, data: Path, out: Path, settings: dict[str, Any]) -> dict[str, float]:
    """Return seconds until the result is there, and until it is on the disk, in this process."""
    call = CONTENDERS[name](data, out, settings)
    started, worked = time.perf_counter(), time.process_time()
    call()
    returned, worked = time.perf_counter() - started, time.process_time() - worked
    for path in out.iterdir():
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    return {"seconds": returned, "synced": time.perf_counter() - started, "cpu": worked}


# --- Watching them ------------------------------------------------------------------------------


def occupied(pid: int) -> int:
    """Return the bytes of private memory of a process."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in lines)
    kinds = ("RssAnon", "RssShmem")
    return sum(int(fields[kind].split()[0]) << 10 for kind in kinds if kind in fields)


def drop(data: Path) -> None:
    """Drop the inputs from the page cache."""
    for path in data.glob("*/*.safetensors"):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def fill(data: Path) -> None:
    """Load the inputs into the page cache."""
    buffer = bytearray(BLOCK)
    for path in data.glob("*/*.safetensors"):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def run(
    name: str, args: argparse.Namespace, settings: dict[str, Any], *, cold: bool
) -> dict[str, float]:
    """Run one contender in a new process."""
    out = args.data / "out"
    shutil.rmtree(out, ignore_errors=True)
    os.sync()
    (drop if cold else fill)(args.data)
    python = args.mergekit if name == "mergekit" else sys.executable
    command = [python, __file__, "--contender", name, "--data", str(args.data), "--settings"]
    started = time.perf_counter()
    child = subprocess.Popen([*command, json.dumps(settings)], stdout=subprocess.PIPE, text=True)
    peak = 0
    while child.poll() is None:
        peak = max(peak, occupied(child.pid))
        time.sleep(PROGRESS_INTERVAL_S)
    whole = time.perf_counter() - started
    said = child.stdout.read() if child.stdout else ""
    if child.returncode:
        sys.exit(f"{name} {settings} failed")
    found = {**json.loads(said.splitlines()[-1]), "command": whole, "gib": peak / (1 << 30)}
    shutil.rmtree(out, ignore_errors=True)
    shown = ", ".join(f"{key} {value:.2f}" for key, value in found.items())
    print(f"  {name} {settings or ''} {'cold' if cold else 'warm'}: {shown}", flush=True)
    return found


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mergekit", help="python of an environment that has mergekit")
    parser.add_argument("--data", type=Path, default=DATA, help="where to put 8 GB of files")
    parser.add_argument("--keep", action="store_true", help="do not delete the checkpoints")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--settings", default="{}", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        found = measure(args.contender, args.data, args.data / "out", json.loads(args.settings))
        print(json.dumps(found))
        return
    try:
        for seed, name in enumerate(("a", "b")):
            generate(args.data / name, args.layers, seed)
        compare(args)
    finally:
        if not args.keep:
            shutil.rmtree(args.data, ignore_errors=True)


def compare(args: argparse.Namespace) -> None:
    """Run all contenders, warm and cold, in every round."""
    tried: dict[str, dict[str, float]] = {}
    contenders: dict[str, dict[str, Any]] = {"bare": {}, "ours": {}}
    if args.mergekit:
        print("Settings of mergekit:")
        tried = {name: run("mergekit", args, each, cold=False) for name, each in SETTINGS.items()}
        fastest = min(tried, key=lambda name: tried[name]["seconds"])
        contenders["mergekit"] = SETTINGS[fastest]
        print(f"fastest: {fastest}: {command_line(SETTINGS[fastest])}")
    rounds: dict[str, dict[str, list[dict[str, float]]]] = {}
    for number in range(args.rounds):
        print(f"Round {number + 1}:")
        for kind in ("warm", "cold"):
            for name, settings in contenders.items():
                found = run(name, args, settings, cold=kind == "cold")
                rounds.setdefault(kind, {}).setdefault(name, []).append(found)
    on_progress(args, rounds, tried)


def command_line(settings: dict[str, Any]) -> str:
    """Return the command for these settings."""
    flags = {key: value for key, value in settings.items() if key != "dtype"}
    words = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f" {value}")
        for key, value in flags.items()
    ]
    recipe_file = f"{settings.get('dtype', 'bfloat16')}.yaml"
    return " ".join(["mergekit-yaml", recipe_file, "OUT", "--no-copy-tokenizer", *words])


def on_progress(
    args: argparse.Namespace,
    rounds: dict[str, dict[str, list[dict[str, float]]]],
    tried: dict[str, dict[str, float]],
) -> None:
    """Print medians, and whether each requirement is met."""
    found: dict[str, Any] = {"layers": args.layers, "settings": tried}
    for kind, contenders in rounds.items():
        print(
            f"\n{kind}: median of {args.rounds}; seconds, once synced, of CPU, whole command, GiB"
        )
        for name, runs in contenders.items():
            keys = ("seconds", "synced", "cpu", "command")
            middle = {key: statistics.median(each[key] for each in runs) for key in keys}
            middle["gib"] = max(each["gib"] for each in runs)
            found.setdefault(kind, {})[name] = middle
            print(f"  {name:9}" + "".join(f"{value:9.2f}" for value in middle.values()))
        verdict(kind, found)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "merge_speed.json").write_text(json.dumps(found, indent=2) + "\n")


def verdict(kind: str, found: dict[str, Any]) -> None:
    """Print the requirements, and whether they are met."""
    of = found[kind]
    over = of["ours"]["synced"] / of["bare"]["synced"]
    print(
        f"  over bare: {over:.2f}x, asked at most {MOST_OVER_BARE}: {yes(over <= MOST_OVER_BARE)}"
    )
    if "mergekit" not in of:
        return
    times = of["mergekit"]["seconds"] / of["ours"]["seconds"]
    print(f"  as fast as mergekit, which does not sync: {times:.2f}x: {yes(times >= 1)}")
    least = min(of["mergekit"]["gib"], *(each["gib"] for each in found["settings"].values()))
    share = of["ours"]["gib"] / least
    print(
        f"  memory of mergekit's leanest setting: {share:.2f}x, asked at most {MOST_MEMORY}: "
        f"{yes(share <= MOST_MEMORY)}"
    )


def yes(good: bool) -> str:  # noqa: FBT001
    return "yes" if good else "NO"


if __name__ == "__main__":
    main()
