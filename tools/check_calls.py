"""Our matching of tool calls against BFCL's, on generated calls: docs/scorers.md.

    python tools/check_calls.py PYTHON [OUTPUTS]

PYTHON is the interpreter of an environment with bfcl-eval. Prints how often both accept all calls,
and fails if there is a disagreement that none of the reasons below explains.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from forgetmap.scoring.scorer import ScorerInput
from forgetmap.scoring.scorers.calls import calls

SEED = 21
OUTPUTS = 1000
TYPES = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "price": {"type": "float"},
    "loud": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "where": {"type": "dict", "properties": {"lat": {"type": "float"}, "at": {"type": "string"}}},
}
VALUES: dict[str, list[Any]] = {
    "city": ["Rome", "New York, NY", "Saint-Denis", "the Hague"],
    "days": [1, 2, 30],
    "price": [1.5, 2.0, 0.1],
    "loud": [True, False],
    "tags": [["a", "b"], ["b", "a"], ["new york"]],
    "where": [{"lat": [1.5], "at": ["Home", "home base"]}, {"lat": [2.0], "at": ["Work", ""]}],
}
SPELLINGS: dict[str, list[Any]] = {
    "city": ["rome", "Rome.", "New York NY", "new york,ny", "Saint Denis", "Hague", "Oslo", 5],
    "days": [1.0, "2", 31, True],
    "price": [2, 1.5 + 1e-10, "1.5", 0.2],
    "loud": [1, 0, "true"],
    "tags": [["A", "b"], ["New York"], "a", []],
    "where": [{"lat": 1.5, "at": "home"}, {"lat": 2.0}, {"lat": 1.5}, {"lat": 1.5, "z": 1}],
}
TOOLS: list[dict[str, Any]] = [
    {"name": name, "parameters": {"type": "dict", "properties": TYPES, "required": []}}
    for name in ("find", "geo.find", "book")
]

Case = dict[str, Any]


def main() -> int:
    """Compare, print the result, and return whether everything is explained."""
    python, outputs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else OUTPUTS
    draw = random.Random(SEED)
    cases = [_case(draw) for _ in range(outputs)]
    seen: Counter[str] = Counter()
    for case, theirs in zip(cases, _theirs(python, cases), strict=True):
        ours = _ours(case)
        why = "the same" if ours == theirs else _why(case, ours=ours)
        seen[f"right: {why}" if theirs else f"wrong: {why}"] += 1
        if why == "?":
            print(f"    ours {ours}: {case['gold']} {case['made']}", file=sys.stderr)
    print("| BFCL says | outputs |\n|---|---|")
    for said, count in sorted(seen.items()):
        print(f"| {said} | {count} |")
    return int(any(said.endswith("?") for said in seen))


def _case(draw: random.Random) -> Case:
    """Return expected calls with their right values, and partly wrong calls made from them."""
    gold = [_wanted(draw) for _ in range(draw.randint(1, 3))]
    made = [_made(name, right, draw) for each in gold for name, right in each.items()]
    draw.shuffle(made)
    if draw.random() < 0.15:
        made = made[1:] if draw.random() < 0.5 else [*made, {"book": {}}]
    return {"tools": TOOLS, "gold": gold, "made": made}


def _wanted(draw: random.Random) -> dict[str, dict[str, list[Any]]]:
    names = draw.sample(list(TYPES), draw.randint(1, 3))
    right = {name: draw.sample(VALUES[name], draw.randint(1, 2)) for name in names}
    optional = {name: [*values, ""] for name, values in right.items() if draw.random() < 0.2}
    return {draw.choice(TOOLS)["name"]: right | optional}


def _made(name: str, right: dict[str, list[Any]], draw: random.Random) -> dict[str, dict[str, Any]]:
    given = {}
    for key, values in right.items():
        if draw.random() < (0.5 if "" in values else 0.03):
            continue
        value = draw.choice([each for each in values if each != ""])
        if key == "where":
            value = {part: draw.choice(each) for part, each in value.items()}
            value = {part: each for part, each in value.items() if each != ""}
        given[key] = draw.choice(SPELLINGS[key]) if draw.random() < 0.2 else value
    return {"find" if draw.random() < 0.05 else name: given}


def _theirs(python: str, cases: list[Case]) -> list[bool]:
    command = [python, str(Path(__file__).with_name("peer_bfcl.py"))]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def _ours(case: Case) -> bool:
    made = [(name, given) for each in case["made"] for name, given in each.items()]
    said = [f"{name}({', '.join(f'{k}={v!r}' for k, v in given.items())})" for name, given in made]
    sample = ScorerInput("\n".join(said), gold=case["gold"], material={"tools": case["tools"]})
    return bool(calls.score(sample)["acc"].score)


def _why(case: Case, *, ours: bool) -> str:
    """Return why the two may differ."""
    given = [
        (key, value)
        for each in case["made"]
        for arguments in each.values()
        for key, value in arguments.items()
    ]
    tools = [name for each in case["gold"] for name in each]
    reasons = {
        "an empty list is not left out": any(value == [] for _, value in given),
    } if not ours else {
        "articles do not matter": ("city", "Hague") in given or ("city", "the Hague") in given,
        "1.0 is a whole number": any(k == "days" and type(v) is float for k, v in given),
        "a millionth does not matter": any(k == "price" and v == 1.5 + 1e-10 for k, v in given),
        "BFCL pairs calls of one tool first come, first served": len(set(tools)) < len(tools),
    }  # fmt: skip
    return next((why for why, holds in reasons.items() if holds), "?")


if __name__ == "__main__":
    sys.exit(main())
