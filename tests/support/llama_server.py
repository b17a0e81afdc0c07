"""llama.cpp's server as a separate process: `python llama_server.py MODEL.gguf`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "tiny"


@contextmanager
def llama_server(model: Path, key: str = "") -> Iterator[str]:
    """Run the server; yield its address."""
    command = [sys.executable, __file__, str(model), key]
    with (
        open(os.devnull, "w") as nowhere,  # noqa: PTH123
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=nowhere, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield next(line for line in process.stdout if line.startswith("http")).strip()
        finally:
            process.kill()


def serve(model: str, key: str) -> None:
    """Serve until the parent process ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4 * 512
    params.n_parallel = 4
    params.cpuparams.n_threads = 1
    params.warmup = False
    if key:
        params.api_keys = [key]
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
