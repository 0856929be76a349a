"""What a report says: every model's summary, marks against a baseline, tables of the marts, and every gap."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import msgspec

from robustbench_tc import shown, taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval import paper
from robustbench_tc.eval.record import Session
from robustbench_tc.eval.stats import blind, domains, paired, stages
from robustbench_tc.eval.stats.blind import BlindLine
from robustbench_tc.eval.stats.breakdown import Gain, gains
from robustbench_tc.eval.stats.evidence import Evidence
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.outcomes import Outcomes
from robustbench_tc.eval.stats.packs import Table
from robustbench_tc.eval.stats.runs import Run, Subset, align, labels as labels_of
from robustbench_tc.eval.stats.screen import Counted, counts_of, printed
from robustbench_tc.eval.stats.significance import Loss, Trend, holm_by, log_linear, stars
from robustbench_tc.eval.stats.summary import PAPER_COVERS, Convention, Summary, from_counts, summarise
from robustbench_tc.eval.stats.values import codes_of, pack_of
from robustbench_tc.io.numbers import NONE, counts, number
from robustbench_tc.safe_text import shortened
from robustbench_tc.shown import Line as Text, Part

Rows = list[dict[str, Any]]
"""Rows of a mart."""

MARTS = ("recovery", "costs", "hardest")
"""The marts that a page shows: they look at texts, tokens and single rows, which no other number does. The
caller runs them and hands their rows in."""

CONVENTIONS = {
    "cluster": "95 % confidence intervals with whole samples (clean_ids) as units, clean and perturbed "
    "together (docs/statistics.md).",
    "paper": "the paper's: 95 % percentile bootstrap, rows independent, clean and perturbed apart. "
    f"{PAPER_COVERS}",
}

SCATTERED = (*(f"delta_{name}" for name in taxonomy.COMPONENTS), "retention")
"""What is set against model size."""

TABLE2 = ("clean", "perturbed", *(f"delta_{name}" for name in taxonomy.COMPONENTS), "retention")


class Mark(msgspec.Struct, frozen=True):
    """A model's difference to the baseline in one value of Table 2."""

    difference: float
    p: float
    stars: int


class Model(Counted, frozen=True, kw_only=True):
    """One run in the report, or one of the paper's models."""

    label: str
    model: str
    mode: str | None
    run: str
    """The run folder as given, or `paper:MODEL`."""
    params_b: float | None
    source_losses: dict[str, dict[str, Loss]] = msgspec.field(default_factory=dict)
    """Source → type code."""
    gains: tuple[Gain, ...] = ()
    marks: dict[str, Mark] = msgspec.field(default_factory=dict)
    """Against the baseline, by Table 2's columns (retention excepted)."""
    closures: dict[str, Interval | None] = msgspec.field(default_factory=dict)
    """Component → the share of the baseline's Δ that the model closes, with Fieller's set; None: it cannot be
    said."""
    type_marks: dict[str, Mark] = msgspec.field(default_factory=dict)
    """By type code; their p is Holm's over the types."""
    domains: dict[str, Evidence] = msgspec.field(default_factory=dict)
    """Source, or world of live rows → what its rows say (`--by domain`)."""
    held_out: str | None = None
    """The domain that the model was trained without, as far as somebody said it."""
    card: dict[str, str] = msgspec.field(default_factory=dict)
    """How the run was made, for people."""


class Check(msgspec.Struct, frozen=True):
    """One figure of the paper, or several, made again from its counts."""

    what: str
    found: str
    passed: bool
    detail: tuple[str, ...] = ()
    """What does not agree."""


OWN_TOOLS = "own tools"
"""What stands for a version where the dataset is somebody's own."""


class Report(msgspec.Struct, frozen=True):
    """Everything on the page."""

    dataset_version: str
    fingerprint: str | None
    convention: Convention
    subset: Subset
    allow_missing: bool
    baseline: str | None
    models: tuple[Model, ...]
    """By perturbed accuracy, best first; those with a gap last."""
    paper: tuple[Model, ...]
    """In the paper's order and convention. Another dataset version: beside, never ranked."""
    gaps: tuple[str, ...]
    marts: dict[str, Rows]
    needs_no_reading: tuple[BlindLine, ...] = ()
    """Reference lines of the dataset: how often the gold tool is found without the request."""
    note: str = ""
    """What the intervals are, and in the paper's convention how often they hold."""
    paper_note: str = PAPER_COVERS
    """The same of the paper's models, which only have counts."""
    trends: dict[str, dict[str, Trend]] = {}
    """`runs`, `paper` → value of SCATTERED → its line over model size, from TREND_FROM models on."""
    checks: tuple[Check, ...] | msgspec.UnsetType = msgspec.UNSET
    """Our arithmetic held against the paper's figures (`--check-paper`)."""
    written: str | msgspec.UnsetType = msgspec.UNSET
    """The page, where one was written."""

    @property
    def exit_code(self) -> int:
        """1 where a check differs."""
        return int(not all(one.passed for one in self.checks or ()))

    def shown(self) -> Iterator[Part]:
        """The answer of every run; of a check the paper's Table 2 and what agrees."""
        yield from (f"{model.label}: {model.answer.sentence}" for model in self.models if model.answer)
        if self.checks:
            yield from self._checked(self.checks)
        for table in self.domain_tables:
            yield from printed(table)
        if self.models and self.convention == "paper":
            yield Text(f"--ci paper: {self.note}", aside=True)
        yield from (Text(f"gap: {line}", aside=True) for line in self.gaps)
        if self.written:
            yield f"{self.written} (also .md, .csv, .json)"

    def _checked(self, checks: Sequence[Check]) -> Iterator[Part]:
        columns = ("model", *(metric.replace("delta_", "Δ ") for metric in TABLE2))
        rows = [
            (
                one.label,
                *(
                    f"{number(found.value)} ±{number(found.half_width)}" if found else NONE
                    for found in map(one.summary.values.get, TABLE2)
                ),
            )
            for one in self.paper
        ]
        yield shown.Table(columns, rows, "Table 2 from the paper's counts, ± half the exact interval")
        agree = [(one.what, one.found, "agrees" if one.passed else "differs") for one in checks]
        title = "the paper's printed figures from its counts"
        yield shown.Table(("check", "found", ""), agree, title, ("found",))
        yield from (f"{one.what}: {detail}" for one in checks for detail in one.detail)

    @property
    def domain_tables(self) -> tuple[Table, ...]:
        """The drop by domain, and train × test; none unless they were asked for."""
        asked = [(one.label, one.held_out, one.domains) for one in self.models]
        return tuple(domains.tables(asked)) if any(found for *_, found in asked) else ()

    @property
    def live(self) -> bool:
        """Whether it is of live runs: their lines are families of faults, and nothing of the paper's."""
        return any(model.live for model in self.models)

    @property
    def own_tools(self) -> bool:
        """Whether it is of somebody's own tools: nothing of the paper stands beside it."""
        return self.dataset_version == OWN_TOOLS


def build(
    runs: Sequence[Run],
    *,
    convention: Convention = "cluster",
    subset: Subset = "all",
    allow_missing: bool = False,
    baseline: str | None = None,
    marts: Mapping[str, Rows] | None = None,
    expected: Iterable[tuple[str, str]] | None = None,
    by: Literal["domain"] | None = None,
    held_out: Sequence[str] = (),
) -> Report:
    """`baseline`: a model's name, or a run folder as given; None: no marks. `held_out`: `RUN=DOMAIN`, what a
    run's model was trained without.

    Raises UserError where runs are of different datasets, or the baseline is none of them.
    """
    aligned = align(runs, subset=subset, expected=expected)
    labels = labels_of(runs)
    if (baseline or "").startswith("paper:"):
        raise UserError("the paper's models belong to another dataset version and cannot be the baseline")
    base = None if baseline is None else _place(runs, labels, baseline, "baseline")
    without = _trained_without(runs, labels, held_out, by)
    summaries = [summarise(o, convention, allow_missing=allow_missing) for o in aligned]
    models = []
    for at, (run, outcomes, summary) in enumerate(zip(runs, aligned, summaries, strict=True)):
        against: dict[str, Any] = {}
        if base is not None and base != at:
            against = _against(aligned[base], outcomes, summaries[base], summary, convention)
        of_sample = dict(zip(run.rows["clean_id"].tolist(), run.rows["source"].tolist(), strict=True))
        fields = counts_of(run, outcomes, summary, allow_missing=allow_missing)
        model = Model(
            **fields,  # type: ignore[arg-type]
            label=labels[at],
            model=run.model,
            mode=run.mode,
            run=run.path,
            params_b=params_of(run.model),
            source_losses=stages.by_source(outcomes, of_sample, allow_missing=allow_missing),
            domains=domains.by_domain(run, outcomes) if by == "domain" else {},
            held_out=without.get(at),
            card=_card(run),
            **against,
        )
        models.append(msgspec.structs.replace(model, gains=gains(summary, model)))
    # best first, those with a gap last
    models.sort(key=lambda m: (-found.value if (found := m.summary.values["perturbed"]) else 1.0, m.label))
    own = runs[0].own_tools
    return Report(
        dataset_version=OWN_TOOLS if own else runs[0].dataset_label,
        fingerprint=runs[0].fingerprint,
        convention=convention,
        subset=subset,
        allow_missing=allow_missing,
        baseline=None if base is None else labels[base],
        models=tuple(models),
        paper=() if own or runs[0].live else papers(),
        gaps=tuple(f"{m.label}: {line}" for m in models for line in m.summary.gaps),
        marts=dict(marts or {}),
        needs_no_reading=next(
            (found for run in runs if (found := blind.lines(run.record.needs_no_reading))), ()
        ),
        note=CONVENTIONS[convention],
        trends={"runs": trends(models), **({} if own else {"paper": trends(papers())})},
    )


@cache
def papers() -> tuple[Model, ...]:
    """The paper's 21 models from their counts, in the paper's own convention; the same in every report."""
    return tuple(
        Model(
            label=name,
            model=name,
            mode=found.paper_mode,
            run=f"paper:{name}",
            params_b=found.params_b,
            summary=from_counts(paper.counts(name)),
        )
        for name, found in paper.models().items()
    )


def trends(models: Iterable[Model]) -> dict[str, Trend]:
    """The values of SCATTERED over model size, of models whose size is known."""
    found = {}
    for metric in SCATTERED:
        points = [(m.params_b, at.value) for m in models if m.params_b and (at := m.summary.values[metric])]
        found[metric] = log_linear([size for size, _ in points], [value for _, value in points])
    return {metric: trend for metric, trend in found.items() if trend is not None}


def params_of(name: str) -> float | None:
    """Billions of parameters: from the paper's table, else a `7B` in the name, else unknown."""
    sizes = {
        called.lower(): known.params_b
        for known in paper.models().values()
        for called in (known.weights or known.name, known.name)
    }
    found = re.findall(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)b(?![A-Za-z0-9])", name.lower())
    return sizes.get(name.lower(), float(found[-1]) if found else None)


def _trained_without(
    runs: Sequence[Run], labels: Sequence[str], words: Sequence[str], by: str | None
) -> dict[int, str]:
    """Place of a run → the domain that its model was trained without."""
    if words and by != "domain":
        raise UserError("--held-out is for the tables of --by domain")
    names = sorted({source for run in runs for source in run.rows["source"].tolist()})
    found: dict[int, str] = {}
    for word in words:
        run, equals, name = word.rpartition("=")
        if not equals:
            raise UserError(f"--held-out {word!r}: write RUN=DOMAIN")
        if name not in names:
            raise unknown("domain of these runs", name, names)
        at = _place(runs, labels, run.rstrip("/"), "held-out")
        if found.setdefault(at, name) != name:
            raise UserError(f"--held-out names two domains of {run}")
    return found


def _place(runs: Sequence[Run], labels: Sequence[str], wanted: str, option: str) -> int:
    """The one run of that label, model or folder. Raises UserError."""
    fitting = [i for i, run in enumerate(runs) if wanted in (labels[i], run.model, run.path)]
    if not fitting:
        raise unknown(f"{option} among these runs", wanted, labels)
    if len(fitting) > 1:
        shown = " or ".join(runs[i].path for i in fitting)
        raise UserError(f"--{option} {wanted!r} fits {len(fitting)} runs: name {shown}")
    return fitting[0]


def _against(
    base: Outcomes, new: Outcomes, base_summary: Summary, new_summary: Summary, convention: Convention
) -> dict[str, Any]:
    """Of a model its `marks`, `closures` and `type_marks` against the baseline."""
    there = [m for m in TABLE2 if base_summary.values[m] is not None and new_summary.values[m] is not None]
    levels = {name: codes_of(name) for name in there if name in ("clean", "perturbed")}
    components: dict[str, Sequence[str]] = {
        name: codes_of(name) for name in taxonomy.COMPONENTS if f"delta_{name}" in there
    }
    deltas = paired.compare_delta_lines(base, new, components)
    tested = {
        name: (one.difference.value, one.p)
        for name, one in paired.compare_lines(base, new, levels, convention).items()
    } | {
        f"delta_{name}": (-one.difference.value, p)
        for name, one in deltas.items()
        if (p := one.difference.p) is not None
    }
    codes = [code for code in new_summary.types if code in base_summary.types]
    types = paired.compare_types(base, new, codes, convention)
    corrected = holm_by(pack_of, {code: pair.p for code, pair in types.items()})
    return {
        "marks": {name: Mark(value, p, stars(p)) for name, (value, p) in tested.items()},
        "closures": {name: delta.closed for name, delta in deltas.items()},
        "type_marks": {
            code: Mark(pair.difference.value, corrected[code], stars(corrected[code]))
            for code, pair in types.items()
        },
    }


def _card(run: Run) -> dict[str, str]:
    """The run record in a few lines: no path, no credentials."""
    record, settings, totals = run.record, run.record.settings, run.record.totals
    unknown_session = Session(started="", endpoint="", package_version="", concurrency=0)
    last = [unknown_session, *record.sessions][-1]
    seconds = [one.seconds for one in record.sessions if one.seconds is not None]
    chosen = (msgspec.structs.asdict(one).items() for one in record.selections)
    selections = [", ".join(f"{name} {_short(value)}" for name, value in one if value) for one in chosen]
    card = {
        "model": run.model,
        "mode": run.mode,
        "dataset": record.dataset.rstrip("/").rpartition("/")[2],
        "dataset version": run.dataset_label,
        "fingerprint": run.fingerprint[:16],
        "selection": _short("; ".join(filter(None, selections)), 200) or "every row",
        "repeats": str(settings.repeat),
        "decoding": ", ".join(f"{name} {_short(value)}" for name, value in settings.decoding.items()),
        "prompts": settings.prompt_version,
        "defences": ", ".join(settings.defend),
        "backend": settings.backend,
        "endpoint": _host(last.endpoint),
        "package": last.package_version,
        "started": last.started,
        "seconds": f"{sum(seconds):.0f} in {len(record.sessions)} sessions" if seconds else "",
        "predictions": f"{len(run.rows['id'])} of {record.expected}",
        "status": counts(totals.get("status", {})),
        "finish reasons": counts(totals.get("finish_reason", {})),
        "retries": str(totals.get("retries", "")),
        "tokens": f"{totals.get('prompt_tokens', 0)} in, {totals.get('completion_tokens', 0)} out",
    } | {
        f"flagged {flag}": ", ".join(
            f"{code} {one['correct']} of {one['n']} right" for code, one in cells.items()
        )
        for flag, cells in record.flagged.items()
    }
    return {name: value for name, value in card.items() if value}


def _short(value: object, limit: int = 60) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return shortened(text, limit)


def _host(endpoint: str) -> str:
    """Scheme, host and path: credentials and queries stay out of a page that is passed on."""
    found = re.search(r"(https?://)(?:[^/?#]*@)?([^/?#]+)([^?#]*)", endpoint)
    return "".join(found.groups()) if found else endpoint.partition("@")[0]
