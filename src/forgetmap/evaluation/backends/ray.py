"""Models on the actors of a Ray cluster; another actor repeats the batch of a dead one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forgetmap import __version__
from forgetmap.errors import ForgetmapError, ModelError
from forgetmap.evaluation.backends.base import (
    BACKENDS,
    Backend,
    Decoding,
    Failure,
    Likelihoods,
    LoadOptions,
    Message,
    ModelSource,
    Prompt,
    Question,
    Response,
)
from forgetmap.evaluation.backends.ray_cluster import Share, check_alive, connect_ray, share_of

CHECK_SECONDS = 5.0
"""Seconds without an answer after which we look whether the cluster is still there."""
ROOM_SECONDS = 300.0
"""How long a cluster may be full before we give up; one that grows needs minutes."""
BATCH = 64
BATCHES_PER_ACTOR = 4
"""Batches of each actor, at least: the last ones to finish wait for one another."""
MAX_BATCH_DEATHS = 2
"""Actors that may die over one batch, and then over each of its items."""
MAX_DEATHS = 10
"""Actors in a row that may die without one batch done."""

Result = Response | Likelihoods | Failure


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What an actor says of its model."""

    version: str
    context: int
    has_chat_template: bool
    template_hash: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """What an actor is given at once.

    Attributes:
        indices: of its requests in the call.
        requests: prompts or questions.
        call: tells it from batches of a call that was given up half-way.
        deaths: of actors that had it.
    """

    indices: tuple[int, ...]
    requests: tuple[Any, ...]
    call: int
    deaths: int = 0

    def after_death(self) -> list[Batch]:
        """What is to be done again: the same once more, then one by one, then nothing."""
        retry = replace(self, deaths=self.deaths + 1)
        if retry.deaths < MAX_BATCH_DEATHS:
            return [retry]
        if len(self.indices) == 1:
            return []
        pairs = zip(self.indices, self.requests, strict=True)
        return [Batch((index,), (request,), self.call) for index, request in pairs]


class ModelActor:
    """Lives in a process of the cluster and holds the model."""

    def __init__(self) -> None:
        self._backend: Backend | None = None

    def load(self, source: ModelSource, options: LoadOptions) -> ModelProfile:
        """Make the model ready."""
        self._backend = backend = BACKENDS.get(source.via)(source, options)
        return ModelProfile(
            __version__, backend.context, backend.has_chat_template, backend.template_hash
        )

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the backend that answers at once."""
        return getattr(self._backend, method)(*args)

    def answer(self, method: str, requests: Sequence[Any], *args: Any) -> list[tuple[int, Result]]:
        """All answers of a batch."""
        return list(getattr(self._backend, method)(requests, *args))


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """How an actor is started, and how it is told to load the model."""

    start: Callable[[], Any]
    load: Callable[[Any], Any]


class RayActors:
    """The actors: which are idle, which load the model, and new ones for those that died."""

    def __init__(self, ray: Any, spec: ActorSpec, size: int) -> None:
        self._ray = ray
        self._spec = spec
        self._size = size
        self._idle: list[Any] = []
        self._pending: dict[Any, tuple[Any, Batch | None]] = {}
        self._deaths = 0
        self._calls = 0
        self._profile: ModelProfile | None = None
        actors = [spec.start() for _ in range(size)]
        self._wait_for_room(actors)
        for actor in actors:
            self._load(actor)

    @property
    def profile(self) -> ModelProfile:
        """What the first actor says that has loaded the model."""
        while self._profile is None:
            self._collect()
        return self._profile

    def call_any(self, method: str, *args: Any) -> Any:
        """Call a method of the backend of any idle actor."""
        while True:
            while not self._idle:
                self._collect()
            actor = self._idle[-1]
            reference = actor.call.remote(method, *args)
            while not self._ray.wait([reference], timeout=CHECK_SECONDS)[0]:
                check_alive(self._ray)
            result = self._result(actor, reference)
            if result is not None:
                return result
            self._idle.remove(actor)

    def share(self, method: str, requests: Sequence[Any], size: int, *args: Any) -> Iterator[Any]:
        """Spread requests over the actors; yields (index, result) as they are done."""
        self._calls += 1
        call = self._calls
        waiting = deque(self._batches(requests, size))
        left = len(waiting)
        while left:
            while waiting and self._idle:
                batch, actor = waiting.popleft(), self._idle.pop()
                self._pending[actor.answer.remote(method, batch.requests, *args)] = (actor, batch)
            for batch, results in self._collect():
                if batch.call != call:
                    continue
                if results is not None:
                    left -= 1
                    yield from ((batch.indices[index], result) for index, result in results)
                    continue
                again = batch.after_death()
                left += len(again) - 1
                waiting.extendleft(again)
                if not again:
                    yield batch.indices[0], Failure("Every actor that received this item died.")

    def _batches(self, requests: Sequence[Any], most: int) -> list[Batch]:
        """Neighbours stay together: they begin alike, and what is shared is computed once."""
        size = max(1, min(most, -(-len(requests) // (self._size * BATCHES_PER_ACTOR))))
        return [
            Batch(tuple(range(start, start + len(part))), part, self._calls)
            for start in range(0, len(requests), size)
            for part in [tuple(requests[start : start + size])]
        ]

    def _collect(self) -> list[tuple[Batch, list[tuple[int, Result]] | None]]:
        """Batches that were done or lost since; a lost one has no results."""
        done, _ = self._ray.wait(list(self._pending), timeout=CHECK_SECONDS)
        if not done:
            check_alive(self._ray)
        batches = []
        for reference in done:
            actor, batch = self._pending.pop(reference)
            result = self._result(actor, reference)
            if result is not None:
                self._idle.append(actor)
            if batch is None:
                self._profile = self._profile or result
            else:
                batches.append((batch, result))
        return batches

    def _result(self, actor: Any, reference: Any) -> Any:
        """The result of a call; None if the actor is lost, and then another replaces it."""
        try:
            result = self._ray.get(reference)
        except self._losses() as error:
            self._replace(actor, error)
            return None
        except self._ray.exceptions.RayTaskError as error:
            raise _actor_error(error) from None
        if isinstance(result, ModelProfile):
            _check_version(result)
        else:
            self._deaths = 0
        return result

    def _wait_for_room(self, actors: Sequence[Any]) -> None:
        """One actor is enough to begin; the others come when the cluster has room for them."""
        ready = [actor.__ray_ready__.remote() for actor in actors]
        end = time.monotonic() + ROOM_SECONDS
        while not self._ray.wait(ready, timeout=min(CHECK_SECONDS, ROOM_SECONDS))[0]:
            check_alive(self._ray)
            if time.monotonic() > end:
                raise ModelError(
                    f"The Ray cluster could not start an actor within {ROOM_SECONDS:,.0f} s.",
                    hint="wait for other jobs (ray status), or use smaller actors: more "
                    "--actors share the processors.",
                )

    def _load(self, actor: Any) -> None:
        self._pending[self._spec.load(actor)] = (actor, None)

    def _replace(self, actor: Any, error: Exception) -> None:
        """Start a new actor for one that is gone, if the cluster is still there."""
        check_alive(self._ray)
        if "No module named 'forgetmap" in str(error):
            raise ModelError(
                "forgetmap is not installed on the machines of the cluster.",
                hint="install it on each machine: pip install "
                f'"forgetmap[run,ray]=={__version__}".',
            ) from error
        self._deaths += 1
        if self._deaths >= MAX_DEATHS:
            raise ModelError(
                f"{self._deaths} actors died in a row; the last error: "
                f"{' '.join(str(error).split())[:300]}",
                hint="if memory ran out, use fewer --actors or a smaller --batch. All answers "
                "so far are kept.",
            ) from error
        self._ray.kill(actor)
        self._load(self._spec.start())

    def _losses(self) -> tuple[type[Exception], ...]:
        """What a lost actor, or a lost machine, looks like."""
        errors = self._ray.exceptions
        return (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
            errors.NodeDiedError,
        )


class RayBackend:
    """Answers prompts with the actors of a cluster."""

    def __init__(self, actors: RayActors, rows: int | None) -> None:
        self._actors = actors
        self._rows = rows or BATCH

    @property
    def context(self) -> int:
        """Most tokens of prompt and response together."""
        return self._actors.profile.context

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` works."""
        return self._actors.profile.has_chat_template

    @property
    def template_hash(self) -> str | None:
        """Tells chat templates apart."""
        return self._actors.profile.template_hash

    def chat(self, messages: Sequence[Message]) -> str:
        """Messages as the text the model expects, ready for its answer."""
        return str(self._actors.call_any("chat", list(messages)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return list(self._actors.call_any("count_tokens", list(texts)))

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Continue each prompt."""
        return self._actors.share("generate", prompts, self._rows, decoding)

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Weigh the continuations of each question."""
        return self._actors.share("loglikelihood", questions, self._rows)


def open_ray(
    source: ModelSource,
    options: LoadOptions | None = None,
    *,
    address: str | None = None,
    actors: int | None = None,
    models_at_once: int = 1,
) -> RayBackend:
    """Load a model on actors of a cluster.

    Args:
        source: the model; each machine must be able to read it.
        options: how each actor loads it.
        address: HOST:PORT of the cluster, `auto` for the one of this machine; none starts one here.
        actors: how many hold the model: one per GPU if left out, or two without any.
        models_at_once: how many models share the cluster.

    Raises:
        ModelError: there is no such cluster, or an actor cannot load the model.
    """
    options = options or LoadOptions()
    ray = connect_ray(address)
    on_gpu = options.device != "cpu"
    size, share = share_of(ray, actors, on_gpu=on_gpu, models_at_once=models_at_once)
    spec = actor_spec(ray, _with_absolute_paths(source), share, options)
    return RayBackend(RayActors(ray, spec, size), options.rows)


def actor_spec(ray: Any, source: ModelSource, share: Share, options: LoadOptions) -> ActorSpec:
    """How actors for this model are started."""
    role = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=0)(ModelActor)
    return ActorSpec(role.remote, lambda actor: actor.load.remote(source, options))


def _with_absolute_paths(source: ModelSource) -> ModelSource:
    """Paths that do not depend on the folder an actor is started in."""

    def absolute(name: str | None) -> str | None:
        return str(Path(name).resolve()) if name and Path(name).exists() else name

    base = absolute(source.base) or source.base
    return replace(source, base=base, adapter=absolute(source.adapter))


def _check_version(profile: ModelProfile) -> None:
    if profile.version != __version__:
        raise ModelError(
            f"The actors have forgetmap {profile.version}, but this process has {__version__}.",
            hint="install the same version on every machine of the cluster.",
        )


def _actor_error(error: Any) -> ForgetmapError:
    """What went wrong on an actor, as if it had happened here."""
    if isinstance(error.cause, ForgetmapError):
        return error.cause
    text = " ".join(str(error.cause).split())[:300]
    return ModelError(
        f"An actor failed: {type(error.cause).__name__}: {text}",
        hint="try --engine local; all answers so far are kept.",
    )
