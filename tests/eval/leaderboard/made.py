"""Run folders as they lie in a results repository, live ones too, of scripted agents; entries without any."""

import shutil
from contextlib import nullcontext
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from robustbench_tc import llm, schema, seeding, taxonomy
from robustbench_tc.compute import loop
from robustbench_tc.eval import predictions, prompts, record, scripted, session, speakers, who
from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.inputs import Dataset, load_live
from robustbench_tc.eval.leaderboard import checker, flags, submit
from robustbench_tc.eval.leaderboard.entry import Digest, Entry, Figures, Submission, Usage, Verdicts
from robustbench_tc.eval.live import inputs, prompts as live_prompts
from robustbench_tc.eval.stats import intervals, significance, summary

from ..live import purses

DAY = "20261120"


def settings(
    dataset: Dataset, model: str, mode: record.Mode = "prompt", repeat: int = 1, defend: tuple[str, ...] = ()
) -> record.Settings:
    return record.Settings(
        fingerprint=dataset.fingerprint(),
        model=model,
        mode=mode,
        backend="openai",
        decoding={"temperature": 0.0, "max_tokens": 1024},
        prompt_version=prompts.prompt_version(),
        repeat=repeat,
        defend=defend,
    )


def answers(agent: str, dataset: Dataset, asked: record.Settings) -> list[schema.Prediction]:
    """What the agent answers to every row."""
    speaker, plain = (
        speakers.ReferenceAgent(agent, dataset.anchors()),
        msgspec.structs.replace(asked, defend=()),
    )

    async def prediction(row: schema.Sample) -> schema.Prediction:
        env = scripted.Scripted(row, plain)
        dialogue = Dialogue(env, plain)
        while (ask := dialogue.ask()) is not None:
            said = await speaker.reply(dialogue, ask, dialogue.base())
            cost = {"prompt_tokens": 100 + len(row.id), "completion_tokens": 20, "latency_s": 0.5}
            dialogue.reply(dialogue.noted(msgspec.structs.replace(said, **cost)))
        return predictions.combine(row, dataset.hashes[row.id], asked, *env.answers)

    async def every() -> list[schema.Prediction]:
        return [await prediction(row) for row in dataset.rows]

    found = loop.run(every())
    return [msgspec.structs.replace(one, repeat=n) for one in found for n in range(asked.repeat)]


def local_run(folder: Path, agent: str, dataset: Dataset, *, model: str = "Alpha-3B", **how: Any) -> Path:
    """A finished run as `rbtc eval --no-score` leaves it; `how` as `settings`."""
    asked = settings(dataset, model, **how)
    given = answers(agent, dataset, asked)
    session = record.Session(
        started="2026-11-20T10:00:00", endpoint="http://secret.example:8000/v1", package_version="0.1.0",
        concurrency=4, requests=len(given) + 3, retries=3,
    )  # fmt: skip
    made = record.start(folder, dataset, asked, len(given))
    made.record.sessions = [session]
    made.record.served_models = ["/home/somebody/models/alpha"]
    made.record.totals = predictions.totals(given)
    made.save()
    predictions.write(made.answers_path, given)
    return folder


def as_handed_in(run: Path, into: Path, **stated: Any) -> Path:
    """The three files of a run as `submit` adds them."""
    into.mkdir(parents=True)
    submit.publish(run, into)
    state(into, **stated)
    return into


def state(folder: Path, **stated: Any) -> None:
    """Writes `submission.yaml`."""
    made = Submission(**{"model": "Alpha-3B", "weights": "open", "licence": "apache-2.0", **stated})
    (folder / checker.SUBMISSION).write_bytes(msgspec.yaml.encode(made))


def name_of(folder: Path, org: str = "ann", model: str = "Alpha-3B", day: str = DAY) -> str:
    """The run's name: `org/model/id`."""
    return f"{org}/{model}/{checker.run_id(folder, day)}"


def changed(folder: Path, to: Path) -> Path:
    """A copy of a run folder, to be spoilt."""
    return Path(shutil.copytree(folder, to))


# --- entries without runs ------------------------------------------------------------------------------


def entries_of(n: int, *, samples: int = 40, fingerprint: str = "f" * 32) -> list[Entry]:
    """Distinct, plausible entries of one dataset: as many models, from poor to good, over some days."""
    return [entry(number, n, samples=samples, fingerprint=fingerprint) for number in range(n)]


def entry(
    number: int, n: int = 100, *, samples: int = 40, fingerprint: str = "f" * 32, **fields: Any
) -> Entry:
    """One of them; `fields` of the entry are put in place of the made-up ones."""
    return msgspec.structs.replace(_entry(number, n, samples, fingerprint), **fields)


@cache
def _entry(number: int, n: int, samples: int, fingerprint: str) -> Entry:
    draw = np.random.default_rng(number)
    skill = 0.2 + 0.6 * number / max(n, 2)
    right = draw.random((len(checker.CONDITIONS), samples)) < skill
    right[0] |= draw.random(samples) < 0.3
    org, model = f"lab{number % 17}", f"Model-{number}-{1 + number % 70}B"
    day = date(2026, 1, 1) + timedelta(days=number % 300)
    counts = {code: (int(right[at].sum()), samples) for at, code in enumerate(checker.CONDITIONS)}
    return Entry(
        kind="core",
        run=f"{org}/{model}/{day:%Y%m%d}-{number:012x}",
        submission=Submission(
            model=f"{org}/{model}",
            weights="open" if number % 3 else "closed",
            params_b=1.0 + number % 70,
            licence="apache-2.0" if number % 3 else None,
            card=f"https://huggingface.co/{org}/{model}",
        ),
        submitter=f"user{number % 23}",
        member=number % 4 == 0,
        mode="fc" if number % 2 else "prompt",
        defend=("retry",) if number % 11 == 10 else (),
        dataset="robustbench-tc",
        version="1.0.0",
        fingerprint=fingerprint,
        inputs={
            name: Digest(1000 + number, f"{number:064x}", f"{number:040x}")
            for name in (checker.PREDICTIONS, checker.RECORD, checker.SUBMISSION)
        },
        checker=checker.CHECKER,
        commit=f"{number:040x}",
        core=figures(counts, right, number),
    )


def figures(counts: dict[str, tuple[int, int]], right: Any, number: int) -> Figures:
    """Figures with these counts and verdicts; the intervals are those of independent rows."""
    found = summary.from_counts(counts) if number < 8 else None
    sums = {"perturbed": taxonomy.codes()}
    for component in taxonomy.COMPONENTS:
        sums[component] = tuple(one.code for one in taxonomy.types() if one.component == component)
    pooled = {
        name: (sum(counts[c][0] for c in codes), sum(counts[c][1] for c in codes))
        for name, codes in sums.items()
    }
    whole = {taxonomy.CLEAN: counts[taxonomy.CLEAN], **pooled}
    shares = {name: of[0] / of[1] for name, of in whole.items()}
    clean = shares[taxonomy.CLEAN]

    def near(value: float, n: int) -> intervals.Interval:
        return intervals.Interval(value, value - 0.05, value + 0.05, n)

    metrics: dict[str, intervals.Interval | None] = {
        "clean": near(clean, whole["clean"][1]),
        "perturbed": near(shares["perturbed"], whole["perturbed"][1]),
        "retention": near(shares["perturbed"] / clean, whole["perturbed"][1]),
        "retention_with_transition": near(shares["perturbed"] / clean, whole["perturbed"][1]),
    }
    for name in taxonomy.COMPONENTS:
        n = whole[name][1]
        metrics |= {f"accuracy_{name}": near(shares[name], n), f"delta_{name}": near(clean - shares[name], n)}
        metrics[f"delta_matched_{name}"] = metrics[f"delta_{name}"]
    types = {
        code: summary.TypeRow(
            accuracy=near(counts[code][0] / counts[code][1], counts[code][1]),
            delta=near(clean - counts[code][0] / counts[code][1], counts[code][1]),
            flips=significance.Loss(counts[code][1], 3, 1, 2 / counts[code][1], 0.5, 0.5),
        )
        for code in taxonomy.codes()
    }  # fmt: skip
    if found is not None:  # real ones, which take their time
        metrics |= {name: value for name, value in found.values.items() if value is not None}
    draw = seeding.rng(number, "replies")
    return Figures(
        counts={**whole, **{code: counts[code] for code in taxonomy.codes()}},
        sources={"bfcl_v3": pooled["perturbed"]},
        metrics=metrics,
        types=types,
        usage=Usage(300.0, 40.0, 0.5) if number % 5 else Usage(),
        packs={"offers": 12} if number % 7 == 0 else {},
        verdicts=Verdicts(
            right.shape[1], np.packbits(np.ones_like(right)).tobytes(), (np.packbits(right).tobytes(),)
        ),
        replies=draw.randbytes(2 * flags.SKETCHED),
    )


# --- live runs for the board's tests: a small bundled dataset, and scripted agents who play it --------


KINDS = ("timeout_after_effect", "silent_no_op", "transient_timeout", "duplicate_effect")
TASKS = 6


def live_dataset(whole: Path, folder: Path) -> Path:
    """Six of the orders' tasks, each with four kinds of faults where it has them."""
    rows = [row for row in load_live(str(whole)).rows if row.world == "orders"]
    tasks = list(dict.fromkeys(row.clean_id for row in rows))[:TASKS]
    codes = ("clean", *(f"live_{kind}" for kind in KINDS))
    kept = [row for row in rows if row.clean_id in tasks and row.type_code in codes]
    return purses.write(folder / "robustbench-tc-live", kept)


def played(
    folder: Path,
    asked: inputs.LiveData,
    agent: str,
    *,
    model: str = "Alpha-3B",
    mode: str = "fc",
    repeat: int = 1,
    defend: tuple[str, ...] = (),
) -> Path:
    """A finished run of a scripted agent, which says of itself that it is a model."""
    settings = record.Settings(
        fingerprint=asked.fingerprint(),
        model=model,
        mode=mode,  # type: ignore[arg-type]
        backend="openai",
        decoding={"temperature": 0.0},
        prompt_version=live_prompts.version(),
        repeat=repeat,
        defend=defend,
    )
    made = record.start(folder, asked, settings, len(asked.rows) * repeat)
    speaker = nullcontext(who.Opened(speakers.ScriptedAgent(agent, asked.clean()), 4, llm.Stats()))
    session.run(made, asked, speaker, worlds=inputs.world_types(asked.rows))
    return folder


def mixed(folder: Path, asked: inputs.LiveData, **options: Any) -> Path:
    """A run that is no scripted agent's: two of them, a task each in turns."""
    first = played(folder / "a", asked, "blind-retrier", **options)
    second = played(folder / "b", asked, "liar", **options)
    lines: list[bytes] = []
    tasks = list(asked.clean())
    for at, source in enumerate((first, second)):
        lines += [
            line
            for line in (source / "journal.jsonl").read_bytes().splitlines(keepends=True)
            if tasks.index(schema.loads(line)["id"].partition("::")[0]) % 2 == at
        ]
    # Episodes run side by side; what a test edits is the same line every time.
    lines.sort(key=lambda line: str(schema.loads(line)["id"]))
    (first / "journal.jsonl").write_bytes(b"".join(lines))
    return played(folder / "a", asked, "oracle", **options)  # asks nothing, and writes the episodes again
