"""Where a served model is: `http://HOST/v1#MODEL`."""

from __future__ import annotations

from urllib.parse import urlsplit

from forgetmap.errors import UsageError

KEY = "FORGETMAP_API_KEY"
"""Environment variable with the key of a server; none is sent if it is not set."""


def is_address(name: str) -> bool:
    """Whether this names a server and not a file."""
    return name.lower().startswith(("http://", "https://"))


def checked_address(name: str) -> str:
    """The address in one spelling.

    Raises:
        UsageError: it is none, or holds what may be a secret.
    """
    parts = urlsplit(name.strip())
    if parts.username or parts.password or parts.query:
        raise UsageError(
            "the address of the server holds a name, a password or a query",
            hint=f"give http://HOST/v1#MODEL, and put the key into the environment as {KEY}.",
        )
    if not parts.hostname or not _has_port(parts.netloc):
        raise UsageError(
            f"{parts.scheme}://{parts.netloc} is no address of a server",
            hint="give one such as http://localhost:8000/v1#MODEL.",
        )
    path = parts.path.rstrip("/") or "/v1"
    model = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.scheme}://{parts.netloc}{path}{model}"


def split_address(address: str) -> tuple[str, str]:
    """Where the server is, and what the model is called there; nothing if that is left open."""
    base, _, model = address.partition("#")
    return base, model


def _has_port(netloc: str) -> bool:
    """Whether the part behind the colon, if any, can be a port."""
    try:
        return urlsplit(f"//{netloc}").port != 0
    except ValueError:
        return False
