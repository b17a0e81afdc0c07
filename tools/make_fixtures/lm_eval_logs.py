"""Make the log under tests/fixtures/logs/lm-eval/0.4.13 by really running lm-evaluation-harness.

    python -m venv v && v/bin/pip install "lm_eval[hf]==0.4.13" torch transformers
    v/bin/python tools/make_fixtures/lm_eval_logs.py

Runs offline in a minute, on a tiny Llama with random weights and items invented here. The
expectations of the tests are written beside it from the results of the harness in memory, not from
its files. Everything that identifies this machine is removed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parents[2] / "tests" / "fixtures" / "logs" / "lm-eval" / "0.4.13"
os.chdir(tempfile.mkdtemp())
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", OMP_NUM_THREADS="1")

import torch  # noqa: E402
import yaml  # type: ignore[import-untyped]  # noqa: E402
from lm_eval import simple_evaluate  # noqa: E402
from lm_eval.loggers import EvaluationTracker  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

MODEL, ITEMS = "tiny-llama", Path("items")
CHOICES = [
    ("What floats on the pond?", ["a green duck", "stone", "the old iron anchor"], "A"),
    ("Which is eaten?", ["a chair", "warm bread with honey", "mud", "sand of the sea"], "B"),
    ("Who sings at night?", ["the clock", "a nightingale in the hedge", "rain"], "B"),
    ("What is cold?", ["fire", "the sun at noon", "freshly fallen snow"], "C"),
]
SUMS = [("two and three", 5), ("four and four", 8), ("ten less one", 9)]


def make_model() -> None:
    """Create random weights, and a tokenizer trained on the items."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    source = random.Random(0)
    texts = [f"{q} {' '.join(source.sample(c, len(c)))}" for q, c, _ in CHOICES]
    raw.train_from_iterator([*texts, *(f"{q} #### {a}" for q, a in SUMS)], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")
    tokenizer.save_pretrained(MODEL)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(MODEL)


def make_tasks() -> None:
    """Write three tasks as YAML, and their items as JSON lines."""
    ITEMS.mkdir()
    choices = [
        {
            "id": f"item-{n}",
            "question": question,
            "choices": {"text": texts, "label": list("ABCD")[: len(texts)]},
            "answerKey": key,
        }
        for n, (question, texts, key) in enumerate(CHOICES)
    ]
    sums = [{"question": f"How many are {q}?", "answer": f"Count.\n#### {a}"} for q, a in SUMS]
    _write_items("choices", choices)
    _write_items("sums", sums)
    _write_task("tiny_choices", "choices", _choices_task())
    _write_task("tiny_sums", "sums", _sums_task())
    repeated = {**_sums_task(), "repeats": 3, "filter_list": [_filter("first", r"(\d)")]}
    repeated["generation_kwargs"] = {"do_sample": True, "temperature": 0.8, "max_gen_toks": 6}
    _write_task("tiny_repeats", "sums", repeated)


def _write_items(name: str, rows: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (ITEMS / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def _write_task(name: str, items: str, task: dict[str, Any]) -> None:
    shared = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{ITEMS}/{items}.jsonl"}},
        "test_split": "test",
        "metadata": {"version": 1.0},
    }
    Path(f"{name}.yaml").write_text(yaml.safe_dump({**shared, **task}), encoding="utf-8")


def _choices_task() -> dict[str, Any]:
    return {
        "output_type": "multiple_choice",
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_target": "{{choices.label.index(answerKey)}}",
        "doc_to_choice": "{{choices.text}}",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }


def _sums_task() -> dict[str, Any]:
    return {
        "output_type": "generate_until",
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n\n"], "do_sample": False, "max_gen_toks": 8},
        "filter_list": [_filter("strict-match", r"#### (\d+)"), _filter("last-number", r"(\d)")],
        "metric_list": [{"metric": "exact_match", "regexes_to_ignore": [r"(?s).*#### "]}],
    }


def _filter(name: str, pattern: str) -> dict[str, Any]:
    regex = {"function": "regex", "regex_pattern": pattern}
    return {"name": name, "filter": [regex, {"function": "take_first"}]}


def evaluate() -> dict[str, Any]:
    """Run the harness like its command line."""
    tracker = EvaluationTracker(output_path="out")
    results = simple_evaluate(
        model="hf",
        model_args=f"pretrained={MODEL},dtype=float32",
        tasks=["tiny_choices", "tiny_sums", "tiny_repeats"],
        task_manager=TaskManager(include_path=".", include_defaults=False),
        num_fewshot=0,
        device="cpu",
        batch_size=1,
        evaluation_tracker=tracker,
        bootstrap_iters=0,
    )
    assert results is not None
    samples = json.loads(json.dumps(results.pop("samples"), default=str))
    tracker.save_results_aggregated(results=results, samples=samples)
    written = json.loads(json.dumps(samples))
    for task in results["configs"]:
        tracker.save_results_samples(task_name=task, samples=written[task])
    return samples  # type: ignore[no-any-return]


def expected(samples: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the expected content of the files, from results in memory and the items above."""
    rows = []
    for task, logged in samples.items():
        for sample in logged:
            made = _expected_choice if task == "tiny_choices" else _expected_sum
            rows += made(task, sample)
    return rows


def _expected_choice(task: str, sample: dict[str, Any]) -> list[dict[str, Any]]:
    question, options, key = CHOICES[sample["doc_id"]]
    place = "ABCD".index(key)
    logliks = [pair[0] for pair in sample["filtered_resps"]]
    by_length = [loglik / len(option) for loglik, option in zip(logliks, options, strict=True)]
    return [
        {
            **_key(task, sample, metric),
            "k": len(options),
            "question": question,
            "options": options,
            "gold": options[place],
            "gold_index": place,
            "choice": options[values.index(max(values))],
            "logprob_gold": logliks[place],
            "logprob_answer": logliks[values.index(max(values))],
            "response": None,
            "answer": None,
        }
        for metric, values in (("acc", logliks), ("acc_norm", by_length))
    ]


def _expected_sum(task: str, sample: dict[str, Any]) -> list[dict[str, Any]]:
    words, result = SUMS[sample["doc_id"]]
    found = sample["filtered_resps"][0]
    missed = found == "[invalid]"
    return [
        {
            **_key(task, sample, "exact_match"),
            **({"outcome": "no_answer"} if missed else {}),
            "k": None,
            "question": f"How many are {words}?",
            "options": None,
            "gold": str(result),
            "answer": None if missed else found,
            "response": sample["resps"][0][0],
            "prompt": f"Question: How many are {words}?\nAnswer:",
        }
    ]


def _key(task: str, sample: dict[str, Any], metric: str) -> dict[str, Any]:
    return {
        "task": task,
        "item": str(sample["doc_id"]),
        "repeat": 0,
        "metric": metric,
        "scorer": sample["filter"],
        "score": sample[metric],
    }


def publish(samples: dict[str, Any]) -> None:
    """Copy the log without anything that identifies this machine."""
    shutil.rmtree(FIXTURE, ignore_errors=True)
    shutil.copytree(Path("out"), FIXTURE / "log")
    for path in FIXTURE.rglob("results_*.json"):
        results = json.loads(path.read_text(encoding="utf-8"))
        results["pretty_env_info"] = ""
        results["upper_git_hash"] = results["git_hash"] = None
        path.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    here = str(Path.cwd())
    assert not any(here in path.read_text() for path in FIXTURE.rglob("*.json*"))
    lines = "".join(json.dumps(row) + "\n" for row in expected(samples))
    (FIXTURE / "expected.jsonl").write_text(lines, encoding="utf-8")


def main() -> None:
    """Create everything."""
    make_model()
    make_tasks()
    publish(evaluate())


if __name__ == "__main__":
    main()
