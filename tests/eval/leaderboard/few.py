"""Entries and submissions of a few made-up samples. Imports little: processes of tests start quickly."""

from robustbench_tc import taxonomy
from robustbench_tc.eval.leaderboard.records import Entry, Metric, Submission, TypeLine


def entry(right: dict[str, list[int]], repeats: int = 1) -> Entry:
    """An entry with these verdicts; types that are not named answer nothing right over two samples."""
    codes = (taxonomy.CLEAN, *taxonomy.codes())
    size = len(next(iter(right.values())))
    verdicts = {code: right.get(code, [0] * size) for code in codes}
    counts = {code: (sum(found), size * repeats) for code, found in verdicts.items()}

    def pooled(names: tuple[str, ...]) -> tuple[int, int]:
        return sum(counts[code][0] for code in names), sum(counts[code][1] for code in names)

    sums = {"perturbed": pooled(taxonomy.codes())}
    for component in taxonomy.COMPONENTS:
        sums[component] = pooled(tuple(t.code for t in taxonomy.types() if t.component == component))
    share = {name: correct / n for name, (correct, n) in {**counts, **sums}.items()}
    metrics = {name: Metric(share[name], 0.0, 1.0, 9) for name in ("clean", "perturbed")}
    metrics["retention"] = Metric(None)
    for name in taxonomy.COMPONENTS:
        metrics[f"accuracy_{name}"] = Metric(share[name], 0.0, 1.0, 9)
        metrics[f"delta_{name}"] = Metric(share["clean"] - share[name], -1.0, 1.0, 9)
        metrics[f"delta_matched_{name}"] = Metric(share["clean"] - share[name], -1.0, 1.0, 9)
    return Entry(
        counts={**counts, **sums},
        metrics=metrics,
        types={code: TypeLine(accuracy=Metric(), delta=Metric()) for code in taxonomy.codes()},
        repeats=repeats,
        verdicts={code: "".join(map(str, found)) for code, found in verdicts.items()},
    )


def submission(number: int, model: str, user: str = "ann", fingerprint: str = "f" * 32) -> Submission:
    return Submission(
        id=f"2026112{number}-{number:012d}",
        user=user,
        model=model,
        mode="fc",
        params_b=3,
        family="x",
        submitted_at=f"2026-11-2{number}T10:00:00+00:00",
        dataset_version="1.0.0",
        fingerprint=fingerprint,
        repeats=1,
        predictions_sha256="0" * 64,
        package_version="0.1.0",
    )
