"""Settings of an evaluation, independent of the harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forgetmap.errors import UsageError
from forgetmap.evaluation import Dtype, ModelSource, split_address


@dataclass(frozen=True, slots=True)
class HarnessRequest:
    """A model, tasks and settings; None leaves a setting to the harness or its tasks.

    Attributes:
        model: the model; on a server, its address.
        tasks: names of tasks in the harness.
        limit: maximum number of items per task.
        chat: whether to use the chat template.
        system_prompt: system message of a chat.
        shots: number of worked examples before a question.
        temperature: sampling temperature; 0 is greedy.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum length of a response.
        repeats: number of answers per item.
        seed: random seed.
        batch: maximum number of concurrent responses.
        concurrency: number of concurrent requests to a server.
        weighs: whether log-probabilities of the server are reliable.
        device: device of a local model.
        dtype: number format of its weights.
        trust_remote_code: run Python code that comes with the model.
        more: further arguments, passed on unchanged.
    """

    model: ModelSource
    tasks: tuple[str, ...]
    limit: int | None = None
    chat: bool | None = None
    system_prompt: str | None = None
    shots: int | None = None
    temperature: float = 0.0
    top_p: float | None = None
    max_new_tokens: int | None = None
    repeats: int = 1
    seed: int = 0
    batch: int | None = None
    concurrency: int = 16
    weighs: bool = True
    device: str = "auto"
    dtype: Dtype = "auto"
    trust_remote_code: bool = False
    more: tuple[str, ...] = ()

    @property
    def is_served(self) -> bool:
        """Whether the model is on a server."""
        return self.model.via == "server"

    @property
    def server(self) -> tuple[str, str]:
        """Address of the server, and name of the model on it."""
        return split_address(self.model.base)


@dataclass(frozen=True, slots=True)
class Driver:
    """Description of a harness that forgetmap can run.

    Attributes:
        name: its name in forgetmap.
        distribution: the package that must be installed.
        module: module that `python -m` runs.
        install: how to install it.
        reserved: arguments that users cannot set, because pairing depends on them.
        arguments: returns the arguments of a request; logs go to a folder, caches beside it.
        environment: returns additional environment variables.
        needs: returns the ability that a server needs.
        weighed: returns the tasks in a log folder that were scored by log-likelihood.
        merges: whether an adapter must be merged into the weights first.
        litters: whether it writes into the folder of a model, so that it gets a folder with links.
        tidy: moves its logs to where they are read.
    """

    name: str
    distribution: str
    module: str
    install: str
    reserved: frozenset[str]
    arguments: Callable[[HarnessRequest, Path], list[str]]
    environment: Callable[[HarnessRequest], Mapping[str, str]]
    needs: Callable[[HarnessRequest], str]
    weighed: Callable[[Path], Sequence[str]]
    merges: bool
    litters: bool = False
    tidy: Callable[[Path], None] = lambda _: None


def local_path(name: str) -> str:
    """Return the absolute path of a folder, so that it cannot be mistaken; else a hub id."""
    path = Path(name).expanduser()
    return str(path.absolute()) if path.exists() else name


def refuse(harness: str, options: Mapping[str, bool], *, hint: str) -> None:
    """Raise an error for the first given option."""
    for option, is_given in options.items():
        if is_given:
            raise UsageError(f"{harness} does not support {option}", hint=hint)
