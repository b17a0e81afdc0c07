"""Options of commands that evaluate models, and what these commands have in common."""

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
    "What is asked: basics, world, post-forget, capabilities, captrack, a file of items, or "
    "hub:OWNER/NAME."
)
_LOADING = ("device", "dtype", "trust_remote_code", "rows", "engine", "actors", "tensor_parallel")
_TRAFFIC = ("concurrency", "requests_per_minute", "seconds", "price_in", "price_out")


class RepeatsType(click.ParamType[int | str]):
    """A number, or as many as it takes."""

    name = f"INTEGER|{AUTO}"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Read it."""
        return AUTO if value == AUTO else int(click.INT.convert(value, param, ctx))


item_columns_option = click.option(
    "--columns", "column_map", type=ColumnsType(),
    help="Names of the columns of a file of items, such as question=q,gold=answer "
    "[default: recognised by their names].",
)  # fmt: skip
data_root_option = click.option(
    "--data-root", type=click.Path(path_type=Path), envvar="FORGETMAP_DATA",
    help="Folder with local copies of hub data sets [default: FORGETMAP_DATA, else download them].",
)  # fmt: skip
device_option = click.option(
    "--device", default="auto", show_default=True,
    help="Where a model is computed: cpu, cuda, cuda:1, ...; auto is the GPU if there is one.",
)  # fmt: skip
dtype_option = click.option(
    "--dtype", type=click.Choice(get_args(Dtype)), default="auto", show_default=True,
    help="Number format of the weights; auto is that of the model's files.",
)  # fmt: skip
trust_option = click.option(
    "--trust-remote-code", is_flag=True,
    help="Run Python code that comes with a model [default: refuse].",
)  # fmt: skip
_LOADING_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option("--batch", "rows", type=click.IntRange(1),
                 help="Upper limit on responses computed at a time [default: 64]."),
    device_option,
    dtype_option,
    click.option("--threads", type=click.IntRange(1), help="CPU threads [default: all]."),
    trust_option,
    click.option("--engine", default="local", show_default=True,
                 help="Where items are computed: local, or ray or ray:ADDRESS for a cluster."),
    click.option("--actors", type=click.IntRange(1),
                 help="Ray actors that each hold the model [default: one per GPU, or 2]."),
    click.option("--tensor-parallel", type=click.IntRange(1),
                 help="GPUs that vllm: spreads the weights of a model over [default: 1]."),
    click.option("--concurrency", type=click.IntRange(1), default=16,
                 show_default=True, help="Requests to a server at the same time."),
    click.option("--requests-per-minute", type=float,
                 help="Upper limit on requests per minute to a server [default: none]."),
    click.option("--timeout", "seconds", type=float, default=600.0, show_default=True,
                 help="Seconds to wait for one reply of a server."),
    click.option("--price-in", type=float,
                 help="Price of a million tokens that a server reads [default: not counted]."),
    click.option("--price-out", type=float,
                 help="Price of a million tokens that a server writes [default: not counted]."),
)  # fmt: skip
_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option("--tasks", help="Only these tasks, such as 'mmlu:*,piqa:main' [default: all]."),
    click.option("--limit", type=click.IntRange(1),
                 help="Upper limit on the items of each task [default: all]."),
    item_columns_option,
    data_root_option,
    click.option(
        "--protocol", type=click.Choice(get_args(ProtocolName)), default="same", show_default=True,
        help="How models are asked. same: all alike; published: as in Harmon et al. (2026).",
    ),
    click.option(
        "--stage", type=click.Choice(get_args(Stage)),
        help="What the models are. published asks base few-shot without template, tuned zero-shot "
        "in a chat [default: said for each, MODEL,stage=base].",
    ),
    click.option(
        "--scoring", type=click.Choice(get_args(Scoring)), default="auto", show_default=True,
        help="How multiple-choice answers are scored.",
    ),
    click.option("--chat/--no-chat", default=None,
                 help="Put questions into the chat template "
                 "[default: no; published: for tuned models]."),
    click.option("--system-prompt", help="First message of a chat [default: none]."),
    click.option("--shots", type=int,
                 help="Worked examples before a question [default: 3, in a chat 0; published: "
                 "those of the task, at most 5, in a chat 0]."),
    click.option("--temperature", type=float,
                 help="Sampling temperature; 0 is greedy [default: 0; published: 0.6]."),
    click.option("--top-p", type=float,
                 help="Probability mass that is sampled from [default: 1; published: 0.95]."),
    click.option("--max-new-tokens", type=int,
                 help="Upper limit on the tokens of a response [default: 64, in free form 1024; "
                 "published: 32768]."),
    click.option("--repeats", type=RepeatsType(),
                 help="Answers per item, above 1 only with a temperature; in `map` also auto "
                 "[default: 1; published: 3]."),
    click.option("--seed", type=int, default=0, show_default=True,
                 help="Random seed of the first repeat; each further one takes the next."),
    *_LOADING_OPTIONS,
    click.option("--skip-too-long", is_flag=True,
                 help="Leave out items that do not fit into the context of every model "
                 "[default: refuse the suite]."),
    click.option(
        "--dry-run", is_flag=True,
        help="Only estimate time, tokens and cost, by loading the models and trying a few items.",
    ),
)  # fmt: skip


def evaluation_options(*, suite_required: bool) -> Callable[[Command], Command]:
    """What is asked, and how."""
    suite = click.option("--suite", required=suite_required, help=SUITE)
    return lambda command: with_options(command, (suite, *_OPTIONS))


def loading_options(command: Command) -> Command:
    """Where and how models are loaded or reached."""
    return with_options(command, _LOADING_OPTIONS)


def make_settings(options: dict[str, Any]) -> Settings:
    """How models are asked."""
    from forgetmap.evaluation import Settings

    if options["repeats"] == AUTO:
        raise UsageError(
            "how many repeats it takes shows only where models are compared",
            hint="use --repeats auto with `forgetmap map`, or give a number.",
        )
    names = Settings.__dataclass_fields__
    return Settings(**{name: options[name] for name in names if name in options})


def read_suite(options: dict[str, Any]) -> Suite:
    """What is asked; every item is read now, before a model is loaded."""
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
    """How models are loaded, as `open_model` takes it."""
    from forgetmap.evaluation import Traffic

    if options["threads"] is not None:
        from forgetmap._lazy import require

        require("torch", "--threads").set_num_threads(options["threads"])
    traffic = {name: options[name] for name in _TRAFFIC}
    return {name: options[name] for name in _LOADING} | {"traffic": Traffic(**traffic)}


def print_estimates(estimates: Sequence[tuple[str, RunEstimate]]) -> None:
    """What runs would take."""
    for name, estimate in estimates:
        minutes = estimate.seconds / 60
        most = estimate.most_cost
        cost = "" if most is None else f"; cost at most about {most:,.4f}"
        click.echo(
            f"{name}: {estimate.answers:,} answers, {estimate.tokens_in:,} tokens to read, at most "
            f"{estimate.most_tokens_out:,} to write; about {minutes:,.1f} minutes at the speed of "
            f"a few items{cost}."
        )


def print_services(folders: Iterable[Path]) -> None:
    """What servers took, of every run among these that a server answered; each note once."""
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
    """The suite that fits into the context of all models, if that was asked for."""
    if not options["skip_too_long"]:
        return suite
    from forgetmap.evaluation import fit_suite, open_model

    opened = (open_model(model, **model_load_kwargs(options))[0] for model in models)
    fitting = fit_suite(suite, settings, opened)
    print_left_out(fitting.left_out)
    return fitting


def print_left_out(left_out: Mapping[str, int]) -> None:
    """How many items were left out, if any were."""
    if left_out:
        click.echo(
            f"Note: {sum(left_out.values()):,} items left out that do not fit into the context, "
            f"in {', '.join(sorted(left_out))}.",
            err=True,
        )


def print_notes(notes: Iterable[str]) -> None:
    """Print each once."""
    for note in dict.fromkeys(notes):
        click.echo(f"Note: {note}", err=True)


def _usage(service: ServiceInfo) -> str:
    cost = "" if service.cost is None else f", cost {service.cost:,.4f}"
    again = f" ({service.retries:,} of them again after a failure)" if service.retries else ""
    return (
        f"{service.requests or 0:,} requests{again}, {service.tokens_in or 0:,} tokens read, "
        f"{service.tokens_out or 0:,} written{cost}"
    )
