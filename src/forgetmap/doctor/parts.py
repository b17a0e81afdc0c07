"""Everything that may or may not work here, and how to find out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from forgetmap.doctor import trials
from forgetmap.errors import ForgetmapError
from forgetmap.harness_runs import DRIVERS

State = Literal["works", "installed", "missing", "broken"]
"""`installed` is there, but trying it would take long."""

BROKEN = (ImportError, OSError, RuntimeError, ValueError, AttributeError, TypeError, KeyError)
"""What libraries raise that are there and do not work."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that may or may not work here.

    Attributes:
        group: what it is a part of.
        name: what it is called.
        serves: what it is good for.
        trial: tries it and says what was found; raises if it does not work.
        todo: what to do if it is missing.
        thorough: tries what takes long; what is found without it is not tried.
        needed: nothing works without it.
    """

    group: str
    name: str
    serves: str
    trial: Callable[[], str]
    todo: str
    thorough: Callable[[], str] | None = None
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a part."""

    group: str
    name: str
    serves: str
    state: State
    detail: str
    todo: str = ""
    needed: bool = False

    @property
    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def examine(part: Part, *, thorough: bool = False) -> Finding:
    """Try one part; whatever goes wrong is a finding."""
    about = (part.group, part.name, part.serves)
    try:
        detail = part.trial()
        if part.thorough is None:
            return Finding(*about, "works", detail, needed=part.needed)
        if not thorough:
            return Finding(*about, "installed", detail, needed=part.needed)
        return Finding(*about, "works", part.thorough(), needed=part.needed)
    except ModuleNotFoundError as error:
        missing = f"the package {error.name} is not installed"
        return Finding(*about, "missing", missing, part.todo, part.needed)
    except ForgetmapError as error:
        return Finding(*about, "broken", error.message, error.hint, part.needed)
    except BROKEN as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        again = f"install it again; {part.todo}" if part.todo else "install it again."
        return Finding(*about, "broken", reason, again, part.needed)


def all_parts(servers: Sequence[str] = ()) -> list[Part]:
    """What is tried, in the order it is shown; servers by address."""
    return [*_core(), *_models(servers), *_harnesses(), *_scoring(), *_tables(), *_showing()]


def extra(name: str) -> str:
    """How an optional part is installed."""
    return f'pip install "forgetmap[{name}]".'


def _core() -> list[Part]:
    group = "forgetmap"
    return [
        Part(
            group, "Python", "everything", trials.python, "use Python 3.11 or newer.", needed=True
        ),
        Part(group, "DuckDB", "comparing", trials.duckdb, "pip install duckdb.", needed=True),
        Part(group, "memory and disk", "everything", trials.room, "make room.", needed=True),
    ]


def _models(servers: Sequence[str]) -> list[Part]:
    group = "models"
    hub = "give models as folders, or download them where the hub can be reached."
    parts = [
        Part(group, "transformers", "run, map", trials.transformers, extra("run")),
        Part(group, "LoRA adapters", "BASE+ADAPTER", trials.imports("peft"), extra("run")),
        Part(group, "GGUF files", "MODEL.gguf", trials.imports("gguf"), extra("run")),
        Part(group, "model hub", "hub ids", trials.hub, hub),
        Part(group, "vLLM", "vllm:MODEL", trials.vllm, extra("vllm"), trials.vllm_starts),
        Part(group, "Ray", "--engine ray", trials.imports("ray"), extra("ray"), trials.ray_starts),
        Part(group, "servers", "http://HOST/v1#MODEL", trials.client, extra("run")),
    ]
    own_servers = [
        Part(group, address, "a server", trials.server(address), extra("run"), needed=True)
        for address in servers
    ]
    return parts + own_servers


def _harnesses() -> list[Part]:
    return [
        Part(
            "other harnesses",
            name,
            f"--harness {name}",
            trials.package(driver.distribution, driver.module.split(".")[0]),
            f"{driver.install}, or name the Python that has it: --harness-python.",
        )
        for name, driver in DRIVERS.items()
    ]


def _scoring() -> list[Part]:
    group = "scoring"
    names = ("emoji", "jsonschema", "langdetect", "markdown_it")
    return [
        Part(group, "sandbox", "programs that models wrote", trials.sandbox, ""),
        Part(group, "mathematics", "formulas", trials.imports("math_verify"), extra("drift")),
        Part(group, "other scorers", "drift", trials.imports(*names), extra("drift")),
    ]


def _tables() -> list[Part]:
    group = "tables"
    remote = trials.imports("aiohttp", "gcsfs", "huggingface_hub", "s3fs")
    return [
        Part(group, "pandas", "dataframes", trials.imports("pandas"), extra("pandas")),
        Part(group, "Polars", "dataframes", trials.imports("polars"), extra("polars")),
        Part(group, "Spark", "dataframes", trials.spark, extra("spark"), trials.spark_starts),
        Part(group, "remote paths", "https://, s3://, gs://, hf://", remote, extra("remote")),
    ]


def _showing() -> list[Part]:
    group = "showing"
    pages = trials.imports("starlette", "uvicorn")
    read = "open reports on another machine, or install a browser."
    return [
        Part(group, "figures", "reports", trials.figures, "pip install vl-convert-python."),
        Part(group, "explorer", "serve", pages, extra("serve")),
        Part(group, "browser", "reading reports", trials.browser, read),
    ]
