"""Settings of an evaluation, independent of the harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forgetmap.errors import UsageError
from forgetmap.evaluation import Dtype, ModelSource, split_address


@dataclass(frozen=True, slots=True)
class HarnessRequest:
    """A model, tasks, and how they are asked; None leaves it to the harness or its tasks.

    Attributes:
        model: which model; one behind a server by its address.
        tasks: as the harness calls them.
        limit: at most so many items of each task.
        chat: whether the chat template is used.
        system_prompt: first message of a chat.
        shots: worked examples before a question.
        temperature: 0 is greedy.
        top_p: share of probability kept.
        max_new_tokens: limit of a response.
        repeats: answers per item.
        seed: of everything that is drawn at random.
        batch: most responses at a time.
        concurrency: requests to a server at the same time.
        weighs: whether what a server says of the likelihood of a text can be relied on.
        device: where a local model runs.
        dtype: of its weights.
        trust_remote_code: run Python code that comes with it.
        more: further arguments, handed on as they are.
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
        """Whether the model is behind a server."""
        return self.model.via == "server"

    @property
    def server(self) -> tuple[str, str]:
        """Where the server is, and what the model is called there."""
        return split_address(self.model.base)


@dataclass(frozen=True, slots=True)
class Driver:
    """What must be known of a harness to run it.

    Attributes:
        name: what it is called here.
        distribution: the package that must be installed.
        module: what `python -m` runs.
        install: how people get it.
        reserved: its arguments that are not the user's to give, as pairing depends on them.
        arguments: the arguments for an order; logs go to a folder, what it remembers beside it.
        environment: variables it needs besides those of this process.
        needs: what a server must be able to do.
        weighed: tasks that were scored by log-likelihood, by the logs in a folder.
        merges: an adapter must be merged into the weights before.
        litters: it writes into the folder of a model, so it gets another one with links.
        tidy: puts its logs where they are found.
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
    """A folder under its full name, so that it cannot be taken for anything else; else a hub id."""
    path = Path(name).expanduser()
    return str(path.absolute()) if path.exists() else name


def refuse(harness: str, options: Mapping[str, bool], *, hint: str) -> None:
    """Raise for the first of these options that was given."""
    for option, is_given in options.items():
        if is_given:
            raise UsageError(f"{harness} does not support {option}", hint=hint)
