"""`forgetmap records schema`."""

from __future__ import annotations

import json

import click

EXAMPLES = """\b
Examples:
  forgetmap records schema record > record.schema.json
  forgetmap records schema comparison
"""


@click.command("schema", epilog=EXAMPLES)
@click.argument("what", type=click.Choice(["record", "comparison", "fan-out"]))
def command(what: str) -> None:
    """Print the JSON schema of a record, or of what `compare --json` prints."""
    from forgetmap.comparison import ComparisonResult, FanOutResult
    from forgetmap.records import json_schema

    schemas = {
        "record": json_schema,
        "comparison": ComparisonResult.model_json_schema,
        "fan-out": FanOutResult.model_json_schema,
    }
    click.echo(json.dumps(schemas[what](), indent=2))
