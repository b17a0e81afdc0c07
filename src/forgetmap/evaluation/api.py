"""The public function `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forgetmap._lazy import require
from forgetmap.errors import UsageError
from forgetmap.evaluation.backends.base import BACKENDS, Backend, LoadOptions, ModelSource
from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.jobs import fit_suite
from forgetmap.evaluation.models import find_model, weights_stamp
from forgetmap.evaluation.own_settings import split_model
from forgetmap.evaluation.run import OnProgress, run_model
from forgetmap.evaluation.run_records import ModelIdentity
from forgetmap.evaluation.settings import Settings, find_style
from forgetmap.evaluation.suites.catalogue import load_suite
from forgetmap.records import ModelInfo

LOCAL, RAY = "local", "ray"


def evaluate(  # noqa: PLR0913  # as many as the command has
    model: Any,
    suite: str | Path | Suite,
    out: str | Path,
    *,
    tokenizer: Any = None,
    settings: Settings | None = None,
    salt: str | None = None,
    overwrite: bool = False,
    skip_too_long: bool = False,
    on_progress: OnProgress | None = None,
    **load_options: Any,
) -> Path:
    """Evaluate one model on a suite and write a run folder; resume an earlier attempt.

    Args:
        model: a folder, a hub id, `BASE+ADAPTER`, a GGUF file, any of these with the prefix
            `vllm:`, a server address (`http://HOST/v1#NAME`), a live transformers module (with
            `tokenizer`; it is not changed, even during training), or any backend. Settings can
            follow the name: `MODEL,stage=base,max_tokens=4096`.
        suite: name of a suite, a file of items, a hub data set, or a `Suite`.
        out: the run folder to write.
        tokenizer: tokenizer of a live module.
        settings: settings of the evaluation.
        salt: separates the random numbers of this run from those of other models; by default the
            name of the model, and nothing for a live module.
        overwrite: start again even if there is an earlier result.
        skip_too_long: skip items that exceed the context length; their number is recorded.
        on_progress: called after every answer.
        load_options: engine, traffic, device and so on, as for `open_model`.

    Example:
        >>> import forgetmap as fm
        >>> fm.evaluate("models/tuned", "basics", "runs/tuned")  # doctest: +SKIP
    """
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    name = Path(out).name
    request = split_model(model)
    model, settings = request.model, request.settings(settings)
    find_style(settings)  # fail before the model is loaded
    with model_unchanged(model if tokenizer is not None else None):
        backend, identity = open_model(
            model, tokenizer=tokenizer, name=name, salt=salt, **load_options
        )
        if skip_too_long:
            chosen = fit_suite(chosen, settings, [backend])
        return run_model(
            backend, chosen, Path(out), identity, settings,
            overwrite=overwrite, on_progress=on_progress,
        )  # fmt: skip


@contextmanager
def model_unchanged(model: Any) -> Iterator[None]:
    """Restore a model after an evaluation, so that training continues unaffected.

    Restores the training mode of modules, the `use_cache` setting and the random state of torch.

    Args:
        model: a live module; None if there is nothing to restore.
    """
    if model is None:
        yield
        return
    torch = require("torch", "Running models")
    training = [(module, module.training) for module in model.modules()]
    use_cache = getattr(model.config, "use_cache", None)
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            for module, is_training in training:
                module.training = is_training
            if use_cache is not None:
                model.config.use_cache = use_cache


def open_model(
    model: Any,
    *,
    tokenizer: Any = None,
    name: str = "model",
    salt: str | None = None,
    engine: str = LOCAL,
    actors: int | None = None,
    models_at_once: int = 1,
    **load_options: Any,
) -> tuple[Backend, ModelIdentity]:
    """Load a model and return its backend and its identity.

    Args:
        model: a path, a hub id, an address, a source, a live module, or any backend.
        tokenizer: tokenizer of a live module.
        name: name of the run.
        salt: separates the random numbers of this run from those of other models.
        engine: `local`, `ray`, or `ray:ADDRESS`.
        actors: with Ray, number of actors that hold the model.
        models_at_once: number of models that share the Ray cluster.
        load_options: dtype, device, trust_remote_code, rows, traffic and tensor_parallel, as in
            `LoadOptions`.
    """
    options = LoadOptions(**load_options)
    if isinstance(model, str | Path | ModelSource):
        source = model if isinstance(model, ModelSource) else find_model(str(model))
        # Two models must not share random numbers, or they would agree by chance.
        salt = str(source) if salt is None else salt
        info = ModelInfo(name=source.base, revision=source.revision, adapter=source.adapter)
        backend = _open_on_engine(source, engine, actors, options, models_at_once)
        stamp = weights_stamp(source)
        return backend, ModelIdentity(name, info, stamp, salt, source=str(source))
    if tokenizer is not None:
        require("torch", "Running models")
        from forgetmap.evaluation.backends.transformers.backend import TransformersBackend

        live = TransformersBackend(model, tokenizer, rows=options.rows)
        return live, ModelIdentity(name, salt=salt or "")
    if hasattr(model, "loglikelihood") and hasattr(model, "generate"):
        return model, ModelIdentity(name, salt=salt or "")
    raise UsageError(
        f"a live {type(model).__name__} needs its tokenizer",
        hint="pass tokenizer= with a live model, or a path or hub id instead.",
    )


def _open_on_engine(
    source: ModelSource,
    engine: str,
    actors: int | None,
    options: LoadOptions,
    models_at_once: int,
) -> Backend:
    """Open the backend of a model, in this process or on a cluster."""
    kind, _, address = engine.partition(":")
    if kind not in {LOCAL, RAY} or (kind == LOCAL and address):
        raise UsageError(
            f"there is no engine {engine!r}", hint="choose local, ray, or ray:ADDRESS."
        )
    _check_tensor_parallel(source, kind, options)
    if actors is not None and kind != RAY:
        raise UsageError("--actors needs a cluster", hint="add --engine ray.")
    if kind == LOCAL:
        return BACKENDS.get(source.via)(source, options)
    if source.via == "server":
        raise UsageError(
            "--engine has no effect on a server",
            hint="remove --engine; set the number of concurrent requests with --concurrency.",
        )
    from forgetmap.evaluation.backends.ray import open_ray

    return open_ray(
        source, options, address=address or None, actors=actors, models_at_once=models_at_once
    )


def _check_tensor_parallel(source: ModelSource, engine: str, options: LoadOptions) -> None:
    """Refuse tensor_parallel where it would be ignored: only vLLM in this process uses it."""
    if options.tensor_parallel is None:
        return
    if source.via in {"transformers", "server"}:
        raise UsageError(
            f"--tensor-parallel needs vLLM in this process, and {source} does not use it",
            hint="put vllm: before the model; set the number of GPUs of a server when you start "
            "it.",
        )
    if engine == RAY:
        raise UsageError(
            "a Ray actor has one GPU, so it cannot split a model across several",
            hint="remove --engine ray, or start a server with several GPUs and use its address.",
        )
