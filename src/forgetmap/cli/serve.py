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

    from forgetmap.sources import Reading

MAX_MEMORY = "512MB"
"""What the engine may hold in memory; Python and what it imports come on top."""
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
    help="Port to listen on; 0 is any that is free [default: 0].",
)
@click.option(
    "--token",
    is_flag=True,
    help="Ask for a token on this machine too [default: only with another --host].",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Further host name that browsers may use for this server. Repeatable.",
)
@click.option("--open", is_flag=True, help="Open the page in a browser.")
@log_options
@rule_options
def command(runs: tuple[str, ...], host: str, port: int, **options: Any) -> None:
    """Explore RUNS in a browser, and compare any two of them.

    RUNS are run folders, logs of an evaluation harness, tables, or folders that contain such.
    Only this machine can reach the server, unless --host says otherwise; then a token is needed,
    which is printed as part of the address. Nothing is ever written to RUNS; what was prepared
    is kept in the cache, unless --no-cache is given. A run given as --noise is a repeat of the
    first of RUNS, and is used wherever that one is before.
    """
    _require_server()
    import secrets
    import webbrowser

    from rich.console import Console

    from forgetmap.comparison import make_rule
    from forgetmap.serve import (
        ComparisonSetup,
        Explorer,
        Store,
        allowed_hosts,
        find_runs,
        is_loopback,
        make_app,
    )
    from forgetmap.text import counted

    rule = make_rule(options)  # type: ignore[arg-type]  # has what it reads, and more
    store = Store(MAX_MEMORY, persistent=options["cached"])
    with Console(stderr=True).status("Opening the runs ...") as status:
        reading = _reading(options, reading_progress(status))
        known = find_runs(runs, reading)
        noise = find_runs([options["noise"]], reading)[0] if options["noise"] else None
    listener = _listen(host, port)
    port = listener.getsockname()[1]
    needs_token = options["token"] or not is_loopback(host)
    token = secrets.token_urlsafe(24) if needs_token else None
    explorer = Explorer(known, store, ComparisonSetup(rule, noise, known[0].id if noise else None))
    app = make_app(explorer, hosts=allowed_hosts(host, port, options["allow_host"]), token=token)
    address = _address(host, port, token)
    click.echo(f"Serving {counted(len(known), 'run')} at {address}\nCtrl-C ends it.")
    if options["open"]:
        webbrowser.open(address)
    try:
        _run(app, listener)
    finally:
        explorer.close()


def _reading(options: dict[str, Any], progress: Callable[[str], None]) -> Reading:
    from forgetmap.sources import Reading

    names = options["run"]
    if len(names) > 1:
        raise UsageError("--run is given more than once", hint="serve each of them by its folder.")
    return Reading(
        run=names[0] if names else None,
        strict=options["strict"],
        cached=options["cached"],
        processes=options["processes"],
        progress=progress,
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
            hint="choose another --port (0 is any that is free) or --host.",
        ) from None


def _address(host: str, port: int, token: str | None) -> str:
    """What to open; a server that listens everywhere is also here."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # only read
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def _run(app: object, listener: socket.socket) -> None:
    """Serve until Ctrl-C. Nothing is logged per request: addresses may hold a token."""
    import signal

    import uvicorn  # optional

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # an ASGI application, whatever it is made with
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        # Longer than clients keep a connection, or one closes while it is used again.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
    )
    # Being terminated ends it as Ctrl-C does: the temporary tables must go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        click.echo("\nEnded.")
