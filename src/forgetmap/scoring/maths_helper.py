"""Runs as a script: compares formulas by math-verify, one JSON request and reply per line."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Say `ready`, then answer every line until there is none."""
    from math_verify import LatexExtractionConfig, parse, verify  # type: ignore[import-untyped]  # slow, and absent in a light install

    # Not as an expression: sympy would read that by eval.
    latex = [LatexExtractionConfig()]

    def formulas(text: str) -> list[object]:
        written = f"${text.strip().strip('$')}$"
        return list(parse(written, latex, parsing_timeout=0, raise_on_error=True))

    def compare(answer: str, right: list[str]) -> str:
        wanted = [formulas(each) for each in right]
        if not all(wanted):
            return "math-verify cannot read the right answer"
        try:
            given = formulas(answer)
        except Exception:  # noqa: BLE001  # whatever a model writes must not end the helper
            return "unreadable"
        if not given:
            return "unreadable"
        same = any(verify(each, given, timeout_seconds=0) for each in wanted)
        return "right" if same else "wrong"

    compare(r"\frac{1}{2}", ["0.5"])  # the first comparison loads grammars, which takes seconds
    _say("ready")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = compare(request["answer"], request["right"])
        except Exception as error:  # noqa: BLE001  # same; the caller records the item as missing
            reply = f"math-verify failed: {type(error).__name__}"
        _say(reply)


def _say(reply: str) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
