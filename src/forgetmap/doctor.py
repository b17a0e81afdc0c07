"""Check of the installation: which features work on this machine, and how to enable the others.

Each part has a function that tries it and returns a short description, or raises; `all_parts` lists
them.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from forgetmap._plugins import Addition, Registry
from forgetmap.errors import ForgetmapError, ModelError
from forgetmap.harness_runs import DRIVERS, require_locks

State = Literal["works", "installed", "missing", "broken"]
"""`installed` means present, but not tried because that takes long."""

LIBRARY_ERRORS = (
    ImportError,
    OSError,
    RuntimeError,
    ValueError,
    AttributeError,
    TypeError,
    KeyError,
)
"""Errors of libraries that are installed but do not work."""

MIN_JAVA = 17
MIN_FREE_GIB = 1.0
HUB = ("huggingface.co", 443)
HUB_TIMEOUT_S = 3.0
START_TIMEOUT_S = 300.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "open", "xdg-open")
CHART = {
    "data": {"values": [{"x": 1}, {"x": 2}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}


@dataclass(frozen=True, slots=True)
class Part:
    """A feature that may or may not work here.

    Attributes:
        group: heading under which it is listed.
        name: its name.
        serves: its purpose.
        trial: tries it and returns a description; raises if it does not work.
        todo: what to do if it is missing.
        thorough: a slow trial that runs on request; without it, a part that has one is only
            `installed`.
        needed: whether forgetmap cannot work without it.
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
    """Result of trying a part."""

    group: str
    name: str
    serves: str
    state: State
    detail: str
    todo: str = ""
    needed: bool = False

    @property
    def as_json(self) -> dict[str, Any]:
        """Return all fields."""
        return asdict(self)


def examine(part: Part, *, thorough: bool = False) -> Finding:
    """Try one part; errors become findings."""
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
    except LIBRARY_ERRORS as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        again = f"reinstall it; {part.todo}" if part.todo else "install it again."
        return Finding(*about, "broken", reason, again, part.needed)


def all_parts(servers: Sequence[str] = ()) -> list[Part]:
    """Return all parts in display order; servers are given by address."""
    return [
        *_core_parts(),
        *_model_parts(servers),
        *_harness_parts(),
        *_scoring_parts(),
        *_table_parts(),
        *_report_parts(),
        *_plugin_parts(),
    ]


def _pip_install(name: str) -> str:
    """Return the command that installs an extra."""
    return f'pip install "forgetmap[{name}]".'


def _core_parts() -> list[Part]:
    group = "forgetmap"
    return [
        Part(group, "Python", "everything", try_python, "use Python 3.11 or newer.", needed=True),
        Part(group, "DuckDB", "comparing", try_duckdb, "pip install duckdb.", needed=True),
        Part(group, "memory and disk", "everything", try_resources, "make room.", needed=True),
    ]


def _model_parts(servers: Sequence[str]) -> list[Part]:
    group = "models"
    parts = [
        Part(group, "transformers", "run, map", try_transformers, _pip_install("run")),
        Part(group, "LoRA adapters", "BASE+ADAPTER", try_imports("peft"), _pip_install("run")),
        Part(group, "GGUF files", "MODEL.gguf", try_imports("gguf"), _pip_install("run")),
        Part(
            group, "TRL trainers", "watch, protect, lab", try_imports("trl"), _pip_install("train")
        ),
        Part(group, "model hub", "hub ids", try_hub, _pip_install("run")),
        Part(group, "vLLM", "vllm:MODEL", try_vllm, _pip_install("vllm"), start_vllm),
        Part(group, "Ray", "--engine ray", try_imports("ray"), _pip_install("ray"), start_ray),
        Part(group, "servers", "http://HOST/v1#MODEL", try_client, _pip_install("server")),
    ]
    own_servers = [
        Part(group, address, "a server", try_server(address), _pip_install("server"), needed=True)
        for address in servers
    ]
    return parts + own_servers


def _harness_parts() -> list[Part]:
    return [
        Part(
            "other harnesses",
            name,
            f"--harness {name}",
            try_harness(driver.distribution, driver.module.split(".")[0]),
            f"{driver.install}, or pass the Python that has it: --harness-python.",
        )
        for name, driver in DRIVERS.items()
    ]


def _scoring_parts() -> list[Part]:
    group = "scoring"
    names = ("emoji", "jsonschema", "langdetect", "markdown_it")
    return [
        Part(group, "sandbox", "model-written programs", try_sandbox, ""),
        Part(group, "mathematics", "formulas", try_imports("math_verify"), _pip_install("drift")),
        Part(group, "other scorers", "drift", try_imports(*names), _pip_install("drift")),
    ]


def _table_parts() -> list[Part]:
    group = "tables"
    remote = try_imports("aiohttp", "gcsfs", "huggingface_hub", "s3fs")
    return [
        Part(group, "pandas", "dataframes", try_imports("pandas"), _pip_install("pandas")),
        Part(group, "Polars", "dataframes", try_imports("polars"), _pip_install("polars")),
        Part(group, "Spark", "dataframes", try_spark, _pip_install("spark"), start_spark),
        Part(
            group, "remote paths", "https://, s3://, gs://, hf://", remote, _pip_install("remote")
        ),
    ]


def _report_parts() -> list[Part]:
    group = "showing"
    pages = try_imports("starlette", "uvicorn")
    read = "open reports on another machine, or install a browser."
    return [
        Part(group, "figures", "reports", try_figures, "pip install vl-convert-python."),
        Part(group, "explorer", "serve", pages, _pip_install("serve")),
        Part(group, "browser", "reading reports", try_browser, read),
    ]


def _plugin_parts() -> list[Part]:
    """Return one part for each entry that another package adds."""
    from forgetmap.comparison import ADDED_ESTIMATORS
    from forgetmap.evaluation import BACKENDS, SUITES
    from forgetmap.merge import METHODS
    from forgetmap.report import FIGURES
    from forgetmap.scoring import SCORERS
    from forgetmap.sources import ADAPTERS

    registries: tuple[Registry[Any], ...] = (
        ADAPTERS, SUITES, BACKENDS, SCORERS, METHODS, ADDED_ESTIMATORS, FIGURES,
    )  # fmt: skip
    return [
        Part(
            "added by other packages",
            f"{added.kind} {added.name}",
            f"{added.package} {added.version}",
            try_plugin(registry, added),
            f"fix or uninstall {added.package}.",
        )
        for registry in registries
        for added in registry.additions()
    ]


def try_plugin(registry: Registry[Any], added: Addition) -> Callable[[], str]:
    """Return a trial that loads an entry of a package, unless it is ignored."""

    def trial() -> str:
        about = f"{added.package} {added.version}, {added.value}"
        if added.left_out:
            raise ForgetmapError(
                f"{about} is ignored: {added.left_out}", hint=f"uninstall {added.package}."
            )
        registry.get(added.name)
        return about

    return trial


def try_python() -> str:
    """Return version and path of the running Python."""
    return f"{sys.version.split()[0]} at {sys.executable}"


def try_duckdb() -> str:
    """Run a query that counts."""
    library = import_module("duckdb")
    with library.connect() as engine:
        (count,) = engine.execute("select count(*) from range(1000)").fetchone()
    if count != 1000:
        raise ForgetmapError(f"DuckDB counts {count} of 1000", hint="reinstall duckdb.")
    return version("duckdb")


def try_resources() -> str:
    """Return processors, memory and free disk space."""
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    if free < MIN_FREE_GIB:
        raise ForgetmapError(
            f"this disk has {free:.1f} GiB left",
            hint="free some space, or write to another disk with --out.",
        )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{os.cpu_count()} processors, {memory:,.0f} GiB memory, {free:,.0f} GiB free disk"


def try_transformers() -> str:
    """Run one forward pass of a small new model."""
    torch, library = import_module("torch"), import_module("transformers")
    torch.manual_seed(0)
    config = library.LlamaConfig(
        vocab_size=8, hidden_size=8, intermediate_size=8,
        num_hidden_layers=1, num_attention_heads=2,
    )  # fmt: skip
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    device = accelerator.type if accelerator else "cpu"
    with torch.no_grad():
        model = library.LlamaForCausalLM(config).to(device)
        logits = model(input_ids=torch.tensor([[1, 2, 3]], device=device)).logits
    if logits.shape != (1, 3, 8) or not bool(logits.isfinite().all()):
        raise ForgetmapError(f"a tiny model fails on {device}", hint="reinstall torch.")
    return f"{version('transformers')}, torch {version('torch')} on {device}"


def try_hub() -> str:
    """Check that the hub can be reached."""
    import_module("huggingface_hub")
    if os.environ.get("HF_HUB_OFFLINE"):
        raise ForgetmapError(
            "disabled by HF_HUB_OFFLINE", hint="unset it, or pass models as folders."
        )
    try:
        socket.create_connection(HUB, timeout=HUB_TIMEOUT_S).close()
    except OSError as error:
        raise ForgetmapError(
            f"{HUB[0]} cannot be reached",
            hint="pass models and data as folders, or download them on another machine.",
        ) from error
    return f"{HUB[0]} can be reached"


def try_vllm() -> str:
    """Return the installed build, without loading it."""
    if find_spec("vllm") is None:
        raise ModuleNotFoundError(name="vllm")
    names = {"vllm", *(name for name in _packages() if name.startswith("vllm-"))}
    return ", ".join(sorted(f"{name} {_packages()[name]}" for name in names & set(_packages())))


def start_vllm() -> str:
    """Load vLLM in a separate process."""
    code = "import vllm; from vllm.platforms import current_platform as p; print(p.device_type)"
    return f"{try_vllm()} on {_in_process(code)}"


def start_ray() -> str:
    """Start a cluster on this machine and run one task on it."""
    code = (
        "from forgetmap.evaluation import connect_ray\n"
        "ray = connect_ray(None)\n"
        "print(ray.get(ray.remote(lambda: 6 * 7).remote()))"
    )
    output = _in_process(code)
    if output != "42":
        raise ForgetmapError(f"a task returned {output!r}", hint="reinstall ray.")
    return f"{version('ray')}, a cluster was started"


def try_client() -> str:
    """Return the version of the HTTP client and whether a key is set, but never the key."""
    import_module("aiohttp")
    from forgetmap.evaluation import KEY

    key = "is set" if os.environ.get(KEY) else "is not set"
    return f"aiohttp {version('aiohttp')}, {KEY} {key}"


def try_server(address: str) -> Callable[[], str]:
    """Return a trial that connects to a server and probes its abilities."""

    def trial() -> str:
        from forgetmap.evaluation import Traffic, connect_server, find_model

        source = find_model(address)
        if source.via != "server":
            raise ModelError(
                f"{address} is not a server address", hint="give http://HOST/v1#MODEL."
            )
        service = connect_server(source.base, Traffic(attempts=2, seconds=60.0)).service
        able = [name for name, can in service.abilities.items() if can]
        unable = [name for name, can in service.abilities.items() if not can]
        rest = f"; unreliable: {', '.join(unable)}" if unable else ""
        return f"{', '.join(able)}{rest}"

    return trial


def try_sandbox() -> str:
    """Check that a process can be isolated."""
    from forgetmap.scoring import require_sandbox

    require_sandbox()
    return "programs can be isolated"


def try_spark() -> str:
    """Check for the library and a Java version that it supports."""
    import_module("pyspark")
    java = _java()
    if java is None or java < MIN_JAVA:
        state = "no Java was found" if java is None else f"Java is version {java}"
        raise ForgetmapError(
            f"{state}, and Spark needs {MIN_JAVA}",
            hint="install it (Debian: apt-get install default-jre-headless) or set JAVA_HOME.",
        )
    return f"{version('pyspark')}, Java {java}"


def start_spark() -> str:
    """Start a session and run one query."""
    code = (
        "from pyspark.sql import SparkSession\n"
        "session = SparkSession.builder.master('local[1]')"
        ".config('spark.ui.enabled', 'false').getOrCreate()\n"
        "print(session.range(100).count())"
    )
    output = _in_process(code)
    if output != "100":
        raise ForgetmapError(f"Spark counts {output!r} of 100", hint="reinstall pyspark.")
    return f"{try_spark()}, a session was started"


def try_figures() -> str:
    """Draw a figure."""
    svg = import_module("vl_convert").vegalite_to_svg(CHART, allowed_base_urls=[])
    if "<svg" not in svg:
        raise ForgetmapError("nothing was drawn", hint="reinstall vl-convert-python.")
    return f"vl-convert {version('vl_convert')}"


def try_browser() -> str:
    """Look for a browser."""
    paths = filter(None, map(shutil.which, BROWSERS))
    path = next(paths, None)
    if path is None:
        raise ForgetmapError(
            "no browser found", hint="open reports on another machine; each is a single file."
        )
    return path


def try_imports(*modules: str) -> Callable[[], str]:
    """Return a trial that imports modules and returns their versions."""

    def trial() -> str:
        for module in modules:
            import_module(module)
        versions = [version(module) for module in modules]
        if len(modules) == 1:
            return versions[0]
        return ", ".join(f"{name} {number}" for name, number in zip(modules, versions, strict=True))

    return trial


def try_harness(name: str, module: str) -> Callable[[], str]:
    """Return a trial of a harness; some systems cannot run it even if it is installed."""
    is_installed = try_package(name, module)

    def trial() -> str:
        require_locks()
        return is_installed()

    return trial


def try_package(name: str, module: str) -> Callable[[], str]:
    """Return a trial that only checks for installation, for packages that are slow to load."""

    def trial() -> str:
        if find_spec(module) is None:
            raise ModuleNotFoundError(name=name)
        return version(module)

    return trial


def version(module: str) -> str:
    """Return the version of the package that a module belongs to."""
    names = metadata.packages_distributions().get(module, [module])
    try:
        return metadata.version(names[0])
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _packages() -> dict[str, str]:
    names = ((package.metadata["Name"], package.version) for package in metadata.distributions())
    return {name.lower(): number for name, number in names if name}


def _java() -> int | None:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or not Path(program).exists():
        return None
    process = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    match = re.search(r'version "(?:1\.)?(\d+)', process.stderr + process.stdout)
    return int(match[1]) if match else None


def _in_process(code: str) -> str:
    """Run code in a new Python process and return its last line of output; a crash stays there."""
    try:
        process = subprocess.run(  # noqa: S603  # our own code
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=START_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise ForgetmapError(
            f"it did not start within {START_TIMEOUT_S:.0f} s", hint="try again on an idle machine."
        ) from error
    lines = [line for line in process.stdout.splitlines() if line.strip()]
    if process.returncode or not lines:
        errors = [line for line in process.stderr.splitlines() if line.strip()]
        raise ForgetmapError(
            f"it does not start: {errors[-1][:200] if errors else 'no output'}",
            hint="reinstall it with compatible versions.",
        )
    return lines[-1].strip()
