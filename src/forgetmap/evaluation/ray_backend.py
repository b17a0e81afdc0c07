"""Models on the workers of a Ray cluster; what a dead worker had is done again by another."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forgetmap import __version__
from forgetmap.errors import ForgetmapError, ModelError
from forgetmap.evaluation.backend import (
    Decoding,
    Failure,
    Likelihoods,
    Message,
    Prompt,
    Question,
    Response,
)
from forgetmap.evaluation.models import Source
from forgetmap.evaluation.ray_cluster import Share, check_alive, connect, share_of

PULSE = 5.0
"""Seconds without an answer after which we look whether the cluster is still there."""
ROOM_SECONDS = 300.0
"""How long a cluster may be full before we give up; one that grows needs minutes."""
BATCH = 64
SHARES = 4
"""Batches of each worker, at least: the last ones to finish wait for one another."""
CHANCES = 2
"""Workers that may die over one batch, and then over each of its items."""
MOST_DEATHS = 10
"""Workers in a row that may die without one batch done."""

Result = Response | Likelihoods | Failure


@dataclass(frozen=True, slots=True)
class Card:
    """What a worker says of its model."""

    version: str
    context: int
    has_chat_template: bool
    template_hash: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """What a worker is given at once.

    Attributes:
        places: of what is asked, in the request.
        asked: prompts or questions.
        request: tells it from those of a request that was given up half-way.
        deaths: of workers that had it.
    """

    places: tuple[int, ...]
    asked: tuple[Any, ...]
    request: int
    deaths: int = 0

    def after_death(self) -> list[Batch]:
        """What is to be done again: the same once more, then one by one, then nothing."""
        died = replace(self, deaths=self.deaths + 1)
        if died.deaths < CHANCES:
            return [died]
        if len(self.places) == 1:
            return []
        pairs = zip(self.places, self.asked, strict=True)
        return [Batch((place,), (asked,), self.request) for place, asked in pairs]


class Worker:
    """Lives in a process of the cluster and holds the model."""

    def __init__(self) -> None:
        self._backend: Any = None

    def load(self, source: Source, loading: dict[str, Any]) -> Card:
        """Make the model ready."""
        from forgetmap.evaluation.api import open_model  # imports this module

        self._backend, _ = open_model(source, **loading)
        backend = self._backend
        return Card(__version__, backend.context, backend.has_chat_template, backend.template_hash)

    def ask(self, method: str, *given: Any) -> Any:
        """Call a method of the backend that answers at once."""
        return getattr(self._backend, method)(*given)

    def answer(self, method: str, asked: Sequence[Any], *how: Any) -> list[tuple[int, Result]]:
        """All answers of a batch."""
        return list(getattr(self._backend, method)(asked, *how))


@dataclass(frozen=True, slots=True)
class Hiring:
    """How a worker is had, and how it is told to load the model."""

    recruit: Callable[[], Any]
    load: Callable[[Any], Any]


class Crew:
    """The workers: who is idle, who loads the model, and who takes the place of the dead."""

    def __init__(self, ray: Any, hiring: Hiring, size: int) -> None:
        self._ray = ray
        self._hiring = hiring
        self._size = size
        self._idle: list[Any] = []
        self._at_work: dict[Any, tuple[Any, Batch | None]] = {}
        self._deaths = 0
        self._requests = 0
        self._card: Card | None = None
        workers = [hiring.recruit() for _ in range(size)]
        self._wait_for_room(workers)
        for worker in workers:
            self._engage(worker)

    @property
    def card(self) -> Card:
        """What the first worker says that has loaded the model."""
        while self._card is None:
            self._collect()
        return self._card

    def ask(self, method: str, *given: Any) -> Any:
        """Have any worker answer at once."""
        while True:
            while not self._idle:
                self._collect()
            worker = self._idle[-1]
            reference = worker.ask.remote(method, *given)
            while not self._ray.wait([reference], timeout=PULSE)[0]:
                check_alive(self._ray)
            found = self._result(worker, reference)
            if found is not None:
                return found
            self._idle.remove(worker)

    def share(self, method: str, asked: Sequence[Any], size: int, *how: Any) -> Iterator[Any]:
        """Spread what is asked over the workers; yields (place, result) as they are done."""
        self._requests += 1
        request = self._requests
        waiting = deque(self._batches(asked, size))
        left = len(waiting)
        while left:
            while waiting and self._idle:
                batch, worker = waiting.popleft(), self._idle.pop()
                self._at_work[worker.answer.remote(method, batch.asked, *how)] = (worker, batch)
            for batch, found in self._collect():
                if batch.request != request:
                    continue
                if found is not None:
                    left -= 1
                    yield from ((batch.places[place], result) for place, result in found)
                    continue
                again = batch.after_death()
                left += len(again) - 1
                waiting.extendleft(again)
                if not again:
                    yield batch.places[0], Failure("Each worker that was asked this died of it.")

    def _batches(self, asked: Sequence[Any], most: int) -> list[Batch]:
        """Neighbours stay together: they begin alike, and what is shared is computed once."""
        size = max(1, min(most, -(-len(asked) // (self._size * SHARES))))
        return [
            Batch(tuple(range(start, start + len(part))), part, self._requests)
            for start in range(0, len(asked), size)
            for part in [tuple(asked[start : start + size])]
        ]

    def _collect(self) -> list[tuple[Batch, list[tuple[int, Result]] | None]]:
        """Batches that were done or lost since; a lost one has no results."""
        done, _ = self._ray.wait(list(self._at_work), timeout=PULSE)
        if not done:
            check_alive(self._ray)
        found = []
        for reference in done:
            worker, batch = self._at_work.pop(reference)
            result = self._result(worker, reference)
            if result is not None:
                self._idle.append(worker)
            if batch is None:
                self._card = self._card or result
            else:
                found.append((batch, result))
        return found

    def _result(self, worker: Any, reference: Any) -> Any:
        """What a worker found; None if it is lost, and then another takes its place."""
        try:
            result = self._ray.get(reference)
        except self._losses() as error:
            self._bury(worker, error)
            return None
        except self._ray.exceptions.RayTaskError as error:
            raise _told(error) from None
        if isinstance(result, Card):
            _check_version(result)
        else:
            self._deaths = 0
        return result

    def _wait_for_room(self, workers: Sequence[Any]) -> None:
        """One worker is enough to begin; the others come when the cluster has room for them."""
        placed = [worker.__ray_ready__.remote() for worker in workers]
        end = time.monotonic() + ROOM_SECONDS
        while not self._ray.wait(placed, timeout=min(PULSE, ROOM_SECONDS))[0]:
            check_alive(self._ray)
            if time.monotonic() > end:
                raise ModelError(
                    f"The Ray cluster had no room for a worker in {ROOM_SECONDS:,.0f} s.",
                    hint="wait until others are done (ray status), or ask for smaller workers: "
                    "more --actors share the processors.",
                )

    def _engage(self, worker: Any) -> None:
        self._at_work[self._hiring.load(worker)] = (worker, None)

    def _bury(self, worker: Any, error: Exception) -> None:
        """Somebody else takes the place of a worker that is gone, if the cluster is still there."""
        check_alive(self._ray)
        if "No module named 'forgetmap" in str(error):
            raise ModelError(
                "The machines of the cluster have no forgetmap.",
                hint=f'install it on each: pip install "forgetmap[run,ray]=={__version__}".',
            ) from error
        self._deaths += 1
        if self._deaths >= MOST_DEATHS:
            raise ModelError(
                f"{self._deaths} workers died one after the other, the last one of: "
                f"{' '.join(str(error).split())[:300]}",
                hint="if the memory is used up, take fewer --actors or a smaller --batch. Every "
                "answer so far is kept.",
            ) from error
        self._ray.kill(worker)
        self._engage(self._hiring.recruit())

    def _losses(self) -> tuple[type[Exception], ...]:
        """What a lost worker, or a lost machine, looks like."""
        found = self._ray.exceptions
        return (
            found.RayActorError,
            found.WorkerCrashedError,
            found.OutOfMemoryError,
            found.ObjectLostError,
            found.NodeDiedError,
        )


class RayBackend:
    """Answers prompts with the workers of a cluster."""

    def __init__(self, crew: Crew, rows: int | None) -> None:
        self._crew = crew
        self._rows = rows or BATCH

    @property
    def context(self) -> int:
        """Most tokens of prompt and response together."""
        return self._crew.card.context

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` works."""
        return self._crew.card.has_chat_template

    @property
    def template_hash(self) -> str | None:
        """Tells chat templates apart."""
        return self._crew.card.template_hash

    def chat(self, messages: Sequence[Message]) -> str:
        """Messages as the text the model expects, ready for its answer."""
        return str(self._crew.ask("chat", list(messages)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return list(self._crew.ask("count_tokens", list(texts)))

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Continue each prompt."""
        return self._crew.share("generate", prompts, self._rows, decoding)

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Weigh the continuations of each question."""
        return self._crew.share("loglikelihood", questions, self._rows)


def open_ray(
    source: Source,
    address: str | None = None,
    *,
    workers: int | None = None,
    rows: int | None = None,
    **loading: Any,
) -> RayBackend:
    """Load a model on workers of a cluster.

    Args:
        source: the model; each machine must be able to read it.
        address: HOST:PORT of the cluster, `auto` for the one of this machine; none starts one here.
        workers: how many hold the model: one per GPU if left out, or two without any.
        rows: most responses of one worker at a time.
        loading: dtype, device and trust_remote_code.

    Raises:
        ModelError: there is no such cluster, or a worker cannot load the model.
    """
    ray = connect(address)
    size, share = share_of(ray, workers, on_gpu=loading.get("device") != "cpu")
    hiring = hire_for(ray, _found_anywhere(source), share, loading | {"rows": rows})
    return RayBackend(Crew(ray, hiring, size), rows)


def hire_for(ray: Any, source: Source, share: Share, loading: dict[str, Any]) -> Hiring:
    """How workers for this model are had."""
    role = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=0)(Worker)
    return Hiring(role.remote, lambda worker: worker.load.remote(source, loading))


def _found_anywhere(source: Source) -> Source:
    """Paths that do not depend on the folder a worker is started in."""

    def whole(place: str | None) -> str | None:
        return str(Path(place).resolve()) if place and Path(place).exists() else place

    return replace(source, base=whole(source.base) or source.base, adapter=whole(source.adapter))


def _check_version(card: Card) -> None:
    if card.version != __version__:
        raise ModelError(
            f"The workers have forgetmap {card.version}, and this is {__version__}.",
            hint="install the same version on every machine of the cluster.",
        )


def _told(error: Any) -> ForgetmapError:
    """What went wrong on a worker, as if it had happened here."""
    if isinstance(error.cause, ForgetmapError):
        return error.cause
    text = " ".join(str(error.cause).split())[:300]
    return ModelError(
        f"A worker failed: {type(error.cause).__name__}: {text}",
        hint="try the same with --engine local; every answer so far is kept.",
    )
