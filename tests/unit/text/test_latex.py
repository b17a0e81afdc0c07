"""LaTeX output prints any name unchanged."""

from __future__ import annotations

import pytest

from forgetmap.text import escape_latex, latex_table


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("a_b & 50% #1 $x^2$ ~", r"a\_b \& 50\% \#1 \$x\textasciicircum{}2\$ \textasciitilde{}"),
        ("a -- b", "a -{}- b"),
        ("3 → 4 ± 1 \N{MINUS SIGN}2", r"3 $\to$ 4 $\pm$ 1 $-$2"),
        ("Größe 中", r"Größe \texttt{U+4E2D}"),
        ("two\nlines", "two lines"),
    ],
)
def test_nothing_in_a_name_is_a_command(text: str, latex: str) -> None:
    assert escape_latex(text) == latex


def test_a_long_table_goes_on_in_further_ones() -> None:
    rows = [[f"[{n}]", "1"] for n in range(50)]
    text = latex_table(["pair", "total"], rows, caption="Many", label="tab:many", strong=1)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert r"\caption{Many (part 2 of 2)}" in text
    assert r"\label{tab:many-2}" in text
    assert "\n{}[0] & 1 \\\\" in text
