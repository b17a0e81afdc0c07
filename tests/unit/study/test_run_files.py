"""Files beside the run folders of a study, and whose content is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import FieldError, OutputError
from forgetmap.records import refuse_to_replace
from forgetmap.study.run_files import read_failure, write_failure


def test_a_failure_keeps_its_message_and_its_hint_apart(tmp_path: Path) -> None:
    error = FieldError("it says: a\nHint: b", file="x.toml", line=3, hint="change it.")
    write_failure(tmp_path, "base", error)
    failure = read_failure(tmp_path, "base")
    assert failure is not None
    assert (failure.kind, failure.hint) == ("FieldError", "change it.")
    assert failure.reason == "x.toml, line 3: it says: a\nHint: b"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_refusal_names_what_is_in_the_way(tmp_path: Path, *, overwrite: bool) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError) as caught:
        refuse_to_replace(tmp_path, overwrite=overwrite)
    assert caught.value.occupied == tmp_path
