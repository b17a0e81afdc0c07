"""How fast models are run here, beside lm-eval and bare transformers: same model, same items.

    python benchmarks/runner_speed.py --peers PYTHON [--model FOLDER_OR_GGUF] [--items N]

PYTHON is the interpreter of an environment with lm_eval and inspect_ai. Every measurement is a
separate process; loading and a first small request are not timed. Peers get several batch sizes, of
which the best counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WORDS = [
    first + second + third
    for first in ("ka", "lo", "mi", "re", "su", "ta", "vo", "ne")
    for second in ("ra", "li", "no", "pe", "du", "ge")
    for third in ("n", "s", "t", "r", "")
]
NEW_TOKENS = 64
BATCHES = (16, 64)
Work = Callable[[int], Any]


def words(source: random.Random, count: int) -> str:
    return " ".join(source.choice(WORDS) for _ in range(count))


def questions(count: int, *, common: bool) -> list[tuple[str, list[str]]]:
    """Return a 200-word beginning (of all items or of each item), a question, four options."""
    source = random.Random(7)
    shared = words(source, 200)
    return [
        (
            f"{shared if common else words(source, 200)} {words(source, 10 + number % 20)} is",
            [" " + words(source, source.randint(3, 6)) for _ in range(4)],
        )
        for number in range(count)
    ]


def prompts(count: int) -> list[str]:
    source = random.Random(8)
    return [words(source, source.randint(20, 100)) for _ in range(count)]


def make_model(folder: Path) -> None:
    """Create a tiny Llama with random weights, and a tokenizer trained on the words."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1000, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet
    )
    raw.train_from_iterator([" " + word for word in WORDS] * 9, trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        initializer_range=0.1,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def ours(model: str, task: str, batch: int) -> Work:
    from forgetmap.evaluation import load_model
    from forgetmap.evaluation.backends.base import Decoding, Prompt, Question
    from forgetmap.evaluation.backends.transformers.backend import TransformersBackend

    loaded = load_model(model)
    backend = TransformersBackend(loaded.model, loaded.tokenizer, rows=batch)

    def work(count: int) -> Any:
        if task == "generate":
            asked = [Prompt(text) for text in prompts(count)]
            found: dict[int, Any] = dict(
                backend.generate(asked, Decoding(max_new_tokens=NEW_TOKENS))
            )
            return [found[place].text for place in range(count)]
        items = [Question(t, tuple(o)) for t, o in questions(count, common=task == "common")]
        weighed: dict[int, Any] = dict(backend.loglikelihood(items))
        return [list(weighed[place].logprobs) for place in range(count)]

    return work


def bare(model: str, task: str, batch: int) -> Work:
    """Generate in batches of similar length."""
    import torch

    from forgetmap.evaluation import load_model

    if task != "generate":
        raise SystemExit("bare transformers only generates here")
    loaded = load_model(model)
    tokenizer = loaded.tokenizer
    tokenizer.padding_side = "left"

    def work(count: int) -> list[str]:
        asked = prompts(count)
        order = sorted(range(count), key=lambda place: -len(asked[place]))
        found = [""] * count
        for start in range(0, count, batch):
            places = order[start : start + batch]
            inputs = tokenizer(
                [asked[place] for place in places], padding=True, return_tensors="pt"
            )
            inputs.pop("token_type_ids", None)
            with torch.inference_mode():
                out = loaded.model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False)
            new = out[:, inputs.input_ids.shape[1] :]
            for place, tokens in zip(places, new, strict=True):
                found[place] = tokenizer.decode(tokens, skip_special_tokens=True)
        return found

    return work


def lm_eval(model: str, task: str, batch: int) -> Work:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    path = Path(model)
    where = {"pretrained": model}
    if path.suffix == ".gguf":
        where = {"pretrained": str(path.parent), "gguf_file": path.name}
    harness = HFLM(**where, batch_size=batch, device="cpu", dtype="float32")

    def work(count: int) -> Any:
        if task == "generate":
            options = {"until": [], "max_gen_toks": NEW_TOKENS, "do_sample": False}
            return harness.generate_until(
                [
                    Instance("generate_until", {}, (text, options), place)
                    for place, text in enumerate(prompts(count))
                ],
                disable_tqdm=True,
            )
        items = questions(count, common=task == "common")
        flat = [
            Instance("loglikelihood", {}, (text, option), place)
            for place, (text, options) in enumerate(items)
            for option in options
        ]
        sums = iter(value for value, _ in harness.loglikelihood(flat, disable_tqdm=True))
        return [[next(sums) for _ in options] for _, options in items]

    return work


def inspect_hf(model: str, task: str, batch: int) -> Work:
    from inspect_ai.model import GenerateConfig, get_model

    if task != "generate":
        raise SystemExit("Inspect's hf provider only generates")
    config = GenerateConfig(max_tokens=NEW_TOKENS, temperature=0, max_connections=batch)
    plain = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    provider = get_model(
        "hf/local",
        model_path=model,
        device="cpu",
        chat_template=plain,
        do_sample=False,
        config=config,
    )

    async def ask(count: int) -> list[str]:
        found = await asyncio.gather(*(provider.generate(text) for text in prompts(count)))
        return [output.completion for output in found]

    loop = asyncio.new_event_loop()
    return lambda count: loop.run_until_complete(ask(count))


SIDES = {"ours": ours, "bare": bare, "lm-eval": lm_eval, "inspect": inspect_hf}
TASKS = {"generate": ("bare", "lm-eval", "inspect"), "common": ("lm-eval",), "own": ("lm-eval",)}


def measure(side: str, model: str, task: str, batch: int, count: int) -> dict[str, Any]:
    """Time one side in this process, after a small request."""
    work = SIDES[side](model, task, batch)
    work(2)
    start = time.perf_counter()
    answers = work(count)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "peak_gib": peak, "answers": answers}


def in_process(python: str, side: str, model: str, task: str, batch: int, count: int) -> Any:
    command = [python, __file__, "--side", side, "--task", task, "--model", model]
    command += ["--batch", str(batch), "--items", str(count)]
    print("$", shlex.join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:])
        return None
    return json.loads(done.stdout.splitlines()[-1])


def agreement(one: Any, other: Any) -> str:
    """Return how many answers are the same, or the largest difference of log-likelihoods."""
    if isinstance(one[0], str):
        same = sum(first == second for first, second in zip(one, other, strict=True))
        return f"{same} of {len(one)} texts equal"
    gaps = [abs(a - b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)]
    return f"largest difference of a log-likelihood {max(gaps):.1e}"


def compare(task: str, model: str, count: int, peers: str | None) -> None:
    """Run ours once, each peer at each batch size; print the ratio to the best."""
    mine = in_process(sys.executable, "ours", model, task, 64, count)
    rate = count / mine["seconds"]
    print(f"  ours: {mine['seconds']:.2f} s, {rate:.1f} items/s, peak {mine['peak_gib']:.2f} GiB")
    for side in TASKS[task]:
        python = sys.executable if side == "bare" else peers
        if python is None:
            continue
        runs = [in_process(python, side, model, task, batch, count) for batch in BATCHES]
        runs = [run for run in runs if run]
        if not runs:
            continue
        best = min(runs, key=lambda run: run["seconds"])
        print(
            f"  {side}: {best['seconds']:.2f} s, peak {best['peak_gib']:.2f} GiB; "
            f"ours is {best['seconds'] / mine['seconds']:.2f} times as fast; "
            + agreement(mine["answers"], best["answers"]),
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="interpreter with lm_eval and inspect_ai")
    parser.add_argument("--model", help="folder or GGUF file; a tiny Llama is made if left out")
    parser.add_argument("--items", type=int, default=256)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--task", choices=TASKS)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args(arguments)
    if given.side:
        print(json.dumps(measure(given.side, given.model, given.task, given.batch, given.items)))
        return
    with tempfile.TemporaryDirectory() as folder:
        if given.model is None:
            make_model(Path(folder))
        for task in [given.task] if given.task else TASKS:
            print(f"{task}, {given.items} items")
            compare(task, given.model or folder, given.items, given.peers)


if __name__ == "__main__":
    main()
