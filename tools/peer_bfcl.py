"""What BFCL's checker of calls says: JSON lines in, JSON lines out.

Runs in a separate environment with bfcl-eval, without its many dependencies: the table of models,
which only determines whether dots become underscores, is replaced.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from types import ModuleType, SimpleNamespace

_models = ModuleType("bfcl_eval.constants.model_config")
_models.__dict__["MODEL_CONFIG_MAPPING"] = defaultdict(
    lambda: SimpleNamespace(underscore_to_dot=False)
)
sys.modules[_models.__name__] = _models

from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import (  # type: ignore[import-not-found]  # noqa: E402
    ast_checker,
)


def main() -> None:
    """Answer every question on standard input."""
    for line in sys.stdin:
        asked = json.loads(line)
        verdict = ast_checker(
            asked["tools"], asked["made"], asked["gold"], Language.PYTHON, "parallel", "any"
        )
        print(json.dumps(verdict["valid"]))


if __name__ == "__main__":
    main()
