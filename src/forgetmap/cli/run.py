"""`forgetmap run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forgetmap.cli.options import overwrite_option
from forgetmap.cli.options.evaluate import (
    evaluation_options,
    make_settings,
    model_load_kwargs,
    print_estimates,
    print_left_out,
    print_notes,
    print_services,
    read_suite,
)
from forgetmap.cli.options.harness import harness_options, refuse_without_harness, run_with_harness
from forgetmap.cli.progress import JobProgress, stoppable

EXAMPLES = """\b
Examples:
  forgetmap run models/tuned --suite basics --out runs/tuned
  forgetmap run org/model --suite post-forget --tasks 'mmlu:*' --limit 50 --out runs/model
  forgetmap run base+adapters/sft --suite questions.jsonl --out runs/sft --dry-run
  forgetmap run http://localhost:8000/v1#tuned --suite basics --concurrency 32 --out runs/tuned
  forgetmap run models/tuned --harness lm-eval --tasks arc_easy,gsm8k --out runs/tuned
  forgetmap run models/tuned --harness inspect --tasks quiz.py --out runs/quiz -- -T topic=law
"""


@click.command("run", epilog=EXAMPLES)
@click.argument("model")
@click.argument("more", nargs=-1, type=click.UNPROCESSED, metavar="[-- ...]")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run folder to write.")
@evaluation_options(suite_required=False)
@harness_options
@overwrite_option
def command(model: str, out: Path, **options: Any) -> None:
    """Evaluate one MODEL on a suite, or with another harness, and write a run folder.

    MODEL is a folder, a hub id, BASE+ADAPTER or a GGUF file; prefix it with vllm: to use vLLM. For
    a server write http://HOST/v1#NAME; its API key is read from FORGETMAP_API_KEY. Settings can
    follow the model: MODEL,stage=base,max_tokens=4096. An interrupted run resumes, and a completed
    run is not repeated.
    """
    if options["harness"]:
        run_with_harness(click.get_current_context(), out)
        return
    refuse_without_harness(options)
    from forgetmap.evaluation import (
        ServerBacked,
        estimate_run,
        find_model,
        find_style,
        fit_suite,
        open_model,
        run_model,
        split_model,
    )

    request = split_model(model)
    settings = request.settings(make_settings(options))
    find_style(settings)
    print_notes(settings.notes)
    source = find_model(request.model)
    suite = read_suite(options)
    backend, identity = open_model(source, name=out.name, **model_load_kwargs(options))
    if options["skip_too_long"]:
        suite = fit_suite(suite, settings, [backend])
        print_left_out(suite.left_out)
    if options["dry_run"]:
        print_estimates([(identity.name, estimate_run(backend, suite, settings))])
        if isinstance(backend, ServerBacked):
            print_notes(backend.service.notes)
        return
    with stoppable(), JobProgress() as progress:
        run_model(
            backend, suite, out, identity, settings,
            overwrite=options["overwrite"],
            on_progress=lambda step: progress.show_answers(identity.name, step),
        )  # fmt: skip
    print_services([out])
    click.echo(f"Written to {out}")
