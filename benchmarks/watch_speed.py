"""How long one look at a live model takes, beside lm-eval on the same model and items.

    python benchmarks/watch_speed.py [--items N] [--suite NAME] [--repeats N] [--moved SIZE]

Both run in this process, on the same live module with the same prompts, continuations, stop texts
and limits. lm-eval gets the loaded model (`HFLM(pretrained=module)`) and several batch sizes, of
which the best counts, and is timed in two ways: bare requests (`loglikelihood` and
`generate_until`; no tasks, no metrics, no files), and as its users run it (`simple_evaluate` with
samples, without bootstrap). Ours is a whole look: answers, grades, a run folder written and read
back; with and without the KL to the start. Unchanged answers are not generated again, so the
weights are changed before each look (`--moved`, the size of a random change relative to the
weights), and the share of changed answers is printed. Seconds are processor time, as both sides
have one thread and other programs may be running; wall-clock seconds are printed beside them.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

BATCHES = (16, 64, 256)
VOCABULARY = 4000


def make_model(suite: Any, width: int, layers: int) -> tuple[Any, Any]:
    """Create a Llama with random weights, and a tokenizer trained on the questions of the suite."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    texts = [f"Question: {item.question}\n{' '.join(item.options)} {item.gold}\nAnswer:"
             for task in suite.tasks for item in task.load()]  # fmt: skip
    raw.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=width, intermediate_size=3 * width,
        num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=4,
        max_position_embeddings=2048, initializer_range=0.1, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval(), tokenizer


def timed(
    work: Callable[[], Any], repeats: int, prepare: Callable[[], Any] = lambda: None
) -> tuple[float, float]:
    """Return median processor and wall-clock seconds, after a first call that is not counted."""
    work()
    seconds = []
    for _ in range(repeats):
        prepare()
        began = time.process_time(), time.perf_counter()
        work()
        seconds.append((time.process_time() - began[0], time.perf_counter() - began[1]))
    cpu, clock = zip(*seconds, strict=True)
    return statistics.median(cpu), statistics.median(clock)


def move_weights(model: Any, size: float) -> None:
    """Change all weights at random, like a few training steps."""
    import torch

    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(size * weight.std() * torch.randn_like(weight))


def answers_of(folder: Path) -> list[Any]:
    """Return the answers of a run folder, in the order of its items."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "texts.parquet", columns=["task", "item", "response"])
    return [
        row["response"]
        for row in sorted(table.to_pylist(), key=lambda row: (row["task"], row["item"]))
    ]


def our_looks(model: Any, tokenizer: Any, suite: Any, folder: Path) -> tuple[Any, Any]:
    """Return functions for a look without and with the KL."""
    from forgetmap.evaluation import Settings
    from forgetmap.records import TrainingInfo
    from forgetmap.train.live_probe import LiveProbe, read_scores

    probe = LiveProbe(model, tokenizer, suite, Settings(), folder)
    folder.mkdir(parents=True, exist_ok=True)
    probe.keep_start()

    def look() -> Any:
        return read_scores(folder / probe.answer(TrainingInfo(step=1), None))

    def look_with_kl() -> Any:
        return look(), probe.kl()

    return look, look_with_kl


def asked(model: Any, tokenizer: Any, suite: Any) -> tuple[list[Any], Any]:
    """Return the jobs and the settings of a look."""
    from forgetmap.evaluation import Settings, TransformersBackend, make_jobs, resolve

    backend = TransformersBackend(model, tokenizer)
    settings = resolve(Settings(), backend)
    return make_jobs(suite, settings, backend, ""), settings


def bare_requests(harness: Any, jobs: Sequence[Any], settings: Any) -> Callable[[], Any]:
    """Return a function that runs only the requests of lm-eval."""
    from lm_eval.api.instance import Instance

    from forgetmap.evaluation import continuations_of

    weighed = [job for job in jobs if job.is_weighed(settings)]
    written = [job for job in jobs if not job.is_weighed(settings)]
    options = {
        "until": list(settings.decoding.stop),
        "max_gen_toks": settings.decoding.max_new_tokens,
        "do_sample": False,
    }
    flat = [
        Instance("loglikelihood", {}, (job.prompt, end), number)
        for number, job in enumerate(weighed)
        for end in continuations_of(job.item, job.task)
    ]
    texts = [
        Instance("generate_until", {}, (job.prompt, dict(options)), number)
        for number, job in enumerate(written)
    ]

    def work() -> Any:
        sums = harness.loglikelihood(flat, disable_tqdm=True) if flat else []
        said = harness.generate_until(texts, disable_tqdm=True) if texts else []
        return sums, said

    return work


def whole_evaluation(harness: Any, jobs: Sequence[Any], settings: Any) -> Callable[[], Any]:
    """Return a function that runs `simple_evaluate` on a task with options and one without."""
    import datasets
    from lm_eval import simple_evaluate
    from lm_eval.api.task import ConfigurableTask

    from forgetmap.evaluation import continuations_of

    rows = {
        "weighed": [
            {"text": job.prompt, "choices": list(continuations_of(job.item, job.task)),
             "gold": job.item.options.index(job.item.gold)}
            for job in jobs if job.is_weighed(settings)
        ],
        "written": [
            {"text": job.prompt, "gold": job.item.gold}
            for job in jobs if not job.is_weighed(settings)
        ],
    }  # fmt: skip
    tasks = []
    for name, own in rows.items():
        if not own:
            continue
        data = datasets.Dataset.from_list(own)
        config: dict[str, Any] = {
            "task": name,
            "custom_dataset": lambda data=data, **_: {"test": data},
            "test_split": "test",
            "doc_to_text": "{{text}}",
            "target_delimiter": "",
        }
        if name == "weighed":
            config |= {
                "output_type": "multiple_choice", "doc_to_choice": "choices",
                "doc_to_target": "gold", "metric_list": [{"metric": "acc"}],
            }  # fmt: skip
        else:
            config |= {
                "output_type": "generate_until", "doc_to_target": "gold",
                "metric_list": [{"metric": "exact_match"}],
                "generation_kwargs": {
                    "until": list(settings.decoding.stop), "do_sample": False,
                    "max_gen_toks": settings.decoding.max_new_tokens,
                },
            }  # fmt: skip
        tasks.append(ConfigurableTask(config=config))
    return lambda: simple_evaluate(
        model=harness, tasks=tasks, bootstrap_iters=0, log_samples=True, verbosity="ERROR"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="basics")
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--kind", choices=("weighed", "written", "all"), default="weighed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--moved", type=float, default=0.001)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import torch
    from lm_eval.models.huggingface import HFLM

    from forgetmap.evaluation import load_suite
    from forgetmap.train.probe_items import count_items, part_of_suite

    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    suite = load_suite(given.suite)
    if given.kind != "all":
        wanted = given.kind == "weighed"
        kept = tuple(task for task in suite.tasks if (task.kind == "option") == wanted)
        suite = replace(suite, tasks=kept)
    suite = part_of_suite(suite, given.items, seed=0)
    model, tokenizer = make_model(suite, given.width, given.layers)
    jobs, settings = asked(model, tokenizer, suite)
    weighed = sum(job.is_weighed(settings) for job in jobs)
    print(f"{count_items(suite)} items of {given.suite}: {weighed} weighed, the others written")
    look, look_with_kl = our_looks(model, tokenizer, suite, folder / "looks")
    (ours, clock), (with_kl, kl_clock) = (
        timed(one, given.repeats, lambda: move_weights(model, given.moved))
        for one in (look, look_with_kl)
    )
    before = answers_of(folder / "looks" / "step-000001")
    move_weights(model, given.moved)
    look()
    after = answers_of(folder / "looks" / "step-000001")
    changed = sum(one != other for one, other in zip(before, after, strict=True)) / len(before)
    print(
        f"a look: {ours:.2f} s ({clock:.2f} s on the clock); with KL {with_kl:.2f} s "
        f"({kl_clock:.2f} s); {100 * changed:.0f} % of the answers change from look to look",
        flush=True,
    )
    for name, make in (("bare requests", bare_requests), ("simple_evaluate", whole_evaluation)):
        best, clock = min(
            timed(
                make(HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch), jobs, settings),
                given.repeats,
            )
            for batch in BATCHES
        )
        print(
            f"lm-eval, {name}: {best:.2f} s ({clock:.2f} s); a look is {best / ours:.1f} times as "
            f"fast, with KL {best / with_kl:.1f} times",
            flush=True,
        )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
