"""Trials of single parts: each says in a few words what it found, or raises."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

from forgetmap.errors import ForgetmapError, ModelError

LEAST_JAVA = 17
LEAST_GIBIBYTES = 1.0
HUB = ("huggingface.co", 443)
HUB_SECONDS = 3.0
SLOW_SECONDS = 300.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "open", "xdg-open")
CHART = {
    "data": {"values": [{"x": 1}, {"x": 2}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}


def python() -> str:
    """Which one runs this."""
    return f"{sys.version.split()[0]} at {sys.executable}"


def duckdb() -> str:
    """Count something."""
    library = import_module("duckdb")
    with library.connect() as engine:
        (count,) = engine.execute("select count(*) from range(1000)").fetchone()
    if count != 1000:
        raise ForgetmapError(f"DuckDB counts {count} of 1000", hint="install it again.")
    return version("duckdb")


def room() -> str:
    """Processors, memory and disk."""
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    if free < LEAST_GIBIBYTES:
        raise ForgetmapError(
            f"this disk has {free:.1f} GiB left", hint="make room, or write elsewhere: --out."
        )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{os.cpu_count()} processors, {memory:,.0f} GiB memory, {free:,.0f} GiB free disk"


def transformers() -> str:
    """One pass through a model made on the spot."""
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
        raise ForgetmapError(f"a tiny model fails on {device}", hint="install torch again.")
    return f"{version('transformers')}, torch {version('torch')} on {device}"


def hub() -> str:
    """Whether the hub can be reached."""
    import_module("huggingface_hub")
    if os.environ.get("HF_HUB_OFFLINE"):
        raise ForgetmapError(
            "turned off by HF_HUB_OFFLINE", hint="unset it, or give models as folders."
        )
    try:
        socket.create_connection(HUB, timeout=HUB_SECONDS).close()
    except OSError as error:
        raise ForgetmapError(
            f"{HUB[0]} cannot be reached from here",
            hint="give models and data as folders, or download them on another machine.",
        ) from error
    return f"{HUB[0]} can be reached"


def vllm() -> str:
    """Which build, without loading it."""
    if find_spec("vllm") is None:
        raise ModuleNotFoundError(name="vllm")
    names = {"vllm", *(name for name in _packages() if name.startswith("vllm-"))}
    return ", ".join(sorted(f"{name} {_packages()[name]}" for name in names & set(_packages())))


def vllm_starts() -> str:
    """Load it in a process of its own."""
    code = "import vllm; from vllm.platforms import current_platform as p; print(p.device_type)"
    return f"{vllm()} on {_in_process(code)}"


def ray_starts() -> str:
    """A cluster on this machine, and one task on it."""
    code = (
        "from forgetmap.evaluation import connect_ray\n"
        "ray = connect_ray(None)\n"
        "print(ray.get(ray.remote(lambda: 6 * 7).remote()))"
    )
    output = _in_process(code)
    if output != "42":
        raise ForgetmapError(f"a task came back as {output!r}", hint="install ray again.")
    return f"{version('ray')}, a cluster was started"


def client() -> str:
    """What servers are asked with; whether there is a key, and never which."""
    import_module("aiohttp")
    from forgetmap.evaluation import KEY  # not before it is asked for

    key = "is set" if os.environ.get(KEY) else "is not set"
    return f"aiohttp {version('aiohttp')}, {KEY} {key}"


def server(address: str) -> Callable[[], str]:
    """A trial of the server there: its model is found, and everything it claims is tried."""

    def trial() -> str:
        from forgetmap.evaluation import (
            Traffic,
            connect_server,  # heavy
            find_model,  # heavy
        )

        source = find_model(address)
        if source.via != "server":
            raise ModelError(
                f"{address} is no address of a server", hint="give http://HOST/v1#MODEL."
            )
        service = connect_server(source.base, Traffic(attempts=2, seconds=60.0)).service
        able = [name for name, can in service.abilities.items() if can]
        unable = [name for name, can in service.abilities.items() if not can]
        rest = f"; not to be relied on: {', '.join(unable)}" if unable else ""
        return f"{', '.join(able)}{rest}"

    return trial


def sandbox() -> str:
    """Lock a process in."""
    from forgetmap.scoring import require_sandbox  # heavy

    require_sandbox()
    return "programs can be locked in"


def spark() -> str:
    """The library, and a Java that runs it."""
    import_module("pyspark")
    java = _java()
    if java is None or java < LEAST_JAVA:
        state = "no Java was found" if java is None else f"Java is version {java}"
        raise ForgetmapError(
            f"{state}, and Spark needs {LEAST_JAVA}",
            hint="install it (Debian: apt-get install default-jre-headless) or set JAVA_HOME.",
        )
    return f"{version('pyspark')}, Java {java}"


def spark_starts() -> str:
    """A session, and one query."""
    code = (
        "from pyspark.sql import SparkSession\n"
        "session = SparkSession.builder.master('local[1]')"
        ".config('spark.ui.enabled', 'false').getOrCreate()\n"
        "print(session.range(100).count())"
    )
    output = _in_process(code)
    if output != "100":
        raise ForgetmapError(f"Spark counts {output!r} of 100", hint="install pyspark again.")
    return f"{spark()}, a session was started"


def figures() -> str:
    """Draw one."""
    svg = import_module("vl_convert").vegalite_to_svg(CHART, allowed_base_urls=[])
    if "<svg" not in svg:
        raise ForgetmapError("nothing was drawn", hint="install vl-convert-python again.")
    return f"vl-convert {version('vl_convert')}"


def browser() -> str:
    """A program that opens pages."""
    paths = filter(None, map(shutil.which, BROWSERS))
    path = next(paths, None)
    if path is None:
        raise ForgetmapError(
            "no browser was found", hint="copy reports to a machine that has one: each is one file."
        )
    return path


def imports(*modules: str) -> Callable[[], str]:
    """A trial that loads these and says which versions they are."""

    def trial() -> str:
        for module in modules:
            import_module(module)
        versions = [version(module) for module in modules]
        if len(modules) == 1:
            return versions[0]
        return ", ".join(f"{name} {number}" for name, number in zip(modules, versions, strict=True))

    return trial


def package(name: str, module: str) -> Callable[[], str]:
    """A trial that only looks whether something is installed, as loading it takes long."""

    def trial() -> str:
        if find_spec(module) is None:
            raise ModuleNotFoundError(name=name)
        return version(module)

    return trial


def version(module: str) -> str:
    """Of the package that a module comes from."""
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
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None


def _in_process(code: str) -> str:
    """What a fresh Python prints last; a library that takes it down takes nothing else along."""
    try:
        done = subprocess.run(  # noqa: S603  # our own code
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=SLOW_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise ForgetmapError(
            f"it did not start within {SLOW_SECONDS:.0f} s", hint="try again on an idle machine."
        ) from error
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        errors = [line for line in done.stderr.splitlines() if line.strip()]
        raise ForgetmapError(
            f"it does not start: {errors[-1][:200] if errors else 'it said nothing'}",
            hint="install it again, in the versions that go together.",
        )
    return lines[-1].strip()
