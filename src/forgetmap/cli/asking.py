"""Options of `run` and `map`: what is asked, and how."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forgetmap.cli.options import MapType, with_options
from forgetmap.errors import UsageError
from forgetmap.evaluation import Dtype, ProtocolName, Scoring, Settings, Traffic

if TYPE_CHECKING:
    from forgetmap.evaluation import Estimate, Suite

STOPPED = 130
AUTO = "auto"


class RepeatsType(click.ParamType[int | str]):
    """A number, or as many as it takes."""

    name = f"INTEGER|{AUTO}"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Read it."""
        return AUTO if value == AUTO else int(click.INT.convert(value, param, ctx))


_LOADING = ("device", "dtype", "trust_remote_code", "rows", "engine", "workers")
_TRAFFIC = ("concurrency", "requests_per_minute", "seconds", "price_in", "price_out")

SUITE = "basics, world, post-forget, capabilities, captrack, a file of items, or hub:OWNER/NAME."
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--tasks", help="Only these, such as 'mmlu:*,piqa:main'."),
    click.option("--limit", type=click.IntRange(1), help="At most so many items of each task."),
    click.option("--map", "column_map", type=MapType(), help="Columns of a file of items."),
    click.option(
        "--data-root", type=click.Path(path_type=Path), envvar="FORGETMAP_DATA",
        help="Folder with local copies of hub data sets.",
    ),
    click.option(
        "--protocol", type=click.Choice(get_args(ProtocolName)), default="same", show_default=True,
        help="same: all models alike. published: as in Harmon et al. (2026).",
    ),
    click.option(
        "--scoring", type=click.Choice(get_args(Scoring)), default="auto", show_default=True,
        help="Of multiple choice.",
    ),
    click.option("--chat/--no-chat", default=None, help="Use the chat template."),
    click.option("--system-prompt", help="First message of a chat."),
    click.option("--shots", type=int, help="Worked examples before a question."),
    click.option("--temperature", type=float, help="0 is greedy."),
    click.option("--top-p", type=float, help="Share of probability kept."),
    click.option("--max-new-tokens", type=int, help="Limit of a response."),
    click.option("--repeats", type=RepeatsType(),
                 help="Answers per item, or in `map` auto; needs a temperature."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of the first repeat."),
    click.option("--batch", "rows", type=click.IntRange(1), help="Most responses at a time."),
    click.option("--device", default="auto", show_default=True, help="cpu, cuda, ..."),
    click.option("--dtype", type=click.Choice(get_args(Dtype)), default="auto", show_default=True,
                 help="Of the weights."),
    click.option("--threads", type=click.IntRange(1), help="Of the CPU; all without it."),
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with a model."),
    click.option("--engine", default="local", show_default=True,
                 help="local; ray or ray:ADDRESS spreads items over a cluster."),
    click.option("--workers", type=click.IntRange(1), help="How many hold the model, with Ray."),
    click.option("--concurrency", type=click.IntRange(1), default=16,
                 show_default=True, help="Requests to a server at the same time."),
    click.option("--requests-per-minute", type=float, help="A server is sent no more."),
    click.option("--timeout", "seconds", type=float, default=600.0, show_default=True,
                 help="Seconds to wait for one reply of a server."),
    click.option("--price-in", type=float, help="Of a million tokens that a server reads."),
    click.option("--price-out", type=float, help="Of a million tokens that a server writes."),
    click.option(
        "--dry-run", is_flag=True,
        help="Only say what it would take, from loading the models and trying a few items.",
    ),
)  # fmt: skip


def asking_options(*, suite_required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """All of them."""
    suite = click.option("--suite", required=suite_required, help=SUITE)
    return lambda command: with_options(command, (suite, *_OPTIONS))


def settings_of(options: dict[str, Any]) -> Settings:
    """How models are asked."""
    if options["repeats"] == AUTO:
        raise UsageError(
            "how many repeats it takes shows only where models are compared",
            hint="use --repeats auto with `forgetmap map`, or give a number.",
        )
    names = Settings.__dataclass_fields__
    return Settings(**{name: options[name] for name in names if name in options})


def chosen_suite(options: dict[str, Any]) -> Suite:
    """What is asked; every item is read now, before a model is loaded."""
    from forgetmap.evaluation import load_suite  # heavy

    only = [name.strip() for name in (options["tasks"] or "").split(",") if name.strip()]
    suite = load_suite(
        options["suite"],
        only=only,
        limit=options["limit"],
        column_map=options["column_map"],
        root=options["data_root"],
    )
    for task in suite.tasks:
        task.load()
    return suite


def loading(options: dict[str, Any]) -> dict[str, Any]:
    """How models are loaded."""
    if options["threads"] is not None:
        from forgetmap.evaluation import need

        need("torch").set_num_threads(options["threads"])
    traffic = {name: options[name] for name in _TRAFFIC}
    return {name: options[name] for name in _LOADING} | {"traffic": Traffic(**traffic)}


@contextmanager
def stoppable(
    said: str = "Stopped; every answer so far is kept. Run the same command to go on.",
) -> Iterator[None]:
    """Ctrl-C, or being asked to end, keeps what was done and says how to go on."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\n{said}", err=True)
        raise SystemExit(STOPPED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def print_estimate(found: Sequence[tuple[str, Estimate]]) -> None:
    """What a run would take."""
    for name, each in found:
        minutes = each.seconds / 60
        cost = "" if each.most_cost is None else f"; cost at most about {each.most_cost:,.4f}"
        click.echo(
            f"{name}: {each.answers:,} answers, {each.tokens_in:,} tokens to read, at most "
            f"{each.most_tokens_out:,} to write; about {minutes:,.1f} minutes at the speed of a "
            f"few items{cost}."
        )
