"""The report's main tables in LaTeX (package booktabs), for a paper: Table 2, then every type."""

from collections.abc import Iterable, Sequence

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.significance import LEVEL
from robustbench_tc.io import numbers

from .content import TABLE2, Model, Report

_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


def escaped(text: str) -> str:
    """Text that LaTeX sets as it stands: names come from models and users."""
    return "".join(_SIGNS.get(sign, sign) for sign in text if sign.isprintable())


def tables(report: Report) -> str:
    """Two tables with their captions."""
    heads = [
        "Model",
        "Clean",
        "Perturbed",
        *(rf"$\Delta$ {name}" for name in taxonomy.COMPONENTS),
        "Retention",
    ]
    first = [[escaped(m.label), *(_cell(m.summary.values[name]) for name in TABLE2)] for m in report.models]
    types = taxonomy.among(code for m in report.models for code in m.summary.types)
    second = [[escaped(taxonomy.named(t.code)), *(_loss(m, t.code) for m in report.models)] for t in types]
    version = escaped(report.dataset_version)
    dataset = "Own tools" if report.own_tools else f"RobustBench-TC, dataset version {version}"
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            *(
                f"% not reviewed: {escaped(m.label)}: {m.unreviewed.line}"
                for m in report.models
                if m.unreviewed
            ),
            *_table(
                heads,
                first,
                f"{dataset}. Accuracy on clean and perturbed rows, $\\Delta$ per component and retention, "
                "with 95\\,\\% intervals.",
            ),
            "",
            *_table(
                ["Type", *(escaped(m.label) for m in report.models)],
                second,
                f"{dataset}. $\\Delta$ matched per type: clean minus perturbed accuracy on the same samples. "
                f"Bold: exact paired test below {LEVEL:g} after Holm's correction over the types of a model.",
            ),
            "",
        ]
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> list[str]:
    return [
        r"\begin{table}",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def _cell(found: Interval | None, *, sign: bool = False) -> str:
    if found is None:
        return "--"
    ends = f"{numbers.number(found.low, sign=sign)}, {numbers.number(found.high, sign=sign)}"
    return f"${numbers.number(found.value, sign=sign)}$ {{\\scriptsize $[{ends}]$}}"


def _loss(model: Model, code: str) -> str:
    row = model.summary.types.get(code)
    if row is None or row.delta_matched is None:
        return "--"
    text = _cell(row.delta_matched, sign=True)
    return rf"\textbf{{{text}}}" if row.flips and row.flips.p_holm < LEVEL else text
