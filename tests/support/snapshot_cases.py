"""Cases of the snapshots: every command with numbers, on fixtures and generated runs.

Only the public API, the command line and helpers of the tests are used, so that snapshots do not
depend on internals.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from click.testing import CliRunner

import drifting_runs
import estimator_runs
import example_runs
import forgetmap as fm
import generated_runs
import repeated_answers
from command_line import write
from estimator_oracle import Shape
from forgetmap.cli.main import cli
from forgetmap.report import Payload
from merged_runs import FEW, sweep_mixtures
from repeated_answers import Truth
from report_files import payload_in
from snapshot_store import ROOT, normalise, only_numbers

LOGS = ROOT / "tests" / "fixtures" / "logs"
Row = dict[str, Any]
Inputs = Callable[[Path], list[Path]]
"""Writes the sources of a comparison into a folder, the model before first."""
Comparisons = Iterator[tuple[str, Inputs, dict[str, Any]]]
"""Name, sources, and options of `compare`."""


@dataclass(frozen=True)
class Case:
    """One snapshot.

    Attributes:
        command: name of the command and of the snapshot's folder.
        name: name of the case and of the snapshot's file.
        make: writes the inputs into the folder it is called with, and returns the output.
    """

    command: str
    name: str
    make: Callable[[Path], Any]

    def run(self, root: Path) -> Any:
        """Return the normalised output."""
        folder = root / self.command / self.name
        folder.mkdir(parents=True)
        with chdir(folder), _cache(root / "cache"):
            output = normalise(self.make(folder), folder)
        return output if self.command == "screens" else only_numbers(output)


def all_cases() -> list[Case]:
    """Return all cases in the order of their files."""
    groups = (
        *_comparison_cases(), *_drift_cases(), *_sweep_cases(), *_overlap_cases(),
        *_theory_cases(), *_plan_cases(), *_screen_cases(),
    )  # fmt: skip
    return sorted(groups, key=lambda case: (case.command, case.name))


@contextmanager
def _cache(folder: Path) -> Iterator[None]:
    """Use a separate cache, so that earlier commands have no effect."""
    before = os.environ.get("FORGETMAP_CACHE")
    os.environ["FORGETMAP_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["FORGETMAP_CACHE"]
        if before is not None:
            os.environ["FORGETMAP_CACHE"] = before


def _call(*args: object) -> Any:
    """Return the output of a command with `--json`, or its error."""
    try:
        done = CliRunner().invoke(cli, [*map(str, args), "--json"], catch_exceptions=False)
    except fm.ForgetmapError as error:
        return {"error": str(error)}
    return json.loads(done.stdout) | ({"exit_code": done.exit_code} if done.exit_code else {})


def _print(*args: object) -> str:
    """Return the output of a command."""
    done = CliRunner().invoke(cli, [*map(str, args)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


# Comparisons, and the payloads of their reports. A payload holds the whole result of a pair, so
# that most pairs are compared only once, for their payload.


LITTLE_PAIRED: dict[str, Any] = {"min_paired": 0.1}
"""Option for examples that lack many scores on purpose."""


def _comparison_cases() -> Iterator[Case]:
    for name, inputs, options in (*_options(), *_several_models(), *_log_pairs(), *_headlines()):
        least = {} if name.startswith("refused") else LITTLE_PAIRED
        make = _compare_frames if _is_of_frames(name) else _compare
        yield Case("compare", name, partial(make, inputs, {**least, **options}))
    for name, inputs in _tables():
        yield Case("payload", name, partial(_payload, inputs, LITTLE_PAIRED, {}))
    for log in _all_logs():
        yield Case("payload", f"log-{log.parent.name}-{log.name}", partial(_log_payload, log))
    runs = partial(_written, _models("labelled"))
    yield Case("payload", "several", partial(_payload, runs, LITTLE_PAIRED, {}))
    yield Case("payload", "chain", partial(_payload, runs, {"chain": True, **LITTLE_PAIRED}, {}))
    inputs = _pair(example_runs.rows_for("content"))
    for name, shown in _SHOWN.items():
        yield Case("payload", f"shown-{name}", partial(_payload, inputs, LITTLE_PAIRED, shown))


_SHOWN: dict[str, dict[str, Any]] = {
    "no-text": {"texts": False},
    "redacted": {"redact": ["city [0-9]+", "Rome"], "title": "For partners"},
    "limited": {"limit": 7},
}


_OF_FRAMES = {
    "chain-repeats", "several-repeats", "option-pair-by-content", "option-noise-repeats",
}  # fmt: skip
"""Cases compared as data frames, which is faster; other cases give these options to commands."""


def _is_of_frames(name: str) -> bool:
    """Return whether to compare data frames; of the estimators, only one runs as a command."""
    is_like_another = name.startswith("headline-") and name != "headline-single-matched"
    return is_like_another or name in _OF_FRAMES


def _compare(inputs: Inputs, options: Mapping[str, Any], folder: Path) -> Any:
    flags = [
        part
        for name, value in options.items()
        for part in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [value]))
    ]
    return _call("compare", *_relative(inputs(folder), folder), *flags)


def _compare_frames(inputs: Inputs, options: Mapping[str, Any], folder: Path) -> Any:
    """Return the same as `_compare`, from data frames."""
    runs = [_named_run(path) for path in _relative(inputs(folder), folder)]
    repeat = {"noise": _named_run(Path(options["noise"]))} if "noise" in options else {}
    return json.loads(fm.compare(*runs, **{**options, **repeat}).to_json())


def _named_run(path: Path) -> fm.Run:
    """Open a table as a data frame with the name of the file."""
    return replace(fm.open_run(_opened(path)), name=path.stem, origin=path.name)


def _payload(
    inputs: Inputs, options: Mapping[str, Any], shown: Mapping[str, Any], folder: Path
) -> Any:
    sources = [_opened(path) for path in _relative(inputs(folder), folder)]
    compared = fm.compare(*sources, **options)
    return _dump(fm.make_payload(compared, **shown))


def _dump(payload: Payload) -> Any:
    return json.loads(payload.model_dump_json())


def _opened(path: Path) -> Path | pl.DataFrame:
    """Read a table as a data frame, which is compared four times as fast; return other paths."""
    if path.suffix != ".jsonl":
        return path
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pl.DataFrame(rows, infer_schema_length=None)


def _relative(paths: Sequence[Path], folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in paths]


def _all_logs() -> list[Path]:
    return sorted(path.parent for path in LOGS.glob("*/*/expected.jsonl"))


def _log_pairs() -> Comparisons:
    """Yield pairs of logs of a harness with an item in common; others would be refused."""
    for before, after in combinations(_all_logs(), 2):
        if before.parent == after.parent and _items(before) & _items(after):
            name = f"logs-{before.parent.name}-{before.name}-{after.name}"
            yield name, partial(_copies, [before, after]), {}


def _items(log: Path) -> set[tuple[str, str]]:
    lines = (log / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    return {(row["task"], row["item"]) for row in map(json.loads, lines)}


def _copies(logs: Sequence[Path], folder: Path) -> list[Path]:
    """Copy logs into the folder, so that no path leads out of it."""
    places = [folder / log.parent.name / log.name / "log" for log in logs]
    for log, place in zip(logs, places, strict=True):
        shutil.copytree(log / "log", place)
    return places


def _log_payload(log: Path, folder: Path) -> Any:
    """Compare a log with a copy that has other scores."""
    (place,) = _relative(_copies([log], folder), folder)
    run = fm.open_run(place)
    scores = run.scores.collect("polars")
    rows = [_changed(row) for row in scores.rows(named=True)]
    changed = nw.from_native(pl.DataFrame(rows, schema=scores.to_native().schema))
    texts = None if run.texts is None else run.texts.collect("polars").lazy()
    before = replace(run, scores=scores.lazy(), texts=texts)
    info = run.info.model_copy(update={"run_id": "changed"})
    after = replace(
        run, info=info, scores=changed.lazy(), texts=texts, name="changed", origin="changed"
    )
    return _dump(fm.make_payload(fm.compare(before, after, min_paired=0.1)))


def _changed(row: Row) -> Row:
    """Change the score of about every second item."""
    digest = hashlib.sha256(f"{row['task']} {row['item']}".encode()).digest()[0]
    if digest % 2 or row["score"] is None:
        return row
    right = row["score"] < 0.5
    outcome = "correct" if right else "incorrect"
    return {**row, "score": float(right), "outcome": outcome, "choice": None}


def _tables() -> Iterator[tuple[str, Inputs]]:
    for name in example_runs.DATA:
        if name != "repeats on one side":  # refused; see `_options`
            yield f"example-{_slug(name)}", _pair(example_runs.rows_for(name))
    for name, shape in _SHAPES.items():
        yield f"estimators-{name}", _sides(shape)
    for content in generated_runs.CONTENTS:
        for labels in generated_runs.LABELS:
            pair = generated_runs.make_pair(random.Random(7).choice, [content], [labels])
            yield f"generated-{content}-{len(labels)}-{labels[0]}", _pair(pair)
    for name, truth in _TRUTHS.items():
        yield f"repeated-{name}", partial(_repeated, truth)
    yield "simulated", partial(_simulated, ())
    yield "simulated-repeats", partial(_simulated, ("--repeats", 3, "--mastery", 0.9))


_SHAPES = {
    "single": Shape(items=20),
    "clusters": Shape(items=20, clusters=True),
    "repeats": Shape(items=10, repeats=2, clusters=True),
    "missing": Shape(items=10, repeats=3, missing=0.3),
    "open-ended": Shape(items=20, ks=(None,)),
    "two-options": Shape(items=20, ks=(2,)),
}
_TRUTHS = {
    "steady": Truth(items=40),
    "lost": Truth(items=40, lost=0.3),
    "gained": Truth(items=40, gained=0.3),
    "mood": Truth(items=40, lost=0.1, mood=0.5),
    "clusters": Truth(items=40, lost=0.2, cluster=5),
    "habit": Truth(items=40, lost=0.2, habit=0.8),
    "failed": Truth(items=40, lost=0.2, failed=0.3),
}


def _options() -> Comparisons:
    labelled, content = (example_runs.rows_for(name) for name in ("labelled", "content"))
    options: dict[str, dict[str, Any]] = {
        "none": {},
        "correct-at": {"correct_at": 0.7},
        "task-table": {"task_table": "corrected"},
        "rollup": {"rollup": "post-forget", "task_table": "as-run"},
        "min-paired": {"min_paired": 0.999},
        "unknown-metric": {"metric": "f1"},
    }
    for name, given in options.items():
        yield f"option-{name}", _pair(labelled), given
    conflicts = example_runs.rows_for("conflicts")
    for how in ("id", "content"):
        yield f"option-pair-by-{how}", _pair(conflicts), {"pair_by": how}
    yield "refused-pair-by-id", _pair(content), {"pair_by": "id"}
    yield "refused-repeats", _pair(example_runs.rows_for("repeats on one side")), {}
    for name in ("single", "repeats"):
        inputs = _sides(_SHAPES[name], again=True)
        yield f"option-noise-{name}", inputs, {"noise": "again.jsonl"}


def _headlines() -> Comparisons:
    """Yield every estimator whose assumption can be stated."""
    chosen = {"repeats": ("latent", "upper", "matched"), "single": ("matched",)}
    for label, estimators in chosen.items():
        for estimator in estimators:
            yield f"headline-{label}-{estimator}", _sides(_SHAPES[label]), {"estimator": estimator}


def _several_models() -> Comparisons:
    for name in ("labelled", "repeats"):
        inputs = partial(_written, _models(name))
        yield f"several-{name}", inputs, {}
        yield f"chain-{name}", inputs, {"chain": True}


def _models(name: str) -> dict[str, list[Row]]:
    return {f"model-{seed}": example_runs.DATA[name](seed) for seed in range(3)}


def _slug(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def _written(runs: Mapping[str, Sequence[Row]], folder: Path) -> list[Path]:
    return [write(folder / f"{name}.jsonl", rows) for name, rows in runs.items()]


def _pair(rows: tuple[Sequence[Row], Sequence[Row]]) -> Inputs:
    return partial(_written, {"before": rows[0], "after": rows[1]})


def _sides(shape: Shape, *, again: bool = False) -> Inputs:
    """Return a writer of two runs; with `again`, also of a repeat of the model before."""

    def inputs(folder: Path) -> list[Path]:
        if again:
            write(folder / "again.jsonl", estimator_runs.rows_of("again", shape))
        runs = {side: estimator_runs.rows_of(side, shape) for side in ("before", "after")}
        return _written(runs, folder)

    return inputs


def _repeated(truth: Truth, folder: Path) -> list[Path]:
    asked = repeated_answers.ask(truth, 4, np.random.default_rng(5))
    sides = {"before": (asked.before, asked.had_before), "after": (asked.after, asked.had_after)}
    runs = {
        side: [
            {
                "task": "t", "item": f"i{item}", "repeat": repeat, "k": 4,
                "cluster": f"c{item // truth.cluster}" if truth.cluster > 1 else None,
                "score": float(right[item, repeat]) if had[item, repeat] else None,
            }
            for item in range(truth.items)
            for repeat in range(right.shape[1])
        ]
        for side, (right, had) in sides.items()
    }  # fmt: skip
    return _written(runs, folder)


def _simulated(options: Sequence[object], folder: Path) -> list[Path]:
    _print("simulate", "--out", "demo", "--tasks", 3, "--items", 12, *options)
    return [folder / "demo" / "before", folder / "demo" / "after"]


# Drift of capabilities


def _drift_cases() -> Iterator[Case]:
    options: dict[str, tuple[int, tuple[object, ...]]] = {
        "pair": (1, ()),
        "several": (3, ("--target", "law")),
        "noise": (2, ("--noise", "again")),
        "relative": (2, ("--aggregator", "captrack-relative")),
        "quick": (1, ("--profile", "quick", "--seed", "7")),
    }
    for name, (models, given) in options.items():
        yield Case("drift", f"small-{name}", partial(_drift_small, models, given))
    yield Case("drift", "responses", partial(_drift_responses, ()))
    relative = ("--aggregator", "captrack-relative")
    yield Case("drift", "responses-relative", partial(_drift_responses, relative))
    yield Case("drift", "log-captrack", _drift_log)
    yield Case("drift", "knowledge", _drift_knowledge)
    yield Case("payload", "drift-small", partial(_drift_payload, ()))
    yield Case("payload", "drift-small-no-text", partial(_drift_payload, ("--no-text",)))


_DRAWS = ("--draws", 200)


def _drift_small(models: int, options: Sequence[object], folder: Path) -> Any:
    return _call(*_small_drift(models, folder), *options)


def _small_drift(models: int, folder: Path) -> list[object]:
    names = ["base", *(f"model-{model}" for model in range(1, models + 1))]
    for model, name in enumerate(names):
        fm.write_run(drifting_runs.small_run(model), folder / name)
    fm.write_run(drifting_runs.small_run(0, hostile="again"), folder / "again")
    (folder / "small.toml").write_bytes(drifting_runs.TAXONOMY)
    return ["drift", *names, "--taxonomy", "small.toml", *_DRAWS]


def _drift_payload(options: Sequence[object], folder: Path) -> Any:
    _print(*_small_drift(2, folder), *options, "--out", "drift.html")
    return payload_in((folder / "drift.html").read_text(encoding="utf-8"))


def _drift_responses(options: Sequence[object], folder: Path) -> Any:
    names = {"base": (8, 40), "sft": (6, 20), "dpo": (8, 42)}
    for name, (right, words) in names.items():
        _write_responses(folder / name, right, words)
    return _call("drift", *names, *_DRAWS, *options)


def _write_responses(folder: Path, right: int, words: int) -> None:
    """Write responses to two tasks in the format of CapTrack."""
    folder.mkdir()
    sums = [
        {"id": f"s{n}", "prompt": f"{n} + {n}?", "gold": f"#### {2 * n}",
         "outputs": f"Answer: {2 * n if n % 10 < right else 2 * n + 1}"}
        for n in range(60)
    ]  # fmt: skip
    chats = [
        {"id": f"c{n}", "prompt": f"Tell me about {n}.", "gold": "",
         "outputs": "\n\n".join([f"# About {n}", "- one\n- **two**", " ".join(["so"] * words)])}
        for n in range(60)
    ]  # fmt: skip
    write(folder / "gsm8k_subset.jsonl", sums)
    write(folder / "oasst1_full.jsonl", chats)


def _drift_log(folder: Path) -> Any:
    """Return the drift between the responses of the fixture and a copy with other answers."""
    log = LOGS / "captrack" / "responses" / "log" / "tiny-sft"
    for name, (old, new) in {"base": ("", ""), "tuned": ("Answer: 7", "It may be 9.")}.items():
        (folder / name).mkdir()
        for path in sorted(log.iterdir()):
            text = path.read_text(encoding="utf-8")
            (folder / name / path.name).write_text(text.replace(old, new) if old else text)
    return _call("drift", "base", "tuned", *_DRAWS)


def _drift_knowledge(folder: Path) -> Any:
    tasks = ("piqa:main", "bbh:navigate", "arc:easy", "arc:challenge")
    for name, right in (("base", 0.8), ("tuned", 0.6)):
        dice = random.Random(name)
        rows = [
            {"task": task, "item": f"{number}", "score": float(dice.random() < right)}
            for task in tasks
            for number in range(50)
        ]
        write(folder / f"{name}.jsonl", rows)
    return _call("drift", "base.jsonl", "tuned.jsonl", "--taxonomy", "knowledge", *_DRAWS)


# Merge sweeps, from runs of merges that exist


def _sweep_cases() -> Iterator[Case]:
    options: dict[str, dict[str, Any]] = {
        "one": {},
        "target": {"weights": (0.25, 0.5), "targets": ["two"], "budget": 0.2},
        "several": {"seeds": (1, 2, 3, 4), "drift": True, "tasks": FEW[:1]},
    }
    for name, given in options.items():
        yield Case("sweep", name, partial(_sweep, given))


def _sweep(options: Mapping[str, Any], folder: Path) -> Any:
    swept = sweep_mixtures(folder / "runs", **{"weights": (0.5,), **options})
    return json.loads(swept.to_json())


# Overlap


def _overlap_cases() -> Iterator[Case]:
    yield Case("overlap", "records", _overlap_records)
    yield Case("overlap", "bridge", _overlap_bridge)
    options: dict[str, tuple[object, ...]] = {
        "tokens": (),
        "first": ("--first", 2),
        "level": ("--level", 0.8, "--behaviour", 0.7, "--new-share", 0.3, "--seed", 4),
    }
    for name, given in options.items():
        yield Case("overlap", f"samples-{name}", partial(_overlap_samples, given))


def _overlap_records(folder: Path) -> Any:
    for name, shift in (("base", 0.0), ("tuned", -0.5)):
        dice = random.Random(name)
        rows = [
            {"task": f"t{n % 3}", "item": n, "score": 1,
             "logprob_gold": -0.1 * (n + 1) + shift * n * dice.random()}
            for n in range(40)
        ]  # fmt: skip
        write(folder / f"{name}.jsonl", rows)
    return _call("overlap", "records", "base.jsonl", "tuned.jsonl")


def _overlap_bridge(folder: Path) -> Any:
    dice = random.Random(3)
    rows = ["method,model,forgetting,kl_old,kl_new"]
    rows += [
        f"{method},{method}{n},{0.05 * (n + index + dice.random())},{0.5 * (n + index + 1)},{n % 3}"
        for index, method in enumerate(("sft", "rl", "sdft"))
        for n in range(6)
    ]
    (folder / "models.csv").write_text("\n".join(rows))
    return _call("overlap", "bridge", "models.csv")


def _overlap_samples(options: Sequence[object], folder: Path) -> Any:
    dice = random.Random(11)
    rows = []
    for prompt in range(8):
        for side in ("before", "after"):
            for number in range(6):
                tokens = [(-dice.expovariate(1.5), -dice.expovariate(1)) for _ in range(4)]
                before, after = zip(*tokens, strict=True)
                rows.append(
                    {
                        "prompt": f"p{prompt}", "side": side, "number": number,
                        "before": before, "after": after,
                        "group": "old" if prompt < 4 else "new", "ended": dice.random() < 0.8,
                        "kl": [dice.expovariate(3) for _ in tokens], "expert": sum(after) - 0.1,
                    }
                )  # fmt: skip
    return _call("overlap", "samples", write(folder / "samples.jsonl", rows).name, *options)


# Theory


def _theory_cases() -> Iterator[Case]:
    for name, args in (_ADVICE | _SIMULATIONS | _CLAIMS).items():
        yield Case("theory", name, partial(_theory, args))


def _theory(args: Sequence[object], folder: Path) -> Any:
    return _call("theory", *args)


_ADVICE: dict[str, tuple[object, ...]] = {
    "advise-batch": ("advise", "batch", "--old-weight", 0.02, "--replay", 0.1),
    "advise-replay": ("advise", "replay", "--keep", 0.2),
    "advise-replay-base": ("advise", "replay", "--keep", 0.2, "--base", 0.5),
    "advise-replay-impossible": ("advise", "replay", "--keep", 0.8, "--base", 0.5),
    "advise-replay-none": ("advise", "replay", "--fraction", 0),
    "advise-refreshes-equal": ("advise", "refreshes", "--start", 0.5, "--floor", 0.01, "--gap", 0),
    "conditions-sft": ("conditions", "--method", "sft", "--fraction", 0.05),
    "conditions-rl": ("conditions", "--method", "rl"),
    "conditions-rl-penalty": ("conditions", "--method", "rl", "--temperature", 0.5),
    "conditions-sdft": ("conditions", "--method", "sdft", "--anchor", 0),
    "conditions-ttt-discover": ("conditions", "--method", "ttt-discover", "--separation", 6),
    "conditions-oapl": ("conditions", "--method", "oapl", "--refreshes", 3),
    "advise-kl": ("advise", "kl", "--start", 0.5, "--floor", 0.2),
    "advise-kl-eta": ("advise", "kl", "--start", 0.5, "--floor", 0.2, "--eta", 2),
    "advise-refreshes": ("advise", "refreshes", "--start", 0.5, "--floor", 0.01),
    "advise-anchor": ("advise", "anchor", "--shown", 90, "--tried", 100, "--keep", 0.95),
    "advise-anchor-enough": ("advise", "anchor", "--shown", 99, "--tried", 100, "--keep", 0.5),
}
_SIMULATIONS: dict[str, tuple[object, ...]] = {
    f"simulate-{method}": ("simulate", "--method", method, "--separation", 4, "--until", 20)
    for method in (
        "sft", "replay", "rl", "rl-new", "kl-rl", "iw-replay", "sdft", "ttt-discover", "oapl",
    )
}  # fmt: skip
_CLAIMS: dict[str, tuple[object, ...]] = {
    "verify": ("verify", "F3", "R2", "P6", "TT5", "--controls", "--processes", 1),
    "verify-unknown": ("verify", "F99"),
}


# Plans


def _plan_cases() -> Iterator[Case]:
    yield Case("plan", "wish", lambda _: _call("plan", "--loss", 0.03, "--gain", 0.01))
    for name in ("labelled", "repeats"):
        inputs = _pair(example_runs.rows_for(name))
        yield Case("plan", f"after-{name}", partial(_plan, inputs))


def _plan(inputs: Inputs, folder: Path) -> Any:
    return _call("plan", *_relative(inputs(folder), folder), "--min-paired", 0.5)


# Five screens: the words of each verdict


_SCREENS = {
    "lost": (2374, 98, 24, 215),
    "small_loss": (30_000, 150, 60, 20_000),
    "no_material_loss": (1500, 4, 6, 500),
    "no_net_loss": (3264, 1127, 2053, 5588),
    "cannot_tell": (64, 8, 5, 23),
}
"""Verdict -> right twice, right then wrong, wrong then right, wrong twice."""


def _screen_cases() -> Iterator[Case]:
    for name, cells in _SCREENS.items():
        yield Case("screens", name, partial(_screen, cells))


def _screen(cells: tuple[int, int, int, int], folder: Path) -> list[str]:
    states = [(1, 1), (1, 0), (0, 1), (0, 0)]
    pairs = [state for state, count in zip(states, cells, strict=True) for _ in range(count)]
    for side, name in enumerate(("base", "tuned")):
        rows = [{"task": "t", "item": n, "score": pair[side]} for n, pair in enumerate(pairs)]
        write(folder / f"{name}.jsonl", rows)
    return [line.rstrip() for line in _print("compare", "base.jsonl", "tuned.jsonl").splitlines()]
