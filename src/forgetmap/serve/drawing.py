"""What the figures need of the Vega package, done by a process of its own.

The package keeps 150 MB for as long as the process lives; a server lives long.
"""

from __future__ import annotations

import subprocess
import sys

from forgetmap.report import Payload, figures_json, vega_bundle


def bundle() -> str:
    """The JavaScript that draws figures; empty where the package is not installed."""
    return _in_child("bundle", "")


def figures(payload: Payload) -> str:
    """All figures of a payload as JSON, compiled as far as the page wants them."""
    return _in_child("figures", payload.model_dump_json())


def _in_child(what: str, given: str) -> str:
    done = subprocess.run(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-m", __name__, what],
        input=given.encode("utf-8"),
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout.decode("utf-8")


def _main(what: str) -> None:
    if what == "bundle":
        answer = vega_bundle()
    else:
        answer = figures_json(Payload.model_validate_json(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(answer.encode("utf-8"))


if __name__ == "__main__":
    _main(sys.argv[1])
