"""Uses of the plugins in examples/plugins, as by users.

Run by a fresh Python that has them installed: one process for all, because a process that loads
DuckDB and torch takes seconds. Prints one JSON object: name of the plugin's folder -> its
results. To add one: a folder in examples/plugins, a function here, a test in test_plugins.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TAXONOMY = """\
name = "manners"
groups = [{ id = "HOW", title = "How it answers" }]
tasks = [{ name = "chat", items = 4 }]
capabilities = [{ id = "brevity", group = "HOW" }]

[[metrics]]
id = "brevity.chat"
capability = "brevity"
task = "chat"
scorer = "brevity"
field = "brief"
polarity = "up"
scale = "binary"
"""

RECIPE = """\
method: median
models:
  - {{model: {folder}/a, parameters: {{shift: 4}}}}
  - {{model: {folder}/b}}
  - {{model: {folder}/c}}
dtype: float32
"""


def use_log_format(folder: Path) -> dict[str, Any]:
    """Return the counts of a comparison of two logs in the format of the plugin."""
    from command_line import call

    before, after = folder / "base.log", folder / "tuned.log"
    before.write_text("QUIZ peru right\nQUIZ oslo right\nQUIZ mars wrong\nQUIZ?\n")
    after.write_text("QUIZ oslo wrong\nQUIZ peru right\nQUIZ mars wrong\n")
    done = call("compare", before, after, "--json")
    assert done.code == 0, done.err
    total = json.loads(done.out)["total"]
    return {name: total[name] for name in ("n11", "n10", "n01", "n00")}


def use_declared_format(folder: Path) -> dict[str, Any]:
    """Return the records of a log in the format that the plugin declares."""
    from forgetmap.sources import open_run

    rows = [
        {"riddle": f"r{n}", "stars": stars, "solver": {"model": "bee"}, "solution": "an echo"}
        for n, stars in enumerate([1, 4, 5, 6])
    ]
    path = folder / "riddles.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = open_run(path)
    found = run.scores.collect().select("task", "item", "metric", "score").rows()
    problems = [f"{problem.line}: {problem.message}" for problem in run.problems]
    return {"model": run.info.model.name, "records": found, "problems": problems}


def use_scorer(folder: Path) -> dict[str, Any]:
    """Return the drift of a metric that uses the plugin's scorer."""
    import forgetmap as fm

    taxonomy = folder / "manners.toml"
    taxonomy.write_text(TAXONOMY)
    responses = {"before": ["Yes.", "No.", "Maybe.", "I do not know."]}
    responses["after"] = ["Yes.", "That is a question with a long answer.", "Maybe.", "No."]
    runs = []
    for name, texts in responses.items():
        rows = [
            {"task": "chat", "item": f"i{n}", "score": None, "question": f"{n}?", "response": text}
            for n, text in enumerate(texts)
        ]
        runs.append(folder / f"{name}.jsonl")
        runs[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    (cell,) = fm.drift(*runs, taxonomy=taxonomy, draws=50, processes=1).metrics
    return {"metric": cell.id, "before": cell.before, "after": cell.after}


def use_merge_method(folder: Path) -> dict[str, Any]:
    """Return the weights of a model merged by the plugin's method."""
    import torch
    from safetensors.torch import load_file, save_file

    from forgetmap.merge import apply_recipe, find_method, method_names, read_recipe

    for name, values in {"a": [1.0, 9.0], "b": [2.0, 3.0], "c": [3.0, 1.0]}.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text('{"model_type": "llama"}')
        save_file({"w": torch.tensor(values)}, folder / name / "model.safetensors")
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE.format(folder=folder))
    merged = apply_recipe(read_recipe(recipe), folder / "merged")
    return {
        "last": method_names()[-1],
        "says": find_method("median").summary,
        "weights": load_file(merged / "model.safetensors")["w"].tolist(),
    }


def use_backend(folder: Path) -> dict[str, Any]:
    """Return the scores of a run with the plugin's backend."""
    import forgetmap as fm
    from command_line import call

    answers, items = folder / "answers.json", folder / "items.jsonl"
    answers.write_text(json.dumps({"Capital of Peru?": "Lima", "Capital of Norway?": "Bergen"}))
    golds = {"Capital of Peru?": "Lima", "Capital of Norway?": "Oslo", "Capital of Chad?": "x"}
    rows = [{"question": question, "gold": gold, "task": "t"} for question, gold in golds.items()]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = call("run", f"recorded:{answers}", "--suite", items, "--out", folder / "run")
    assert done.code == 0, done.err
    scores = fm.open_run(folder / "run").scores.collect().rows(named=True)
    return {row["outcome"]: row["score"] for row in scores}


def use_estimator(folder: Path) -> dict[str, Any]:
    """Return the outputs that show the plugin's estimator."""
    import pyarrow as pa

    import forgetmap as fm
    from forgetmap.comparison import estimator_table
    from forgetmap.comparison.render import View, as_text

    before, after = (
        pa.table({"task": ["t"] * 4, "item": [*"abcd"], "score": scores})
        for scores in ([1, 1, 1, 0], [1, 0, 0, 1])
    )
    comparison = fm.compare(before, after)
    payload = fm.make_payload(comparison)
    page = fm.write_report(payload, folder / "report.html").read_text(encoding="utf-8")
    total = json.loads(comparison.to_json())["total"]
    return {
        "json": total["estimators"]["independence"]["forgetting"]["value"],
        "macro": comparison.result.total_macro.estimates("independence").forgetting.value,
        "frame": comparison.tasks["independence"].to_pylist(),
        "terminal": as_text(comparison.result, View(details=True)),
        "payload": "independence" in payload.rows.estimator,
        "page": "beyond two unrelated models" in page,
        "docs": estimator_table(),
    }


def use_figure(folder: Path) -> dict[str, Any]:
    """Return the outputs that show the plugin's figure."""
    import pyarrow as pa

    import forgetmap as fm
    from forgetmap.report import figures_json

    before, after = (
        pa.table({"task": ["t"] * 4, "item": [*"abcd"], "score": scores})
        for scores in ([1, 1, 1, 0], [1, 0, 0, 1])
    )
    payload = fm.make_payload(fm.compare(before, after))
    (page,) = (each for each in json.loads(figures_json(payload)) if each["name"] == "accuracy")
    files = fm.write_figures(payload, folder / "figures")
    (picture,) = (path for path in files if path.stem == "accuracy")
    return {
        "page": [page["title"], "vega/v" in page["spec"]["$schema"], page["table"]["accuracy"]],
        "picture": ["before" in (drawn := picture.read_text(encoding="utf-8")), "after" in drawn],
        "markdown": [line for line in fm.as_markdown(payload).splitlines() if "| t |" in line],
    }


USES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "log_format": use_log_format,
    "declared_format": use_declared_format,
    "scorer": use_scorer,
    "merge_method": use_merge_method,
    "estimator": use_estimator,
    "backend": use_backend,
    "figure": use_figure,
}


def main() -> None:
    """Use all plugins, each in its own folder below the first argument."""
    results = {}
    for name, use in USES.items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir()
        results[name] = use(folder)
    print(json.dumps(results))  # noqa: T201


if __name__ == "__main__":
    main()
