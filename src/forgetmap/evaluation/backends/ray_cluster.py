"""Connection to a Ray cluster: start, health checks, and a time limit if it is lost."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from forgetmap._lazy import require
from forgetmap.errors import ModelError, UsageError

AUTO = "auto"
CONNECT_SECONDS = 5.0
"""Timeout in seconds of a connection to the head of a cluster."""
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Share:
    """Resources of the cluster for one actor."""

    cpus: float
    gpus: float


def load_ray() -> Any:
    """Import Ray.

    Raises:
        MissingPackageError: Ray is not installed.
    """
    # Evaluations must not send usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return require("ray", "Spreading items over a cluster")


def connect_ray(address: str | None) -> Any:
    """Connect to the cluster at HOST:PORT or that of this machine (`auto`), or start one.

    Returns:
        The library, connected.

    Raises:
        UsageError: the address is invalid.
        ModelError: there is no such cluster, or it refuses the connection.
    """
    ray = load_ray()
    if ray.is_initialized():
        return ray
    if address not in {None, AUTO}:
        _check_address(str(address))
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    with _keep_signals(), _explain_refusal(address):
        if address is None:
            ray.init(address="local", include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    return ray


def check_alive(ray: Any) -> None:
    """Check that the cluster still exists: Ray itself waits a minute and then ends this process.

    Raises:
        ModelError: the cluster is gone.
    """
    address = ray.get_runtime_context().gcs_address
    for attempt in range(ATTEMPTS):
        if _accepts_connection(address):
            return
        time.sleep(attempt)
    raise ModelError(
        f"The connection to the Ray cluster at {address} was lost.",
        hint="restart the cluster and run the same command, or continue locally: --engine "
        "local. All answers so far are kept.",
    )


def share_of(
    ray: Any, actors: int | None, *, on_gpu: bool, models_at_once: int = 1
) -> tuple[int, Share]:
    """Return the number of actors and the resources of each: one per GPU, or two without GPUs.

    Args:
        ray: the library, connected.
        actors: number of actors; None is one per GPU, or two without GPUs.
        on_gpu: whether they use GPUs.
        models_at_once: number of models that share the cluster equally.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = sum(node.get("GPU", 0.0) for node in nodes) if on_gpu else 0.0
    cpus = [node["CPU"] for node in nodes if node.get("CPU", 0.0) > 0]
    if not cpus:
        raise ModelError("The Ray cluster has no processors.", hint="add a machine to it.")
    number = actors or int(gpus / models_at_once) or (1 if gpus else 2)
    every = number * models_at_once
    # An actor must fit on any one machine.
    cpus_each = min(sum(cpus) / every, *cpus)
    return number, Share(
        float(int(cpus_each)) if cpus_each >= 1 else cpus_each, min(1.0, gpus / every)
    )


def _accepts_connection(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if "/" in address or not host or not port.isdigit():
        raise UsageError(
            f"{address} is not the address of a Ray cluster",
            hint="use the address of its head, such as --engine ray:10.0.0.1:6379, or ray:auto "
            "for a cluster on this machine; client addresses (ray://) are not supported.",
        )
    if not _accepts_connection(address):
        raise ModelError(
            f"There is no Ray cluster at {address}.",
            hint="start it (ray start --head), check the address, or remove it: --engine ray "
            "starts one on this machine.",
        )


@contextmanager
def _keep_signals() -> Iterator[None]:
    """Keep our signal handlers: Ray ends the process on SIGTERM, ours keep the answers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _explain_refusal(address: str | None) -> Iterator[None]:
    where = "on this machine" if address in {None, AUTO} else f"at {address}"
    try:
        yield
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reasons = f"{error} {error.__cause__}"
        if "Authentication" in reasons:
            raise ModelError(
                f"The Ray cluster {where} requires a token.",
                hint="set the environment variables RAY_AUTH_MODE=token and RAY_AUTH_TOKEN.",
            ) from error
        text = " ".join(str(error).split())[:300]
        raise ModelError(
            f"Cannot use a Ray cluster {where}: {text}",
            hint="check that it is running (ray status) with the same versions of Python and Ray.",
        ) from error
