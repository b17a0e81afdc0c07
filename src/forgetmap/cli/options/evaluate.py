"""Options of commands that evaluate models, and their common code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forgetmap.cli.options import Command, split_names, with_options
from forgetmap.cli.options.logs import ColumnsType
from forgetmap.errors import UsageError
from forgetmap.evaluation import Dtype, ProtocolName, Scoring, Stage

if TYPE_CHECKING:
    from forgetmap.evaluation import RunEstimate, Settings, Suite
    from forgetmap.records import ServiceInfo

AUTO = "auto"
SUITE = (
    "Suite of items: basics, world, post-forget, capabilities, captrack, a file, or hub:OWNER/NAME."
)
_LOADING = ("device", "dtype", "trust_remote_code", "rows", "engine", "actors", "tensor_parallel")
_TRAFFIC = ("concurrency", "requests_per_minute", "seconds", "price_in", "price_out")


class RepeatsType(click.ParamType[int | str]):
    """A number, or `auto`."""

    name = f"INTEGER|{AUTO}"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Convert the value."""
        return AUTO if value == AUTO else int(click.INT.convert(value, param, ctx))


item_columns_option = click.option(
    "--columns", "column_map", type=ColumnsType(),
    help=(
        "Column names of a file of items, such as question=q,gold=answer [default: recognised by "
        "name]."
    ),
)  # fmt: skip
data_root_option = click.option(
    "--data-root", type=click.Path(path_type=Path), envvar="FORGETMAP_DATA",
    help="Folder with local copies of hub data sets [default: FORGETMAP_DATA, else download].",
)  # fmt: skip
device_option = click.option(
    "--device", default="auto", show_default=True,
    help="Device to run models on: cpu, cuda, cuda:1, ... auto uses the GPU if there is one.",
)  # fmt: skip
dtype_option = click.option(
    "--dtype", type=click.Choice(get_args(Dtype)), default="auto", show_default=True,
    help="Data type of the weights. auto uses that of the model's files.",
)  # fmt: skip
trust_option = click.option(
    "--trust-remote-code", is_flag=True,
    help="Run Python code that comes with a model [default: refuse].",
)  # fmt: skip
_LOADING_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option("--batch", "rows", type=click.IntRange(1),
                 help="Maximum number of responses generated at a time [default: 64]."),
    device_option,
    dtype_option,
    click.option("--threads", type=click.IntRange(1), help="CPU threads [default: all]."),
    trust_option,
    click.option("--engine", default="local", show_default=True,
                 help="Where to run: local, or ray or ray:ADDRESS for a cluster."),
    click.option("--actors", type=click.IntRange(1),
                 help=(
                     "Number of Ray actors, each with its own copy of the model [default: one per "
                     "GPU, or 2]."
                 )),
    click.option("--tensor-parallel", type=click.IntRange(1),
                 help="Number of GPUs to split a model across, with vllm: [default: 1]."),
    click.option("--concurrency", type=click.IntRange(1), default=16,
                 show_default=True, help="Number of concurrent requests to a server."),
    click.option("--requests-per-minute", type=float,
                 help="Maximum number of requests per minute to a server [default: no limit]."),
    click.option("--timeout", "seconds", type=float, default=600.0, show_default=True,
                 help="Timeout of one server reply in seconds."),
    click.option("--price-in", type=float,
                 help="Price per million input tokens of a server [default: not counted]."),
    click.option("--price-out", type=float,
                 help="Price per million output tokens of a server [default: not counted]."),
)  # fmt: skip
_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option("--tasks", help="Tasks to evaluate, such as 'mmlu:*,piqa:main' [default: all]."),
    click.option("--limit", type=click.IntRange(1),
                 help="Maximum number of items per task [default: all]."),
    item_columns_option,
    data_root_option,
    click.option(
        "--protocol", type=click.Choice(get_args(ProtocolName)), default="same", show_default=True,
        help=(
            "Prompting protocol. same: identical for all models; published: as in Harmon et al. "
            "(2026)."
        ),
    ),
    click.option(
        "--stage", type=click.Choice(get_args(Stage)),
        help=(
            "Type of the models. With --protocol published, base models get few-shot prompts "
            "without a template, tuned models zero-shot chat prompts [default: none; `run` and "
            "`map` also accept MODEL,stage=base]."
        ),
    ),
    click.option(
        "--scoring", type=click.Choice(get_args(Scoring)), default="auto", show_default=True,
        help="How multiple-choice answers are scored.",
    ),
    click.option("--chat/--no-chat", default=None,
                 help=(
                     "Format questions with the chat template [default: no; published: for tuned "
                     "models]."
                 )),
    click.option("--system-prompt", help="System message of a chat [default: none]."),
    click.option("--shots", type=int,
                 help=(
                     "Number of worked examples before a question [default: 3, in a chat 0; "
                     "published: those of the task, at most 5, in a chat 0]."
                 )),
    click.option("--temperature", type=float,
                 help="Sampling temperature; 0 is greedy [default: 0; published: 0.6]."),
    click.option("--top-p", type=float,
                 help="Probability mass of nucleus sampling [default: 1; published: 0.95]."),
    click.option("--max-new-tokens", type=int,
                 help=(
                     "Maximum number of tokens per response [default: 64, in free form 1024; "
                     "published: 32768]."
                 )),
    click.option("--repeats", type=RepeatsType(),
                 help=(
                     "Number of answers per item; more than 1 needs a temperature above 0. `map` "
                     "also accepts auto [default: 1; published: 3]."
                 )),
    click.option("--seed", type=int, default=0, show_default=True,
                 help="Random seed of the first repeat; each further repeat adds 1."),
    *_LOADING_OPTIONS,
    click.option("--skip-too-long", is_flag=True,
                 help=(
                     "Skip items that exceed the context length of any model [default: refuse the "
                     "suite]."
                 )),
    click.option(
        "--dry-run", is_flag=True,
        help="Only estimate time, tokens and cost, by loading the models and running a few items.",
    ),
)  # fmt: skip


def evaluation_options(*, suite_required: bool) -> Callable[[Command], Command]:
    """Return options for the suite and the settings of an evaluation."""
    suite = click.option("--suite", required=suite_required, help=SUITE)
    return lambda command: with_options(command, (suite, *_OPTIONS))


def loading_options(command: Command) -> Command:
    """Add options for loading models."""
    return with_options(command, _LOADING_OPTIONS)


def make_settings(options: dict[str, Any]) -> Settings:
    """Return the settings of an evaluation."""
    from forgetmap.evaluation import Settings

    if options["repeats"] == AUTO:
        raise UsageError(
            "--repeats auto needs models to compare",
            hint="use `forgetmap map --repeats auto`, or give a number.",
        )
    names = Settings.__dataclass_fields__
    return Settings(**{name: options[name] for name in names if name in options})


def read_suite(options: dict[str, Any]) -> Suite:
    """Load the suite; all items are read before a model is loaded."""
    from forgetmap.evaluation import load_suite

    suite = load_suite(
        options["suite"],
        only=split_names(options["tasks"]),
        limit=options["limit"],
        column_map=options["column_map"],
        root=options["data_root"],
    )
    for task in suite.tasks:
        task.load()
    return suite


def model_load_kwargs(options: dict[str, Any]) -> dict[str, Any]:
    """Return options for `open_model`."""
    from forgetmap.evaluation import Traffic

    if options["threads"] is not None:
        from forgetmap._lazy import require

        require("torch", "--threads").set_num_threads(options["threads"])
    traffic = {name: options[name] for name in _TRAFFIC}
    return {name: options[name] for name in _LOADING} | {"traffic": Traffic(**traffic)}


def print_estimates(estimates: Sequence[tuple[str, RunEstimate]]) -> None:
    """Print the estimated cost of runs."""
    for name, estimate in estimates:
        minutes = estimate.seconds / 60
        most = estimate.most_cost
        cost = "" if most is None else f"; cost at most about {most:,.4f}"
        click.echo(
            f"{name}: {estimate.answers:,} answers, {estimate.tokens_in:,} input tokens, at most "
            f"{estimate.most_tokens_out:,} output tokens; about {minutes:,.1f} minutes at the "
            f"speed of a few items{cost}."
        )


def print_services(folders: Iterable[Path]) -> None:
    """Print the usage of servers in these runs; each note once."""
    from forgetmap.records import MANIFEST, read_manifest

    infos = {folder.name: read_manifest(folder / MANIFEST) for folder in folders}
    manifests = {info.run_id or name: info for name, info in infos.items()}
    services = {name: info.service for name, info in manifests.items() if info.service is not None}
    print_notes(note for service in services.values() for note in service.notes)
    for name, service in services.items():
        click.echo(f"{name}: {_usage(service)}", err=True)


def without_too_long(
    suite: Suite,
    settings: Settings | Sequence[Settings],
    models: Sequence[Any],
    options: dict[str, Any],
) -> Suite:
    """Return the suite without items that are too long for a model, if requested."""
    if not options["skip_too_long"]:
        return suite
    from forgetmap.evaluation import fit_suite, open_model

    opened = (open_model(model, **model_load_kwargs(options))[0] for model in models)
    fitting = fit_suite(suite, settings, opened)
    print_left_out(fitting.left_out)
    return fitting


def print_left_out(left_out: Mapping[str, int]) -> None:
    """Print how many items were left out, if any."""
    if left_out:
        click.echo(
            f"Note: {sum(left_out.values()):,} items left out that exceed the context length, in "
            f"{', '.join(sorted(left_out))}.",
            err=True,
        )


def print_notes(notes: Iterable[str]) -> None:
    """Print each note once."""
    for note in dict.fromkeys(notes):
        click.echo(f"Note: {note}", err=True)


def _usage(service: ServiceInfo) -> str:
    cost = "" if service.cost is None else f", cost {service.cost:,.4f}"
    again = f" ({service.retries:,} of them retries)" if service.retries else ""
    return (
        f"{service.requests or 0:,} requests{again}, {service.tokens_in or 0:,} input tokens, "
        f"{service.tokens_out or 0:,} output tokens{cost}"
    )
