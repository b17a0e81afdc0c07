"""The verb: evaluate whatever model the user has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forgetmap.errors import UsageError
from forgetmap.evaluation.backend import Backend
from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.models import LoadedModel, Source, find_model, load_model, need
from forgetmap.evaluation.run import Examinee, Report, run_model
from forgetmap.evaluation.servers.traffic import Traffic
from forgetmap.evaluation.settings import Settings
from forgetmap.evaluation.suites.catalogue import load_suite
from forgetmap.records import ModelInfo

RAY = "ray"
WEIGHTS = (".safetensors", ".bin", ".gguf", ".pt", ".pth")


def evaluate(
    model: Any,
    suite: str | Path | Suite,
    out: str | Path,
    *,
    tokenizer: Any = None,
    settings: Settings | None = None,
    salt: str | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    **opening: Any,
) -> Path:
    """Evaluate one model on a suite and write a run folder; go on where an earlier attempt ended.

    Args:
        model: a folder, a hub id, `BASE+ADAPTER`, a GGUF file, any of these behind `vllm:`, the
            address of a server (`http://HOST/v1#NAME`), a live transformers module (then with
            `tokenizer`), or any backend.
        suite: its name, a file of items, a hub data set, or a suite.
        out: the run folder.
        tokenizer: of a live module.
        settings: how the model is asked.
        salt: tells the random numbers of this run from those of other models; what the model is
            called if left out, and nothing for a live one.
        overwrite: start anew, whatever is there.
        report: called after every answer.
        opening: engine, traffic, device and the like, as for `open_model`.

    Example:
        >>> import forgetmap as fm
        >>> fm.evaluate("models/tuned", "basics", "runs/tuned")  # doctest: +SKIP
    """
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    name = Path(out).name
    backend, who = open_model(model, tokenizer=tokenizer, name=name, salt=salt, **opening)
    return run_model(backend, chosen, Path(out), who, settings, overwrite=overwrite, report=report)


def open_model(
    model: Any,
    *,
    tokenizer: Any = None,
    name: str = "model",
    salt: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    traffic: Traffic | None = None,
    rows: int | None = None,
    **loading: Any,
) -> tuple[Backend, Examinee]:
    """Load a model, and say who it is.

    Args:
        model: a path, a hub id, an address, a source, a live module, or any backend.
        tokenizer: of a live module.
        name: of the run.
        salt: tells the random numbers of this run from those of other models.
        engine: `local`, `ray`, or `ray:ADDRESS`.
        workers: how many hold the model, with Ray.
        traffic: what a server is expected to bear.
        rows: most responses at work at a time.
        loading: dtype, device and trust_remote_code, as for `load_model`.
    """
    if isinstance(model, str | Path | Source):
        source = model if isinstance(model, Source) else find_model(str(model))
        backend = _on_engine(source, engine, workers, traffic, loading | {"rows": rows})
        # Two models must not share random numbers, or they would agree by chance.
        salt = str(source) if salt is None else salt
        return backend, Examinee(name, _info(source), weights_stamp(source), salt)
    if tokenizer is not None:
        return _backend(LoadedModel(name, model, tokenizer), rows), Examinee(name, salt=salt or "")
    if hasattr(model, "loglikelihood") and hasattr(model, "generate"):
        return model, Examinee(name, salt=salt or "")
    raise UsageError(
        f"a {type(model).__name__} without its tokenizer cannot answer",
        hint="pass tokenizer= with a live model, or give a path or hub id.",
    )


def _on_engine(
    source: Source,
    engine: str,
    workers: int | None,
    traffic: Traffic | None,
    loading: dict[str, Any],
) -> Backend:
    """The backend of a model: in this process, behind its server, or on a cluster."""
    kind, _, address = engine.partition(":")
    if kind not in {"local", RAY} or (kind == "local" and address):
        raise UsageError(
            f"there is no engine {engine!r}", hint="choose local, ray, or ray:ADDRESS."
        )
    if workers is not None and kind != RAY:
        raise UsageError("workers belong to a cluster", hint="add --engine ray.")
    if source.via == "server":
        if kind == RAY:
            raise UsageError(
                "a server spreads its work itself",
                hint="leave out --engine; --concurrency says how much it is asked at once.",
            )
        from forgetmap.evaluation.servers.backend import open_server  # heavy

        return open_server(source.base, traffic or Traffic())
    if kind == RAY:
        from forgetmap.evaluation.ray_backend import open_ray  # heavy

        return open_ray(source, address or None, workers=workers, **loading)
    if source.via == "vllm":
        from forgetmap.evaluation.vllm_backend import open_vllm  # heavy

        return open_vllm(source, **loading)
    rows = loading.pop("rows")
    return _backend(load_model(source, **loading), rows)


def weights_stamp(source: Source) -> str:
    """What changes when a local model is written again; nothing for one on the hub."""
    stamps = []
    for place in (source.base, source.adapter):
        folder = Path(place) if place else None
        if folder is None or not folder.is_dir():
            continue
        for file in sorted(folder.iterdir()):
            if file.suffix in WEIGHTS:
                stat = file.stat()
                stamps.append(f"{file.name}:{stat.st_size}:{stat.st_mtime_ns}")
    return ";".join(stamps)


def _info(source: Source) -> ModelInfo:
    return ModelInfo(name=source.base, revision=source.revision, adapter=source.adapter)


def _backend(loaded: LoadedModel, rows: int | None) -> Backend:
    need("torch")
    from forgetmap.evaluation.transformers_backend import TransformersBackend  # torch

    return TransformersBackend.of(loaded, **({} if rows is None else {"rows": rows}))
