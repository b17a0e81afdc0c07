"""Our merges against mergekit's, tensor by tensor: docs/merge-methods.md.

    python tools/check_merge.py --peers PYTHON [--keep FOLDER]

PYTHON is the interpreter of an environment with mergekit (0.1.5 was used). Both merge tiny models
of three architectures from the same files in mergekit's format, including the twelve of the study
in tests/fixtures/merge_recipes, in the structure of the originals. Fails if there is a difference
that is not explained:

- Rounding. Each side rounds a few times, in another order; differences are counted in units, the
  step of the dtype at the largest input of a tensor, and may be a few of these. If only one model
  changed we take its value, while mergekit adds the change to the base again.
- `dtype: bfloat16`. mergekit first rounds models that are stored more finely to it, and computes
  TIES in it; we compute in float32 and round once: our result has to be within half a unit of the
  exact result.
- Trimming and elections. Of changes of equal size at the limit any may be kept. In bfloat16,
  rounded numbers decide which are kept and which sign wins. Only values whose decision may depend
  on this may differ by more than a few units; they are counted.
- DARE. The random draws of the two differ, so both get the same ones. mergekit draws by
  torch.bernoulli without naming the model; a different density for each identifies it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml  # type: ignore[import-untyped]
from safetensors.torch import load_file
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from forgetmap.merge.api import apply_recipe
from forgetmap.merge.method import Draws
from forgetmap.merge.recipe.read import read_recipe
from peer_mergekit import shared_generator

HERE = Path(__file__).parent
STUDY = HERE.parent / "tests" / "fixtures" / "merge_recipes"
SPREADS = {"near": 0.002, "tuned": 0.05, "other": 0.2, "far": 1.0}
"""Models besides the base, and their distance from it in standard deviations of its weights."""
DENSITIES = {"tuned": 0.5, "other": 0.7}
GAMMA = 0.05
LIMIT = 4
"""Units that a few roundings may differ by."""
ROUNDED = 0.51
"""Units that one rounding may differ by, with some slack."""
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration that both merge.

    Attributes:
        config: the configuration file.
        coarse: whether `dtype` is bfloat16.
        masks: whether both use the same masks of DARE.
    """

    name: str
    family: str
    config: Path
    coarse: bool = False
    masks: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of two results.

    Attributes:
        units: largest difference in units of the dtype.
        equal: share of values that are identical.
        ours: our largest distance from the exact result, in units.
        theirs: that of mergekit.
        turned: values that one side keeps and the other trims, or that have the other sign.
        doubtful: values for which this is allowed.
        fault: what is not explained.
    """

    units: float
    equal: float
    ours: float
    theirs: float
    turned: int = 0
    doubtful: int = 0
    fault: str | None = None


def main() -> int:
    """Merge, compare, print the result, and return whether everything is explained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers", required=True, help="Python of an environment with mergekit")
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it")
    asked = parser.parse_args()
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        return _check(asked.peers, asked.keep.resolve())
    with tempfile.TemporaryDirectory() as folder:
        return _check(asked.peers, Path(folder))


def _check(python: str, folder: Path) -> int:
    torch.set_num_threads(1)
    cases = [case for family in FAMILIES for case in _prepared(family, folder)]
    _run_peer(python, cases, folder)
    faults = 0
    print(f"{'model':8} {'configuration':28} {'units':>6} {'equal':>7}  to the exact result")
    with chdir(folder):
        for case in cases:
            verdict = _verdict(case, folder)
            faults += verdict.fault is not None
            print(
                f"{case.family:8} {case.name:28} {verdict.units:6.2f} {verdict.equal:7.2%}"
                f"  ours {verdict.ours:.2f}, mergekit {verdict.theirs:.2f}"
                + (f"; turned {verdict.turned} of {verdict.doubtful}" if verdict.turned else "")
                + (f"  UNEXPLAINED: {verdict.fault}" if verdict.fault else "")
            )
    print(f"{len(cases)} configurations, {faults} unexplained")
    return 1 if faults else 0


def _llama() -> Any:
    return LlamaForCausalLM(LlamaConfig(**_SIZES, tie_word_embeddings=False))


def _qwen2() -> Any:
    return Qwen2ForCausalLM(Qwen2Config(**_SIZES, tie_word_embeddings=True))


def _gpt2() -> Any:
    return GPT2LMHeadModel(GPT2Config(vocab_size=96, n_embd=32, n_layer=4, n_head=4, **_ENDS))


_ENDS = {"bos_token_id": 0, "eos_token_id": 1}
_SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
FAMILIES = {"llama": _llama, "qwen2": _qwen2, "gpt2": _gpt2}


def _prepared(family: str, folder: Path) -> Iterator[Case]:
    """Create the models of a family and the files that merge them."""
    torch.manual_seed(3)
    base = FAMILIES[family]()
    for name, spread in {"base": 0.0, **SPREADS}.items():
        model = _moved(FAMILIES[family](), base, spread)
        model.save_pretrained(folder / family / name)
        model.to(torch.bfloat16).save_pretrained(folder / family / "bfloat16" / name)
    for name, config in _configurations(family).items():
        path = folder / family / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        coarse = config["dtype"] == "bfloat16"
        yield Case(name, family, path, coarse, "mask" in name)
    if family == "qwen2":
        yield from _study(base, folder)


def _moved(model: Any, base: Any, spread: float) -> Any:
    """Return a copy of the base with random changes."""
    model.load_state_dict(base.state_dict())
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=spread * max(weight.std().item(), 0.02))
    return model


def _study(base: Any, folder: Path) -> Iterator[Case]:
    """Yield the recipes of the study unchanged, with folders in place of hub models."""
    for path in sorted(STUDY.glob("*.yaml")):
        names = [part["model"] for part in yaml.safe_load(path.read_text())["models"]]
        for name in names:
            if not (folder / name).exists():
                spread = 0.0 if name.startswith("Qwen/Qwen2.5-7B") else 0.3
                model = _moved(_qwen2(), base, spread).to(torch.bfloat16)
                model.save_pretrained(folder / name)
        yield Case(path.stem, "qwen2", path, coarse=True)


def _configurations(family: str) -> dict[str, dict[str, Any]]:
    """Return name -> content of the file for mergekit."""
    two = {"tuned": {"weight": 0.6}, "other": {"weight": 0.5}}
    three = {**two, "far": {"weight": 0.3}}
    thinned = {name: {"weight": 0.6, "density": share} for name, share in DENSITIES.items()}
    whole = {name: {"weight": 0.6, "density": 1.0} for name in DENSITIES}
    crumbs = {name: {**values, "gamma": GAMMA} for name, values in thinned.items()}
    stock: dict[str, Any] = {name: {} for name in three}
    layered = [
        {"filter": "attn", "value": [0, 0.5, 0.3, 0.7, 1]},
        {"filter": "mlp", "value": [1, 0.5, 0.7, 0.3, 0]},
        {"value": 0.5},
    ]

    def config(method: str, parts: dict[str, Any], *, base: bool = True, **values: Any) -> Any:
        models = [
            {"model": f"{family}/{name}", **({"parameters": each} if each else {})}
            for name, each in parts.items()
        ]
        made: dict[str, Any] = {"merge_method": method, "models": models}
        if base:
            made["base_model"] = f"{family}/base"
        named = {name.rstrip("_"): value for name, value in values.items()}
        return {**made, "parameters": named, "dtype": "float32"}

    def coarse(given: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps({**given, "dtype": "bfloat16"})
        return json.loads(text.replace(f'"{family}/', f'"{family}/bfloat16/'))  # type: ignore[no-any-return]

    linear = config("linear", two, base=False)
    ties = config("ties", thinned)
    return {
        "linear": linear,
        "linear of three": config("linear", three, base=False, normalize=False),
        "linear over layers": config(
            "linear", {"tuned": {"weight": [0.2, 1.0, 0.4]}, "other": {"weight": 1}}, base=False
        ),
        "linear with an ignored key": {**linear, "normalize": False},
        "slerp": config("slerp", {"base": {}, "far": {}}, t=0.3),
        "slerp almost parallel": config("slerp", {"base": {}, "near": {}}, t=0.3),
        "slerp by filter and layer": config("slerp", {"base": {}, "far": {}}, t=layered),
        "task_arithmetic": config("task_arithmetic", three, lambda_=0.8),
        "ties": ties,
        "ties as a sum": config("ties", thinned, normalize=False, lambda_=0.8),
        "dare_linear density 1": config("dare_linear", whole),
        "dare_ties density 1": config("dare_ties", whole),
        "dare_linear same mask": config("dare_linear", thinned),
        "dare_ties same mask": config("dare_ties", thinned),
        "dare_linear mask unscaled": config("dare_linear", thinned, rescale=False),
        "breadcrumbs": config("breadcrumbs", crumbs),
        "breadcrumbs_ties": config("breadcrumbs_ties", crumbs),
        "model_stock": config("model_stock", stock),
        "model_stock by row": config("model_stock", stock, filter_wise=True),
        "passthrough of slices": _slices(family),
        "linear to bfloat16": {**linear, "out_dtype": "bfloat16"},
        "linear rounded first": {**linear, "dtype": "bfloat16"},
        "linear in bfloat16": coarse(linear),
        "slerp in bfloat16": coarse(config("slerp", {"base": {}, "far": {}}, t=0.3)),
        "ties in bfloat16": coarse(ties),
    }


def _slices(family: str) -> dict[str, Any]:
    # With the same depth: mergekit cannot write the config of a Qwen2 model of another depth.
    sources = [("tuned", [0, 2]), ("other", [1, 3])]
    slices = [
        {"sources": [{"model": f"{family}/{name}", "layer_range": layers}]}
        for name, layers in sources
    ]
    return {"merge_method": "passthrough", "slices": slices, "dtype": "float32"}


def _run_peer(python: str, cases: Sequence[Case], folder: Path) -> None:
    jobs = [
        {
            "config": str(case.config),
            "out": str(_place(case, "mergekit", folder)),
            "shared_masks": case.masks,
        }
        for case in cases
    ]
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs, indent=1), encoding="utf-8")
    command = [python, str(HERE / "peer_mergekit.py"), str(path)]
    print("The peer:", shlex.join(command), flush=True)
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-500:]}\n{done.stderr[-3000:]}")


def _place(case: Case, who: str, folder: Path) -> Path:
    return folder / who / case.family / case.name.replace(" ", "-")


def _verdict(case: Case, folder: Path) -> Verdict:
    """Merge on our side, and again in double precision for the exact result."""
    with _shared_draws() if case.masks else _own_draws():
        ours = _merged(case, "forgetmap", folder)
        exact = _merged(case, "exact", folder, dtype="float64", out_dtype="float64")
    theirs = _read(_place(case, "mergekit", folder))
    if set(ours) != set(theirs):
        odd = sorted(set(ours) ^ set(theirs))
        return Verdict(0, 0, 0, 0, fault=f"tensors of one side only: {', '.join(odd)}")
    kinds = {(name, ours[name].dtype, theirs[name].dtype) for name in ours}
    if any(one != other for _, one, other in kinds):
        return Verdict(0, 0, 0, 0, fault="the dtypes differ")
    return _compared(case, ours, theirs, exact)


def _compared(case: Case, ours: Tensors, theirs: Tensors, exact: Tensors) -> Verdict:
    largest = _largest_inputs(case, exact)
    doubtful = _doubtful(case)
    between, own, peer, turned = 0.0, 0.0, 0.0, 0
    for name, tensor in ours.items():
        unit = torch.finfo(tensor.dtype).eps * largest[name]
        apart = (tensor.double() - theirs[name].double()).abs() / unit
        if name in doubtful:
            turned += int((doubtful[name] & (apart > LIMIT)).sum())
            apart = apart.masked_fill(doubtful[name], 0.0)
        between = max(between, apart.max().item())
        own = max(own, (tensor.double() - exact[name]).abs().max().item() / unit)
        peer = max(peer, (theirs[name].double() - exact[name]).abs().max().item() / unit)
    same = sum((ours[name] == theirs[name]).sum().item() for name in ours)
    equal = same / sum(tensor.numel() for tensor in ours.values())
    fault = None
    if between > LIMIT:
        fault = f"{between:.1f} units apart"
    elif case.coarse and own > ROUNDED:
        fault = f"computed finely, ours is {own:.2f} units off"
    unsure = sum(int(each.sum()) for each in doubtful.values())
    return Verdict(between, equal, own, peer, turned, unsure, fault)


def _largest_inputs(case: Case, exact: Tensors) -> dict[str, float]:
    """Return the largest value of each tensor in any model; for moved layers, in the result."""
    models = [_read(Path(model)) for model in read_recipe(case.config).all_models]
    found = {}
    for name, tensor in exact.items():
        values = [tensor, *(model[name] for model in models if name in model)]
        found[name] = max(each.abs().max().item() for each in values) or 1.0
    return found


def _doubtful(case: Case) -> Tensors:
    """Return where the other side may legitimately trim another value or elect another sign."""
    recipe = read_recipe(case.config)
    if recipe.method not in {"ties", "breadcrumbs", "breadcrumbs_ties"}:
        return {}
    step = torch.finfo(torch.bfloat16).eps if case.coarse else 0.0
    base = _read(Path(str(recipe.base)))
    models = {Path(part.model).name: _read(Path(part.model)) for part in recipe.models}
    doubtful = {}
    for name, start in base.items():
        changes = {model: each[name].double() - start.double() for model, each in models.items()}
        votes = torch.stack(list(changes.values()))
        unclear = votes.sum(dim=0).abs() <= step * votes.abs().sum(dim=0)
        for model, change in changes.items():
            unclear |= _at_a_limit(change.abs(), model, recipe.method, step)
        doubtful[name] = unclear
    return doubtful


def _at_a_limit(sizes: torch.Tensor, model: str, method: str, step: float) -> torch.Tensor:
    """Return the changes that equal the last one kept, or the last one cut off at the top."""
    stay = int(DENSITIES[model] * sizes.numel())
    top = min(int(GAMMA * sizes.numel()), sizes.numel() - stay) if method != "ties" else 0
    ordered = sizes.flatten().sort(descending=True).values
    found = torch.zeros_like(sizes, dtype=torch.bool)
    for kept, cut in ((stay + top - 1, stay + top), (top, top - 1)):
        if min(kept, cut) >= 0 and ordered[kept].sub(ordered[cut]).abs() <= step * ordered[kept]:
            found |= (sizes - ordered[kept]).abs() <= step * ordered[kept]
    return found


def _merged(case: Case, who: str, folder: Path, **others: Any) -> Tensors:
    recipe = read_recipe(case.config).model_copy(update=others)
    return _read(apply_recipe(recipe, _place(case, who, folder), overwrite=True))


def _read(folder: Path) -> Tensors:
    files = sorted(folder.glob("*.safetensors"))
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


@contextmanager
def _own_draws() -> Iterator[None]:
    yield


@contextmanager
def _shared_draws() -> Iterator[None]:
    """Make DARE use the random draws of the peer."""
    own = Draws.generator

    def generator(self: Draws, index: int) -> torch.Generator:
        return shared_generator(DENSITIES[self.models[index].split()[0]])

    Draws.generator = generator  # type: ignore[method-assign]
    try:
        yield
    finally:
        Draws.generator = own  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
