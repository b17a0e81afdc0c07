"""Make the Inspect logs under tests/fixtures/logs/inspect by really running Inspect.

    python -m venv v && v/bin/pip install inspect_ai==0.3.285 torch transformers accelerate
    v/bin/python tools/make_fixtures/inspect_logs.py

Runs offline in a minute. The model is Inspect's mock, which gives the answers below, and for one
log a tiny Llama that answers with one word. Ids, times and hashes differ from run to run; the
expectations of the tests (`expected.jsonl`, written by hand) do not. Tracebacks are emptied,
because they contain paths of the machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures" / "logs" / "inspect"
os.chdir(tempfile.mkdtemp())
os.environ.update(HF_HUB_OFFLINE="1", INSPECT_DISPLAY="none", OMP_NUM_THREADS="1")

from inspect_ai import Epochs, Task, eval  # noqa: A004, E402
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.log import (  # noqa: E402
    EvalLog,
    ProvenanceData,
    edit_score,
    invalidate_samples,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.log._recorders.chunked import convert_eval_logs_to_chunked  # noqa: E402
from inspect_ai.model import (  # noqa: E402
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import (  # noqa: E402
    Score,
    ScoreEdit,
    Scorer,
    Target,
    accuracy,
    choice,
    match,
    mean,
    scorer,
)
from inspect_ai.solver import (  # noqa: E402
    Generate,
    Solver,
    TaskState,
    generate,
    multiple_choice,
    solver,
    system_message,
)

ZSTANDARD = 93
"""Compression of members in archives of Inspect; the zipfile module gets it from Inspect."""
_TRACEBACK = re.compile(rb'("traceback(?:_ansi)?": ?)"(?:[^"\\]|\\.)*"')
_PACKAGES = re.compile(rb"/(?:[\w.+-]+/)+(?=site-packages/)")

CAPITALS = {
    "Capital of the invented country Aldova?": ["Brimm", "Brimm"],
    "Capital of the invented country Cestia?": ["Dorn", "I think it is Fell"],
    "Capital of the invented country Ghent-on-Sea?": ["", "Hollow"],
}
SHAPES = {
    "square": ("How many sides has a square?", ["three", "four", "five"], "B"),
    "circle": ("Which of these shapes has no corner?", ["circle", "cube", "star"], "A"),
    "even": ("Which of these numbers are even?", ["two", "three", "four"], ["A", "C"]),
    "red": ("What is mixed with yellow to get orange?", ["red", "blue", "green"], "A"),
}
SAID = {"square": "four", "circle": "star", "even": "two and four", "red": None}
"""Option that the mock names; None is an unreadable answer."""


def main() -> None:
    """Create every log."""
    epochs, scores = _match_with_epochs(), _many_kinds_of_scores()
    _keep("zstd-epochs", epochs)
    _keep("json-choices", _choices())
    _keep("zstd-scores", scores)
    _keep("chunked", _chunked(scores))
    _keep("cut-off", _cut_off(epochs))
    _keep("hf-local", _tiny_local_model())
    _build_old_log()


def _match_with_epochs() -> Path:
    """Three items, evaluated twice, with numbers as ids and settings that determine the answers."""
    said = {question: iter(answers) for question, answers in CAPITALS.items()}
    targets = ["Brimm", "Dorn", "Hollow"]
    dataset = [
        Sample(input=question, target=target, metadata={"category": "invented"})
        for question, target in zip(CAPITALS, targets, strict=True)
    ]
    task = Task(
        dataset=MemoryDataset(dataset, name="capitals"),
        solver=[system_message("Answer with one word."), generate()],
        scorer=match(location="exact"),
        epochs=Epochs(2, "mean"),
        name="geography/capitals",
        version="1-A",
    )
    return _run(task, lambda messages: next(said[messages[-1].text]), temperature=0.7, seed=5)


def _choices() -> Path:
    """Multiple choice with shuffled options, written as `.json`."""
    samples = [
        Sample(id=name, input=question, choices=list(options), target=target)
        for name, (question, options, target) in SHAPES.items()
    ]
    dataset = MemoryDataset(samples, name="shapes")
    dataset.shuffle_choices(seed=3)
    task = Task(
        dataset=dataset,
        solver=multiple_choice(multiple_correct=True),
        scorer=choice(),
        name="shapes",
    )
    return _run(task, _letters, form="json")


def _letters(messages: list[ChatMessage]) -> str:
    """Return the letters of the options that the mock names."""
    asked = messages[-1].text
    name = next(name for name, (question, _, _) in SHAPES.items() if question in asked)
    wanted = SAID[name]
    if wanted is None:
        return "I would rather not say."
    shown = re.findall(r"^([A-Z])\) (\w+)$", asked, re.MULTILINE)
    return "ANSWER: " + ", ".join(letter for letter, option in shown if option in wanted.split())


@scorer(metrics={"right": [accuracy()], "length": [mean()]})  # type: ignore[untyped-decorator]
def two_values() -> Scorer:
    """A scorer with two values, one text and one missing value."""

    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        value = {"right": said in target, "length": len(said), "note": "text", "gone": None}
        return Score(value=value, answer=said)

    return score


@scorer(metrics=[mean()])  # type: ignore[untyped-decorator]
def unsure() -> Scorer:
    """A scorer that returns a grade, a word, a numeric text, a list, or nothing."""
    values: dict[str, Any] = {
        "partial": "P",
        "none": "N",
        "word": "Yes",
        "text": "0.25",
        "list": [1, 0],
        "nan": float("nan"),
    }

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  # by its name
        reason = "refusal" if state.sample_id == "none" else None
        return Score(value=values.get(str(state.sample_id), 1), reason=reason)

    return score


@solver  # type: ignore[untyped-decorator]
def failing() -> Solver:
    """A solver that fails on a marked sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == "error":
            raise RuntimeError("the server went away")
        return await generate(state)

    return solve


NAMES = ("partial", "none", "word", "text", "list", "nan", "error", "edited", "invalid", "long")


def _many_kinds_of_scores() -> Path:
    """Two scorers, all kinds of values, an error, an edited score, an invalidated sample."""
    task = Task(
        dataset=MemoryDataset([_kind(name) for name in NAMES], name="kinds"),
        solver=failing(),
        scorer=[two_values(), unsure()],
        name="kinds",
        fail_on_error=False,
    )
    path = _run(task, _thinking)
    log = read_eval_log(str(path))
    edit_score(log, "edited", "unsure", ScoreEdit(value=0, provenance=_by("was too kind")))
    wanted = [str(each.uuid) for each in log.samples or [] if each.id == "invalid"]
    log = invalidate_samples(log, wanted, _by("wrong image"))
    write_eval_log(log, str(path))
    return path


def _kind(name: str) -> Sample:
    """Return a sample; one is a conversation, one has a question longer than summaries keep."""
    question = f"Say {name}." if name != "long" else f"Say long. {'Please. ' * 800}"
    messages = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content=question)]
    return Sample(id=name, input=messages if name == "word" else question, target=[name, "other"])


def _thinking(messages: list[ChatMessage]) -> ModelOutput:
    """Answer as requested; once with thinking before."""
    wanted = messages[-1].text.split()[1].rstrip(".")
    if wanted != "text":
        return ModelOutput.from_content("mock", wanted)
    thought = ContentReasoning(reasoning="They want a text.")
    message = ChatMessageAssistant(content=[thought, ContentText(text=wanted)], source="generate")
    return ModelOutput.from_message(message, stop_reason="max_tokens")


def _by(reason: str) -> ProvenanceData:
    return ProvenanceData(author="tester", reason=reason)


def _chunked(source: Path) -> Path:
    """The same log with its samples in chunks, except one."""
    folder = source.parent / "chunked"
    convert_eval_logs_to_chunked(str(source), str(folder), chunk_size=2, attachments_chunk_bytes=64)
    path = folder / source.name
    whole = "samples/word_epoch_1.json"
    with zipfile.ZipFile(source) as log:
        kept = log.read(whole)
    pieces = [
        (name, data) for name, data in _members(path) if not name.startswith(whole[:-5] + "/")
    ]
    return _written(path, [*pieces, (whole, kept)])


def _cut_off(source: Path) -> Path:
    """The log of a killed run: no header, no summaries of all samples, one sample less."""
    last = {
        "header.json",
        "summaries.json",
        "reductions.json",
        "_journal/summaries/3.json",
        "samples/3_epoch_2.json",
    }
    kept = [(name, data) for name, data in _members(source) if name not in last]
    return _written(source.with_stem("cut-off"), kept)


def _build_old_log() -> None:
    """A log as written by versions before 0.3.70: deflated, summaries without options and answers.

    It is built from their source, not by running them.
    """
    sample: dict[str, Any] = {
        "id": 1,
        "epoch": 1,
        "input": "Which is a colour?",
        "choices": ["loud", "green"],
        "target": "B",
        "messages": [{"role": "user", "content": "Which is a colour? A) loud B) green"}],
        "output": {"choices": [{"message": {"content": "ANSWER: B"}, "stop_reason": "stop"}]},
        "scores": {"choice": {"value": "C", "answer": "B", "explanation": "ANSWER: B"}},
        "metadata": {},
    }
    thin = {name: sample[name] for name in ("id", "epoch", "input", "target")}
    header = {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": "r",
            "created": "2024-11-02T10:00:00-05:00",
            "task": "colours",
            "task_id": "t",
            "task_version": 0,
            "dataset": {"name": "colours", "samples": 1},
            "model": "openai/old",
            "config": {},
        },
        "results": {"scores": [{"name": "choice", "scorer": "choice", "metrics": {}}]},
    }
    folder = FIXTURES / "0.3.60-built" / "log"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "old.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
        summary = {**thin, "scores": {"choice": {"value": "C"}}, "completed": True}
        archive.writestr("summaries.json", json.dumps([summary]))
        archive.writestr("header.json", json.dumps(header))


def _tiny_local_model() -> Path:
    """Create a model whose weights know one word."""
    _save_tiny_model(Path("tiny-llama"))
    samples = [Sample(input=f"one plus {word}", target=word) for word in ("one", "two")]
    task = Task(dataset=MemoryDataset(samples, name="sums"), scorer=match(), name="sums")
    model = get_model("hf/local", model_path="tiny-llama", device="cpu", do_sample=False)
    log = eval(task, model=model, log_dir="logs", max_tokens=3, seed=1, max_samples=1)[0]
    return _place(log)


def _save_tiny_model(folder: Path) -> None:
    """Save a model that answers everything with `two`."""
    import torch  # only this log needs it
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
    )

    words = ["<pad>", "<end>", "user", "assistant", "one", "two", "three", "plus"]
    inner = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, "<pad>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<end>", unk_token="<pad>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m.role + ' ' + m.content }} {% endfor %}"
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=0,
        eos_token_id=1,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
        model.model.embed_tokens.weight.fill_(1)
        model.model.norm.weight.fill_(1)
        model.lm_head.weight[words.index("two")].fill_(1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _run(
    task: Task,
    answer: Callable[[list[ChatMessage]], str | ModelOutput],
    form: str = "eval",
    **settings: Any,
) -> Path:
    """Run the mock on one sample after the other; return the path of the log."""

    def output(messages: list[ChatMessage], *_: object) -> ModelOutput:
        said = answer(messages)
        made = said if isinstance(said, ModelOutput) else ModelOutput.from_content("mock", said)
        # Otherwise the mock counts tokens with a vocabulary from the network.
        made.usage = ModelUsage(input_tokens=11, output_tokens=3, total_tokens=14)
        return made

    model = get_model("mockllm/model", custom_outputs=output)
    log = eval(task, model=model, log_dir="logs", log_format=form, max_samples=1, **settings)[0]
    return _place(log)


def _place(log: EvalLog) -> Path:
    if log.status != "success":
        raise SystemExit(
            f"{log.eval.task} ended with {log.status}: {log.error.message if log.error else None}"
        )
    return Path(log.location.removeprefix("file://"))


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            yield name, archive.read(name)


def _written(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", ZSTANDARD) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def _keep(name: str, path: Path) -> None:
    """Move a log to the fixtures, without paths of this machine."""
    folder = FIXTURES / f"0.3.285-{name}" / "log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept = folder / f"{name}{path.suffix}"
    if path.suffix == ".json":
        kept.write_bytes(_without_paths(path.read_bytes()))
    else:
        _written(kept, [(member, _without_paths(data)) for member, data in _members(path)])


def _without_paths(data: bytes) -> bytes:
    cleaned = _PACKAGES.sub(b"", _TRACEBACK.sub(rb'\1""', data))
    found = re.search(rb"(?:/home|/root|/tmp|/work|/Users)/[^\"]{0,60}", cleaned)
    if found:
        raise SystemExit(f"a path of this machine is left in a log: {found[0]!r}")
    return cleaned


if __name__ == "__main__":
    main()
