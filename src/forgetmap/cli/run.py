"""`forgetmap run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forgetmap.cli.asking import (
    asking_options,
    chosen_suite,
    loading,
    print_estimate,
    settings_of,
    stoppable,
)
from forgetmap.cli.driving import drive, driving_options, refuse_without_harness
from forgetmap.cli.options import overwrite_option
from forgetmap.cli.service import print_notes, print_services
from forgetmap.evaluation import find_model

EXAMPLES = """\b
Examples:
  forgetmap run models/tuned --suite basics --out runs/tuned
  forgetmap run org/model --suite post-forget --tasks 'mmlu:*' --limit 50 --out runs/model
  forgetmap run base+adapters/sft --suite questions.jsonl --out runs/sft --dry-run
  forgetmap run http://localhost:8000/v1#tuned --suite basics --concurrency 32 --out runs/tuned
  forgetmap run models/tuned --harness lm-eval --tasks arc_easy,gsm8k --out runs/tuned
  forgetmap run models/tuned --harness inspect --tasks quiz.py --out runs/quiz -- -T topic=law
"""


@click.command(epilog=EXAMPLES)
@click.argument("model")
@click.argument("more", nargs=-1, type=click.UNPROCESSED, metavar="[-- ...]")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The run folder.")
@asking_options(suite_required=False)
@driving_options
@overwrite_option
def run(model: str, out: Path, **options: Any) -> None:
    """Evaluate one MODEL on a suite, or by another harness, and write a run folder.

    MODEL is a folder, a hub id, BASE+ADAPTER or a GGUF file; any of these behind vllm: for vLLM; or
    http://HOST/v1#NAME, a server whose key is in FORGETMAP_API_KEY. A run that was stopped goes on
    where it was; one that is complete is not done again.
    """
    if options["harness"]:
        drive(click.get_current_context(), out)
        return
    refuse_without_harness(options)
    from forgetmap.cli.progress import Shown  # heavy
    from forgetmap.evaluation import (
        Served,  # heavy
        estimate,
        open_model,
        run_model,
    )

    source = find_model(model)
    suite = chosen_suite(options)
    settings = settings_of(options)
    backend, who = open_model(source, name=out.name, **loading(options))
    if options["dry_run"]:
        print_estimate([(who.name, estimate(backend, suite, settings))])
        if isinstance(backend, Served):
            print_notes(backend.service.notes)
        return
    with stoppable(), Shown() as shown:
        run_model(
            backend, suite, out, who, settings,
            overwrite=options["overwrite"],
            report=lambda step: shown.step(who.name, step),
        )  # fmt: skip
    print_services([out])
    click.echo(f"Written to {out}")
