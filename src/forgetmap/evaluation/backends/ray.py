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
"""Seconds without an answer before the cluster is checked."""
ROOM_SECONDS = 300.0
"""Seconds to wait for room on the cluster; a cluster that scales up needs minutes."""
BATCH = 64
BATCHES_PER_ACTOR = 4
"""Minimum number of batches per actor, so that actors finish at about the same time."""
MAX_BATCH_DEATHS = 2
"""Number of actors that may die on one batch, and then on each of its items."""
MAX_DEATHS = 10
"""Number of actors that may die in a row without a finished batch."""

Result = Response | Likelihoods | Failure


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Description of the model by an actor."""

    version: str
    context: int
    has_chat_template: bool
    template_hash: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that an actor receives at once.

    Attributes:
        indices: indices of the requests in the call.
        requests: prompts or questions.
        call: number of the call; identifies batches of a call that was abandoned.
        deaths: number of actors that died on it.
    """

    indices: tuple[int, ...]
    requests: tuple[Any, ...]
    call: int
    deaths: int = 0

    def after_death(self) -> list[Batch]:
        """Return the batches to retry: the same one again, then single requests, then none."""
        retry = replace(self, deaths=self.deaths + 1)
        if retry.deaths < MAX_BATCH_DEATHS:
            return [retry]
        if len(self.indices) == 1:
            return []
        pairs = zip(self.indices, self.requests, strict=True)
        return [Batch((index,), (request,), self.call) for index, request in pairs]


class ModelActor:
    """Holds the model in a process of the cluster."""

    def __init__(self) -> None:
        self._backend: Backend | None = None

    def load(self, source: ModelSource, options: LoadOptions) -> ModelProfile:
        """Load the model."""
        self._backend = backend = BACKENDS.get(source.via)(source, options)
        return ModelProfile(
            __version__, backend.context, backend.has_chat_template, backend.template_hash
        )

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the backend that returns immediately."""
        return getattr(self._backend, method)(*args)

    def answer(self, method: str, requests: Sequence[Any], *args: Any) -> list[tuple[int, Result]]:
        """Return all answers of a batch."""
        return list(getattr(self._backend, method)(requests, *args))


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """Functions that start an actor and make it load the model."""

    start: Callable[[], Any]
    load: Callable[[Any], Any]


class RayActors:
    """The actors of a model; those that die are replaced."""

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
        """Description by the first actor that has loaded the model."""
        while self._profile is None:
            self._collect()
        return self._profile

    def call_any(self, method: str, *args: Any) -> Any:
        """Call a method of the backend on any idle actor."""
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
        """Distribute requests over the actors; yield (index, result) as they are done."""
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
        """Split requests into batches of neighbours, whose common prefixes are computed once."""
        size = max(1, min(most, -(-len(requests) // (self._size * BATCHES_PER_ACTOR))))
        return [
            Batch(tuple(range(start, start + len(part))), part, self._calls)
            for start in range(0, len(requests), size)
            for part in [tuple(requests[start : start + size])]
        ]

    def _collect(self) -> list[tuple[Batch, list[tuple[int, Result]] | None]]:
        """Return batches that have ended since the last call; a lost batch has None as results."""
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
        """Return the result of a call; if the actor is lost, replace it and return None."""
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
        """Wait for the first actor; the others start when the cluster has room for them."""
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
        """Start a new actor in place of a lost one, if the cluster is still alive."""
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
        """Return the exceptions of a lost actor or machine."""
        errors = self._ray.exceptions
        return (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
            errors.NodeDiedError,
        )


class RayBackend:
    """Answers prompts with actors of a cluster."""

    def __init__(self, actors: RayActors, rows: int | None) -> None:
        self._actors = actors
        self._rows = rows or BATCH

    @property
    def context(self) -> int:
        """Maximum number of tokens of prompt and response together."""
        return self._actors.profile.context

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` works."""
        return self._actors.profile.has_chat_template

    @property
    def template_hash(self) -> str | None:
        """Hash of the chat template."""
        return self._actors.profile.template_hash

    def chat(self, messages: Sequence[Message]) -> str:
        """Format messages with the chat template, ready for the answer of the model."""
        return str(self._actors.call_any("chat", list(messages)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return list(self._actors.call_any("count_tokens", list(texts)))

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Generate a response to each prompt."""
        return self._actors.share("generate", prompts, self._rows, decoding)

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Compute the log-likelihoods of the continuations of each question."""
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
        address: HOST:PORT of a cluster, or `auto` for that of this machine; by default, one is
            started.
        actors: number of actors that hold the model; by default one per GPU, or two without GPUs.
        models_at_once: number of models that share the cluster.

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
    """Return how actors of this model are started."""
    role = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=0)(ModelActor)
    return ActorSpec(role.remote, lambda actor: actor.load.remote(source, options))


def _with_absolute_paths(source: ModelSource) -> ModelSource:
    """Make paths independent of the working folder of an actor."""

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
    """Convert an error of an actor into the error it would have been in this process."""
    if isinstance(error.cause, ForgetmapError):
        return error.cause
    text = " ".join(str(error.cause).split())[:300]
    return ModelError(
        f"An actor failed: {type(error.cause).__name__}: {text}",
        hint="try --engine local; all answers so far are kept.",
    )
