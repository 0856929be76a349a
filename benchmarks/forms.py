"""What tells a tool that `redundant` adds from the tools of its registry, without the request.

    make forms [RELEASE=out/robustbench-tc]

Distinct tools of a release, apart by source; two classifiers of scikit-learn (which the extra `lm-eval`
brings) are trained on four fifths of the registries and rank the tools of the others. Printed is the area
under the curve of each: 0.5 tells nothing. docs/audits.md has the ranges.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from robustbench_tc.io.parquet import read_rows, shards
from robustbench_tc.schema import Sample, Tool, record

FOLDS = 5
TYPES = ("string", "integer", "number", "boolean", "array", "object")
KEYWORDS = ("type", "description", "items", "enum", "default", "format", "optional")

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


class Seen(NamedTuple):
    """A tool of a registry."""

    source: str
    registry: str
    tool: Tool
    is_added: bool


def tools_of(release: Path) -> Iterator[Seen]:
    """Every distinct tool of the rows of `redundant`, and whether the clean row has it not."""

    def rows(config: str) -> Iterator[Sample]:
        return (record(row, Sample) for row in read_rows(shards(release / config)))

    clean = {sample.clean_id: [tool.name for tool in sample.tools] for sample in rows("clean")}
    told: set[tuple[str, str]] = set()
    for sample in rows("redundant"):
        own = clean[sample.clean_id]
        for tool in sample.tools:
            key = (sample.source, json.dumps([tool.name, tool.description, tool.parameters], sort_keys=True))
            if key not in told:
                told.add(key)
                yield Seen(sample.source, json.dumps(sorted(own)), tool, tool.name not in own)


def form(tool: Tool) -> list[float]:
    """How its schema is written: keys, words for types, which parameters are required."""
    parameters = list(tool.parameters.get("properties", {}).values())
    n = max(1, len(parameters))
    keys = Counter(key for parameter in parameters for key in parameter)
    types = Counter(str(parameter.get("type")) for parameter in parameters)
    required = tool.parameters.get("required")
    share = len(required or []) / n if parameters else 0.5
    return [
        len(tool.parameters),
        *(keys[key] / n for key in KEYWORDS),
        *(types[name] / n for name in TYPES),
        len(types),
        len({tuple(parameter) for parameter in parameters}),
        required is None,
        required == [],
        share,
        share == 1.0,
    ]


def writing(tool: Tool) -> list[float]:
    """Case and punctuation of its description and of its parameters'."""
    text = tool.description.strip()
    others = [
        str(parameter.get("description", "")).strip()
        for parameter in tool.parameters.get("properties", {}).values()
    ]
    n = max(1, len(others))
    return [
        text.endswith("."),
        text[:1].isupper(),
        *(text.count(mark) for mark in ",('"),
        sum(letter.isdigit() for letter in text),
        sum(letter.isupper() for letter in text) / max(1, len(text)),
        sum(other.endswith(".") for other in others) / n,
        sum(other[:1].isupper() for other in others) / n,
        sum(not other for other in others) / n,
    ]


def size(tool: Tool) -> list[float]:
    """The number of its parameters and the length of its description."""
    return [len(tool.parameters.get("properties", {})), math.log1p(len(tool.description))]


LOOKS: dict[str, Callable[[Tool], list[float]]] = {"form": form, "writing": writing, "size": size}


def areas(seen: list[Seen], look: Callable[[Tool], list[float]]) -> list[float]:
    """The area under the curve of a logistic regression and of boosted trees."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    lines: Floats = np.array([look(one.tool) for one in seen], dtype=np.float64)
    is_added = np.array([one.is_added for one in seen])
    models = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        GradientBoostingClassifier(n_estimators=60, max_depth=3, subsample=0.8, random_state=0),
    )
    return [
        roc_auc_score(
            is_added,
            cross_val_predict(
                model,
                lines,
                is_added,
                groups=[one.registry for one in seen],
                cv=GroupKFold(FOLDS),
                method="predict_proba",
            )[:, 1],
        )
        for model in models
    ]


def main() -> None:
    seen = list(tools_of(Path(sys.argv[1])))
    lines = [" | ".join(["source", *(f"{name}: logistic / trees" for name in LOOKS)])]
    for source in sorted({one.source for one in seen}):
        own = [one for one in seen if one.source == source]
        told = [" / ".join(f"{area:.2f}" for area in areas(own, look)) for look in LOOKS.values()]
        lines.append(" | ".join([source, *told]))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
