"""Run a harness, then convert its logs into a run folder."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from forgetmap.errors import HarnessError, ModelError, UsageError
from forgetmap.evaluation import (
    KEY,
    Service,
    Traffic,
    is_complete,
    weights_stamp,
)
from forgetmap.harness_runs.inspect_ai import INSPECT
from forgetmap.harness_runs.lighteval import LIGHTEVAL
from forgetmap.harness_runs.lm_eval import LM_EVAL
from forgetmap.harness_runs.process import OUTPUT, Show, claimed, follow, last_lines
from forgetmap.harness_runs.request import Driver, HarnessRequest
from forgetmap.records import (
    HarnessInfo,
    ModelInfo,
    Run,
    ServiceInfo,
    read_run,
    writable,
    write_run,
)
from forgetmap.sources import Reading, choose, label, open_logs, recognise

DRIVERS = {driver.name: driver for driver in (LM_EVAL, INSPECT, LIGHTEVAL)}
"""Harnesses that forgetmap can run, by name."""
LOGS = "logs"
STAMPED = {".py", ".yaml", ".yml"}
"""Suffixes of files that define tasks; a folder may also have runs and models."""
VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
DEVICE = (
    "import torch; a = torch.accelerator.current_accelerator(check_available=True); "
    "print(a.type if a else 'cpu')"
)
NO_WEIGHING = (
    "The log-likelihoods of the server are unreliable. Only tasks that generate text can be used."
)
ENVIRONMENT = {
    "PYTHONUNBUFFERED": "1",
    # Modules in the current folder must not shadow packages.
    "PYTHONSAFEPATH": "1",
}


@dataclass(frozen=True, slots=True)
class HarnessPlan:
    """A request for one harness in one environment, with all defaults filled in.

    Attributes:
        driver: the harness.
        request: the request, with device and number format.
        python: Python that runs it.
        version: version of the harness.
        work: work folder, beside the future run folder.
        service: description of the server, if the model is on one.
    """

    driver: Driver
    request: HarnessRequest
    python: str
    version: str
    work: Path
    service: Service | None = None

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        request = self.request
        if self.stand_in is not None:
            model = replace(request.model, base=str(self.stand_in), adapter=None)
            request = replace(request, model=model)
        own = self.driver.arguments(request, self.work.absolute())
        return [self.python, "-m", self.driver.module, *own, *request.more]

    @property
    def stand_in(self) -> Path | None:
        """A folder that the harness gets instead of that of the model, if needed."""
        source = self.request.model
        if self.driver.merges and source.adapter is not None:
            return self.work.absolute() / "merged"
        if self.driver.litters and Path(source.base).expanduser().is_dir():
            return self.work.absolute() / "linked"
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Unreliable abilities of the server, and their consequences."""
        if self.service is None:
            return ()
        return self.service.notes if self._can_weigh else (*self.service.notes, NO_WEIGHING)

    @property
    def _can_weigh(self) -> bool:
        return self.request.weighs or self.driver is not LM_EVAL

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the model, tasks and settings, as far as files show them."""
        facts = {
            "harness": [self.driver.name, self.version],
            "order": asdict(self.request),
            "weights": weights_stamp(self.request.model),
            "files": _stamps([*self.request.tasks, *self.request.more]),
        }
        return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def plan_harness(
    harness: str, request: HarnessRequest, out: Path, *, python: str | None = None
) -> HarnessPlan:
    """Check a request and return what would be run.

    Args:
        harness: `lm-eval`, `inspect` or `lighteval`.
        request: the request.
        out: the future run folder.
        python: Python of the environment with the harness; by default this one.

    Raises:
        HarnessError: the harness is not installed there.
        UsageError: the harness does not support the request.
    """
    driver = DRIVERS[harness]
    _check(driver, request)
    program = _program(python)
    version = _ask(program, VERSION, driver.distribution)
    if version is None:
        raise HarnessError(
            f"{driver.name} is not installed for {program}",
            hint=f"{driver.install}, or pass a Python that has it: --harness-python.",
        )
    work = out.parent / f".{out.name}.{driver.name}"
    driver.arguments(request, work)  # refuse unsupported options now
    if not request.is_served:
        return HarnessPlan(driver, _with_device(request, program), program, version, work)
    service = _probe_server(driver, request)
    model = replace(request.model, base=service.address)
    known = replace(request, model=model, weighs=service.abilities["echo"])
    return HarnessPlan(driver, known, program, version, work, service)


def run_harness(
    plan: HarnessPlan, out: Path, *, overwrite: bool = False, show: Show = lambda _: None
) -> Run:
    """Run a harness and import its logs; resume an earlier attempt if possible.

    Args:
        plan: the plan to run.
        out: the run folder; the logs of the harness are kept in it.
        overwrite: start again, whatever exists.
        show: receives the output of the harness.

    Returns:
        The imported run, with its problems. If it already exists, nothing is done.

    Raises:
        HarnessError: the harness failed, or its logs are incomplete.
    """
    if is_complete(out, plan.fingerprint, overwrite=overwrite):
        return read_run(out)
    with claimed(plan.work, plan.fingerprint, overwrite=overwrite) as lock:
        if plan.stand_in is not None and not plan.stand_in.is_dir():
            with writable(plan.work):
                _provide(plan.request, plan.stand_in)
        environment = {**ENVIRONMENT, **plan.driver.environment(plan.request)}
        code = follow(plan.command, environment, plan.work, lock, show)
        if code:
            raise _failed(plan, _ending(code))
        run = _imported(plan, out.name)
        write_run(run, out, overwrite=overwrite)
        with writable(out):
            (plan.work / OUTPUT).rename(plan.work / LOGS / OUTPUT)
            shutil.move(plan.work / LOGS, out / LOGS)
            shutil.rmtree(plan.work)
    return run


def _check(driver: Driver, request: HarnessRequest) -> None:
    if not request.tasks:
        raise UsageError(f"no tasks given for {driver.name}", hint="add --tasks.")
    if request.model.via == "vllm":
        raise UsageError(
            f"{driver.name} loads the model itself",
            hint="remove vllm:, or pass the address of a vLLM server: http://HOST/v1#MODEL.",
        )
    if request.repeats > 1 and request.temperature == 0:
        raise UsageError(
            f"{request.repeats} greedy answers to an item would be identical",
            hint="set --temperature above 0, or remove --repeats.",
        )
    _check_more(driver, request)


def _check_more(driver: Driver, request: HarnessRequest) -> None:
    """Refuse further arguments that would break pairing or contain a key."""
    key = os.environ.get(KEY)
    for argument in request.more:
        name = argument.partition("=")[0]
        # Both programs accept abbreviated option names.
        if name.startswith("-") and any(option.startswith(name) for option in driver.reserved):
            raise UsageError(
                f"{name} of {driver.name} is set by forgetmap",
                hint="remove it; see forgetmap run --help for options for tasks, limit and seed.",
            )
        if key and key in argument:
            raise UsageError(
                "an argument contains the API key of the server, and arguments are recorded",
                hint=f"remove it; {driver.name} reads the key from {KEY}.",
            )


def _program(python: str | None) -> str:
    """Return the Python to use; the folder of an environment stands for its Python."""
    if python is None:
        return sys.executable
    path = Path(python).expanduser()
    if path.is_dir():
        path = path / "bin" / "python"
    stamps = shutil.which(path) or shutil.which(python)
    if stamps is None:
        raise HarnessError(
            f"{python} is not an executable program",
            hint="pass the Python of the environment that has the harness, such as "
            "venv/bin/python.",
        )
    return str(Path(stamps).absolute())


def _ask(program: str, script: str, *arguments: str) -> str | None:
    """Run a few lines of Python there and return the output; None if they fail."""
    process = subprocess.run(  # noqa: S603  # the user names the program
        [program, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **ENVIRONMENT},
    )
    return process.stdout.strip() if process.returncode == 0 else None


def _probe_server(driver: Driver, request: HarnessRequest) -> Service:
    """Probe the server, because a harness would not check its replies."""
    from forgetmap.evaluation import connect_server

    service = connect_server(request.model.base, Traffic(concurrency=request.concurrency)).service
    needed = driver.needs(request)
    if not service.abilities[needed]:
        raise ModelError(
            f"{driver.name} needs {needed} from {service.address}, which does not work",
            hint="try the other mode (--chat or --no-chat), or use another server.",
        )
    return service


def _with_device(request: HarnessRequest, program: str) -> HarnessRequest:
    """Set device and number format as forgetmap would choose them, if not given."""
    if request.dtype != "auto":
        return request
    device = request.device
    if device == "auto":
        device = _ask(program, DEVICE) or device
    return replace(request, device=device, dtype="float32" if device == "cpu" else "auto")


def _stamps(names: Iterable[str]) -> list[str]:
    """Return texts that change when one of the named files or folders changes."""
    stamps = []
    for name in names:
        path = Path(name.partition("@")[0])
        files = [path] if path.is_file() else []
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in STAMPED)
        for file in files:
            stat = file.stat()
            stamps.append(f"{file}:{stat.st_size}:{stat.st_mtime_ns}")
    return stamps


def _provide(request: HarnessRequest, folder: Path) -> None:
    """Write the weights with the merged adapter, or links to the files of a model."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    if request.model.adapter is not None:
        from forgetmap.evaluation import load_model

        loaded = load_model(request.model, dtype=request.dtype, device="cpu")
        loaded.model.save_pretrained(partial)
        loaded.tokenizer.save_pretrained(partial)
    else:
        for file in Path(request.model.base).expanduser().absolute().iterdir():
            if file.is_file():
                (partial / file.name).symlink_to(file)
    partial.rename(folder)


def _imported(plan: HarnessPlan, name: str) -> Run:
    """Read the run from the logs, and add the facts that logs do not have."""
    plan.driver.tidy(plan.work / LOGS)
    logs = recognise(plan.work / LOGS)
    if not logs:
        raise _failed(plan, "wrote no log with samples")
    chosen, _ = choose(plan.work / LOGS, logs, None)
    unfinished = [label(log) for log in chosen if not log.finished]
    if unfinished:
        raise _failed(plan, f"did not finish {', '.join(unfinished)}")
    _refuse_wrong_weights(plan)
    run = open_logs(plan.work / LOGS, logs, Reading(cached=False))
    source = plan.request.model
    known: dict[str, Any] = {
        "run_id": name,
        "decoding": {"temperature": plan.request.temperature} | run.info.decoding,
        "model": ModelInfo(name=source.base, revision=source.revision, adapter=source.adapter),
        "harness": HarnessInfo(name=run.info.harness.name, version=plan.version),
        "fingerprint": plan.fingerprint,
        "command": shlex.join(plan.command),
    }
    if plan.service is not None:
        known["service"] = ServiceInfo(
            address=plan.service.address,
            abilities=plan.service.abilities,
            notes=list(plan.notes),
        )
    return replace(run, name=name, info=run.info.model_copy(update=known))


def _refuse_wrong_weights(plan: HarnessPlan) -> None:
    """Refuse scores from unreliable log-likelihoods of a server."""
    tasks = () if plan.request.weighs else plan.driver.weighed(plan.work / LOGS)
    if tasks:
        raise HarnessError(
            f"{plan.driver.name} scored {', '.join(tasks)} by log-likelihood, but the "
            f"log-likelihoods of {plan.request.model.base} are unreliable",
            hint="choose tasks that generate text, a server that returns prompt "
            "log-probabilities (echo with logprobs), such as vLLM, or the model's folder; "
            f"the logs are in {plan.work / LOGS}.",
        )


def _ending(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed, possibly because memory ran out"
    return f"ended with exit code {code}"


def _failed(plan: HarnessPlan, what: str) -> HarnessError:
    return HarnessError(
        f"{plan.driver.name} {plan.version} {what}",
        output=last_lines(plan.work),
        hint=f"its output is in {plan.work / OUTPUT}; run the same command to try again, and "
        "existing answers are kept.",
    )
