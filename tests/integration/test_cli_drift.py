"""`forgetmap drift` on the command line."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import call
from forgetmap.capabilities.taxonomy import load_taxonomy
from forgetmap.cli.drift import command as drift_command
from forgetmap.cli.run import command as run_command
from report_files import payload_in


def write_responses(folder: Path, *, right: int, words: int, count: int = 120) -> Path:
    """Responses to two tasks as they are collected for CapTrack."""
    folder.mkdir(parents=True)
    sums = [
        {"id": f"s{n}", "prompt": f"{n} + {n}?", "gold": f"#### {2 * n}",
         "outputs": f"Answer: {2 * n if n % 10 < right else 2 * n + 1}"}
        for n in range(count)
    ]  # fmt: skip
    chats = [
        {"id": f"c{n}", "prompt": f"Tell me about {n}.", "gold": "",
         "outputs": " ".join(["word"] * (words + n % 7))}
        for n in range(count)
    ]  # fmt: skip
    for name, rows in (("gsm8k_subset", sums), ("oasst1_full", chats)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [
        write_responses(folder / "base", right=8, words=40),
        write_responses(folder / "sft", right=6, words=20),
        write_responses(folder / "dpo", right=8, words=42),
    ]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path_factory.getbasetemp() / "drift-cache"))


def drift(*args: object, columns: int = 110) -> str:
    done = call("drift", *args, "--draws", 200, "--processes", 1, columns=columns)
    assert done.code == 0, done.err
    return done.out


def as_json(*args: object) -> dict[str, Any]:
    value = json.loads(drift(*args, "--json"))
    assert isinstance(value, dict)
    return value


def test_one_model(models: list[Path]) -> None:
    out = drift(*models[:2])
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "Drift from base (captrack, default)" in out
    assert "sft: " in out
    assert "drifted most: it became less (effect" in out
    assert "\N{MINUS SIGN}0.44*" in lines["C1"]
    assert "1 of 6" in lines["C1"]
    assert "\N{UP DOWN ARROW}" in lines["W3a"]
    assert lines["C4"].split()[4:] == ["no", "data", "-", "-", "-", "0", "of", "2"]
    missing = next(line for line in out.splitlines() if "C2, C3, C4" in line)
    assert missing.startswith("no value ")
    assert "C1," not in out


def test_several_models_are_a_heat_map(models: list[Path]) -> None:
    out = drift(*models, columns=80)
    head = next(line for line in out.splitlines() if line.split()[:2] == ["sft", "dpo"])
    assert head
    line = next(line for line in out.splitlines() if line.strip().startswith("W3a"))
    first, second = line.split()[-2:]
    assert first.startswith("\N{MINUS SIGN}0.6")
    assert second.startswith("+0.0")


def test_metrics(models: list[Path]) -> None:
    out = drift(*models[:2], "--by", "metric")
    line = next(line for line in out.splitlines() if line.startswith("C1.gsm8k"))
    assert line.split()[1:7] == [
        "80.0%",
        "60.0%",
        "\N{MINUS SIGN}20.0",
        "\N{MINUS SIGN}25.0",
        "24",
        "0",
    ]
    narrow = drift(*models[:2], "--by", "metric", columns=50)
    assert max(map(len, narrow.splitlines())) <= 50


def test_json(models: list[Path], tmp_path: Path) -> None:
    data = as_json(*models, "--out", tmp_path / "drift.json")
    assert json.loads((tmp_path / "drift.json").read_text()) == data
    assert data["models"] == ["sft", "dpo"]
    assert [len(data[level]) for level in ("groups", "capabilities", "metrics")] == [6, 38, 108]
    for level in ("groups", "capabilities", "metrics"):
        for cell in data[level]:
            assert {"id", "name", "value", "low", "high", "std", "n", "coverage"} <= cell.keys()
    maths = next(cell for cell in data["metrics"] if cell["id"] == "C1.gsm8k")
    assert (maths["forgotten"], maths["gained"], maths["n"]) == (24.0, 0.0, 120)
    assert maths["low"] < maths["value"] < maths["high"] < 0
    again = call("drift", *models, "--out", tmp_path / "drift.json")
    assert (again.code, "already exists" in again.err) == (2, True)


def test_published_arithmetic_from_responses(models: list[Path]) -> None:
    data = as_json(*models[:2], "--aggregator", "captrack-relative")
    cells = {cell["id"]: cell for cell in data["capabilities"]}
    assert cells["C1"]["value"] == pytest.approx(-25.0)
    assert cells["C2"]["value"] is None
    words = [sum(words + n % 7 for n in range(120)) / 120 for words in (40, 20)]
    assert cells["W3a"]["value"] == pytest.approx(100 * (words[1] / words[0] - 1))


def test_metric_files(tmp_path: Path) -> None:
    columns = [str(metric.column) for metric in load_taxonomy("captrack").metrics]
    for name, value in (("base", 0.5), ("tuned", 0.6)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerows([["", *columns, "model_name"], [name, *[value] * 54, name]])
    files = [tmp_path / "base.csv", tmp_path / "tuned.csv"]
    out = drift(*files, "--aggregator", "captrack-relative")
    assert "averages only" in out
    assert "+20.00" in next(line for line in out.splitlines() if line.startswith("CAN"))


def test_noise_target_and_a_taxonomy_of_ones_own(models: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ngroups = [{ id = "G" }]\ntasks = [{ name = "oasst1.full" }]\n'
        'capabilities = [{ id = "length", group = "G" }]\n[[metrics]]\nid = "length.chars"\n'
        'capability = "length"\ntask = "oasst1.full"\nscorer = "style"\nfield = "characters"\n'
        'scale = "count"\npolarity = "both"\n'
    )
    data = as_json(
        *models[:2], "--taxonomy", path, "--noise", models[0], "--target", "gsm8k.subset"
    )
    assert [cell["id"] for cell in data["capabilities"]] == ["length", "target.gsm8k.subset"]
    length, target = data["capabilities"]
    assert (length["noise"], length["within_noise"]) == (0.0, False)
    assert target["value"] < 0


def test_quick_profile(models: list[Path]) -> None:
    data = as_json(*models[:2], "--profile", "quick")
    assert {cell["n"] for cell in data["metrics"] if cell["value"] is not None} == {120}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--taxonomy", "captrak"], "there is no taxonomy 'captrak'"),
        (["--judge", "ftp://x", "m"], "is not a server address"),
        (["--profile", "slow"], "is not one of"),
        (["--aggregator", "mean"], "is not one of"),
    ],
)
def test_what_makes_no_sense(models: list[Path], options: list[str], said: str) -> None:
    done = call("drift", *models[:2], *options)
    assert done.code == 2
    assert said in done.err


def write_scores(path: Path, task: str) -> Path:
    """Scores without responses, as another tool may have left them."""
    rows = [
        {"task": task, "item": f"i{n}", "metric": "acc", "score": float(n % 3 > 0)}
        for n in range(120)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("taxonomy", "suite"), [("captrack", "captrack"), ("sample", "capabilities"), ("mine", None)]
)
def test_runs_without_any_task_of_the_taxonomy(
    models: list[Path], tmp_path: Path, taxonomy: str, suite: str | None
) -> None:
    runs = [write_scores(tmp_path / f"{name}.jsonl", "law") for name in ("base", "tuned")]
    (tmp_path / "mine").write_text(
        'name = "mine"\ngroups = [{ id = "G" }]\n'
        'capabilities = [{ id = "sums", group = "G", tasks = ["gsm8k.subset"] }]\n'
    )
    where = tmp_path / "mine" if taxonomy == "mine" else taxonomy
    done = call("drift", *runs, "--taxonomy", where)
    assert (done.code, done.out) == (2, "")
    sentence = " ".join(done.err.split())
    assert f"no task of the taxonomy '{taxonomy}' is in both runs" in sentence
    assert "base has law; tuned has law; the taxonomy has " in sentence
    assert ("forgetmap run MODEL --suite" in sentence) == (suite is not None)
    assert suite is None or f"--suite {suite})" in sentence
    assert "--taxonomy FILE" in sentence
    if taxonomy == "captrack":
        relative = call("drift", models[0], runs[1], "--aggregator", "captrack-relative")
        assert (relative.code, "base has gsm8k" in relative.err) == (2, True)


def test_the_core_installation_compares_what_is_scored(models: list[Path], tmp_path: Path) -> None:
    """Without the packages of forgetmap[drift]; what they are needed for says so."""
    runs = [write_scores(tmp_path / f"{name}.jsonl", "gsm8k.subset") for name in ("base", "tuned")]
    script = """
import sys
from importlib.machinery import PathFinder
class Hidden(PathFinder):
    @classmethod
    def find_spec(cls, name, *rest):
        names = {"emoji", "httpx", "jsonschema", "langdetect", "math_verify"}
        return None if name.partition(".")[0] in names else PathFinder.find_spec(name, *rest)
sys.meta_path[sys.meta_path.index(PathFinder)] = Hidden
from command_line import call
for runs in (sys.argv[1:3], sys.argv[3:]):
    done = call("drift", *runs, "--json", "--no-cache")
    print(done.code, len(done.out), " ".join(done.err.split()), sep="|")
"""
    support = str(Path(__file__).parents[1] / "support")
    path = os.pathsep.join([support, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", script, *runs, *models[:2]],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    scored, unscored = (line.split("|") for line in done.stdout.splitlines())
    assert (scored[0], int(scored[1]) > 1000) == ("0", True)
    assert unscored[:2] == ["2", "0"]
    assert unscored[2].startswith("Error: The scorer '")
    assert 'Hint: install it: pip install "forgetmap[drift]".' in unscored[2]


def test_missing_input(models: list[Path], tmp_path: Path) -> None:
    done = call("drift", models[0], tmp_path / "nowhere")
    assert (done.code, "the file or folder does not exist" in done.err) == (2, True)


def test_bug_28_documented_options_exist() -> None:
    page = (Path(__file__).parents[2] / "docs" / "capabilities.md").read_text(encoding="utf-8")
    known = {
        name
        for command in (drift_command, run_command)
        for option in command.params
        for name in (*option.opts, *option.secondary_opts)
    }
    named = set(re.findall(r"--[a-z][a-z-]+", page))
    assert {"--judge", "--allow-exec"} < named
    assert named <= known


def test_a_report_of_every_form(models: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "drift.html"
    drift(*models, "--out", out, "--title", "Mine", "--limit", 30)
    payload = payload_in(out.read_text(encoding="utf-8"))
    assert (payload["kind"], payload["title"]) == ("drift", "Mine")
    assert payload["capabilities"]["result"] == as_json(*models)
    first, second = payload["items"]
    assert 0 < len(first["columns"]["item"]) <= 20
    assert "response_after" in first["columns"]
    assert set(second["total"]) <= {"less", "more"}
    refused = call("drift", *models, "--out", out)
    assert (refused.code, "already exists" in refused.err) == (2, True)
    drift(*models, "--out", out, "--overwrite", "--no-text")
    assert (
        "response_after" not in payload_in(out.read_text(encoding="utf-8"))["items"][0]["columns"]
    )
    drift(*models[:2], "--out", tmp_path / "drift.md")
    words = (tmp_path / "drift.md").read_text(encoding="utf-8")
    assert r"sft: Verbosity \[W3a\] drifted most" in words
    assert "C4 Faithfulness to sources | no data |" in words
    drift(*models, "--out", tmp_path / "figures", "--format", "svg")
    assert (tmp_path / "figures" / "drift.svg").is_file()
    assert call("drift", *models, "--format", "html").code == 2


def test_a_report_on_averages_has_no_items(tmp_path: Path) -> None:
    columns = [str(metric.column) for metric in load_taxonomy("captrack").metrics]
    for name, value in (("base", 0.5), ("tuned", 0.6)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([["model_name", *columns[:9]], [name, *[value] * 9]])
    for aggregator in ("default", "captrack-relative"):
        out = tmp_path / f"{aggregator}.html"
        drift(
            tmp_path / "base.csv", tmp_path / "tuned.csv", "--aggregator", aggregator, "--out", out
        )
        payload = payload_in(out.read_text(encoding="utf-8"))
        assert payload["items"] == []
        unsure = "averages give no uncertainty" in payload["capabilities"]["headlines"][0]
        assert unsure == (aggregator == "captrack-relative")
        shown = set(payload["capabilities"]["rows"]["shown"])
        assert "no data" in shown
        assert not {"0.00", "0.0%"} & shown


LONG = ("a-model-with-a-name-that-ends-in-dpo", "a-model-with-a-name-that-ends-in-ift")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("small")
    return [
        write_responses(folder / "base", right=9, words=40, count=30),
        write_responses(folder / "sft", right=3, words=20, count=30),
        write_responses(folder / "dpo", right=9, words=42, count=30),
    ]


def test_labels_are_whole_at_80_columns(small: list[Path]) -> None:
    """Two long names that begin alike."""
    labelled = [f"{name}={path}" for name, path in zip(LONG, small[1:], strict=True)]
    lines = drift(small[0], *labelled, columns=80).splitlines()
    assert max(map(len, lines)) <= 80
    last = next(place for place, line in enumerate(lines) if line.startswith("CAN"))
    first = max(place for place in range(last) if not lines[place].strip())
    head = [line.split() for line in lines[first + 1 : last]]
    assert tuple("".join(parts) for parts in zip(*head, strict=True)) == LONG


def test_pairs_of_several_bases(small: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "drift.csv"
    text = drift("--pair", small[0], small[1], "--pair", f"b={small[2]}", f"c={small[0]}",
                 "--out", out)  # fmt: skip
    assert "Drift from base, b (captrack, default)" in text
    assert "c (from b): " in text
    assert "Probability of being largest" in text
    with out.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["base"], row["model"]) for row in rows} == {("base", "sft"), ("b", "c")}
    nothing = call("drift")
    assert (nothing.code, "there is nothing to compare" in nothing.err) == (2, True)


def test_a_chain(small: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "chain.html"
    text = drift(*small, "--chain", "--out", out)
    assert "What the step sft → dpo undid" in text
    undone = next(line for line in text.splitlines() if line.startswith("Knowledge and skills"))
    assert undone.split()[-4].startswith("+100%")
    assert "W3a_DD" not in text
    payload = payload_in(out.read_text(encoding="utf-8"))
    assert len(payload["items"]) == 3
    assert payload["capabilities"]["result"]["bases"] == ["base", "sft", "base"]


def test_the_deep_dive_is_shown_on_demand(small: list[Path]) -> None:
    text = drift(*small[:2], "--deep-dive")
    assert "Deep dive (not in any average)" in text
    for name in ("hedging", "directness"):
        assert any(line.startswith(f"W3a_DD.oasst1.{name}") for line in text.splitlines())


def test_names_of_metrics_are_whole_where_there_are_only_averages(tmp_path: Path) -> None:
    """Columns in which nothing can stand, such as flips of averages, take no room."""
    taxonomy = load_taxonomy("captrack")
    metrics = [*taxonomy.metrics, *taxonomy.deep_dive]
    columns = list(dict.fromkeys(str(metric.column) for metric in metrics))
    for name, value in (("base", 1.5), ("tuned", 1.54)):
        values = {str(metric.column): value for metric in metrics if metric.scale == "rating"}
        row = [values.get(column, value - 1) for column in columns]
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([["model_name", *columns], [name, *row]])
    files = (tmp_path / "base.csv", tmp_path / "tuned.csv")
    lines = drift(*files, "--by", "metric", "--deep-dive", columns=80).splitlines()
    found = {line.split()[0]: line for line in lines if line}
    assert {metric.id for metric in taxonomy.deep_dive} <= found.keys()
    assert "forgotten" not in found["metric"]
    # A rating has two digits, and so has its change.
    assert found["H4.mtbench"].split()[1:4] == ["1.50", "1.54", "+0.04"]
    assert not {"either", "metrics"} & found.keys()
    alone = drift(*files, columns=80)
    assert "either way mean change of the metrics in either direction, beyond noise." in alone
