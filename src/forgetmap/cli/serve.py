"""`forgetmap serve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options.compare import rule_options
from forgetmap.cli.options.logs import log_options, reading_progress
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

    from forgetmap.sources import Reading

MAX_MEMORY = "512MB"
"""Memory limit of the engine; Python and imported packages need more."""
EXAMPLES = """\b
Examples:
  forgetmap serve runs
  forgetmap serve runs/base runs/sft runs/rl --open
  forgetmap serve lm-eval-logs inspect-logs/tuned.eval --port 8080
  forgetmap serve runs/base runs/tuned --metric acc_norm --noise runs/base-again
  forgetmap serve runs --host 0.0.0.0 --allow-host explorer.example.org
"""


@click.command("serve", epilog=EXAMPLES)
@click.argument("runs", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on; 0 picks a free port [default: 0].",
)
@click.option(
    "--token/--no-token",
    default=True,
    show_default=True,
    help=(
        "Require the token in the printed address. Without it, every user of this machine can read "
        "the runs; --no-token cannot be combined with another --host."
    ),
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Additional host name under which browsers may reach this server. Repeatable.",
)
@click.option("--open", is_flag=True, help="Open the page in a browser.")
@log_options
@rule_options
def command(runs: tuple[str, ...], host: str, port: int, **options: Any) -> None:
    """Explore RUNS in a browser, and compare any two of them.

    RUNS are run folders, logs of an evaluation harness, tables, or folders that contain them. The
    server accepts connections only from this machine unless you set --host, and only with the token
    in the printed address. RUNS are never modified; prepared data is kept in the cache unless you
    pass --no-cache. A run passed as --noise is a repeat of the first run, and is used whenever that
    run is the model before.
    """
    _require_server()
    from rich.console import Console

    from forgetmap.comparison import make_rule
    from forgetmap.serve import (
        ComparisonSetup,
        Explorer,
        Store,
        allowed_hosts,
        find_runs,
        make_app,
    )
    from forgetmap.text import counted

    token = _token(host, is_wanted=options["token"])
    rule = make_rule(options)  # type: ignore[arg-type]  # has more than it reads
    with Console(stderr=True).status("Opening the runs ...") as status:
        reading = _reading(options, reading_progress(status))
        known = find_runs(runs, reading)
        noise = find_runs([options["noise"]], reading)[0] if options["noise"] else None
    listener = _listen(host, port)
    # The memory limit applies to the whole process: set it only if there is something to serve.
    store = Store(MAX_MEMORY, persistent=options["cached"])
    port = listener.getsockname()[1]
    explorer = Explorer(known, store, ComparisonSetup(rule, noise, known[0].id if noise else None))
    hosts = allowed_hosts(host, port, options["allow_host"])
    app = make_app(explorer, hosts=hosts, port=port, token=token)
    address = _address(host, port, token)
    click.echo(f"Serving {counted(len(known), 'run')} at {address}\nPress Ctrl-C to stop.")
    if options["open"]:
        _open(address, is_secret=token is not None)
    try:
        _run(app, listener)
    finally:
        explorer.close()


def _reading(options: dict[str, Any], progress: Callable[[str], None]) -> Reading:
    from forgetmap.sources import Reading

    names = options["run"]
    if len(names) > 1:
        raise UsageError(
            "--run can be given only once", hint="pass the folder of each run instead."
        )
    return Reading(
        run=names[0] if names else None,
        strict=options["strict"],
        cached=options["cached"],
        progress=progress,
        scores=options["scores"],
    )


def _require_server() -> None:
    from forgetmap._lazy import check_installed

    for package in ("starlette", "uvicorn"):
        check_installed(package, "Serving")


def _listen(host: str, port: int) -> socket.socket:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            hint="choose another --port (0 picks a free port) or --host.",
        ) from None


def _address(host: str, port: int, token: str | None) -> str:
    """Return the address to open; a server that listens everywhere is also on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # only read
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def _token(host: str, *, is_wanted: bool) -> str | None:
    """Return a new token that clients need; None if everyone may connect."""
    import secrets

    from forgetmap.serve import is_loopback

    if is_wanted:
        return secrets.token_urlsafe(24)
    if not is_loopback(host):
        raise UsageError(
            f"--no-token cannot be combined with --host {host}, which other machines can reach",
            hint="remove one of them.",
        )
    return None


def _open(address: str, *, is_secret: bool) -> None:
    """Open the page in a browser.

    Every user of a machine can see the arguments of commands, so a secret address is passed to the
    browser in a file that only this user can read.
    """
    import webbrowser

    from forgetmap._cache import temporary_path

    if is_secret:
        file = temporary_path(".html")
        refresh = f'<meta http-equiv="refresh" content="0;url={address}">'
        file.write_text(f"<!doctype html><title>forgetmap</title>{refresh}", encoding="utf-8")
        address = file.as_uri()
    webbrowser.open(address)


def _run(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until Ctrl-C."""
    import signal

    from forgetmap.serve import make_server

    # SIGTERM ends it like Ctrl-C: temporary tables must be removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        make_server(app).run(sockets=[listener])
    except KeyboardInterrupt:
        click.echo("\nEnded.")
