"""vLLM in its separate environment, set up by `make test-real`."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ties import FOLDER, ROOT

PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
NAME = "smol"
SECONDS = 900.0
ENVIRONMENT = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
CONTEXT = 2048


@contextmanager
def vllm_server(log: Path) -> Iterator[str]:
    """Serve the real model with vLLM; yield the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command: list[object] = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", FOLDER]
    command += ["--served-model-name", NAME, "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", CONTEXT, "--host", "127.0.0.1", "--port", port]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=file, stderr=file, env=ENVIRONMENT
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1#{NAME}"
    finally:
        process.terminate()
        process.wait()


def run_in_vllm(
    out: Path, *options: object, model: Path = FOLDER, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `forgetmap run vllm:MODEL` and return its result, also after a failure."""
    start = "from forgetmap.cli.main import script; script()"
    command = [PYTHON, "-c", start, "run", f"vllm:{model}", "--out", out, *options]
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, check=False, env=ENVIRONMENT | environment,
    )  # fmt: skip


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(1)
        else:
            return
    raise TimeoutError(log.read_text()[-3000:])
