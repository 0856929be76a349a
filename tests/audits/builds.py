"""Builds to audit: the bundled samples, copies with planted defects, and a small training folder."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.audits import gate, paraphrase
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.judge import Judge
from robustbench_tc.audits.judgments import recorded_judge
from robustbench_tc.audits.report import AuditReport, Check
from robustbench_tc.audits.scan import Scan
from robustbench_tc.builders import errata_files, generations
from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.builders.training_rows import FineTuningRow, TrainingRow
from robustbench_tc.io import marker
from robustbench_tc.schema import PublishedSample, arrow_schema, loads

Row = dict[str, Any]

SEED = 0


def audit(folder: Path, judge: Sequence[Judge] = (), **options: Any) -> AuditReport:
    """The gate, by the judgments that ship with the package alone."""
    return gate.audit(folder, judge=judge or [recorded_judge(build=folder)], **options)


def audit_rows(folder: Path) -> AuditReport:
    """What the gate says of the configs, rows and rewritten texts of a build: half of its work."""
    from robustbench_tc.audits.expectations import benchmark

    scan = Scan(Folder(folder))
    judged = paraphrase.audit(scan.found.pairs, {}, recorded_judge(build=folder))
    suites = [*benchmark.configs_suite(scan), *benchmark.rows_suite(scan), *benchmark.texts_suite(scan)]
    checks = [*suites, *judged.checks]
    return AuditReport(
        package_version="0",
        kind="benchmark",
        name=folder.name,
        build="",
        passed=not any(one.blocks for one in checks),
        checks=tuple(checks),
    )


def some_configs(folder: Path, to: Path, *configs: str) -> Path:
    """A copy with the rows of these configs alone."""
    to.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            shutil.copy(path, to)
    for config in configs:
        shutil.copytree(folder / config, to / config)
    return to


Make = Callable[[Path, Path], object]
"""Makes a build again: the build, and where to."""


def made_once(make: Make, kept: Path, own_rows: bool) -> Make:
    """`make`, done once in `kept` for the same inputs and copied from there.

    `own_rows`: it reads the build's own clean rows, since no sources are at hand.
    """

    def made(build: Path, out: Path) -> None:
        report = loads((build / marker.BUILD).read_text())
        told = [report.get(f) for f in ("profile", "seed", "types")] if isinstance(report, dict) else report
        read = [generations.NAME, errata_files.NAME, *(["clean", "known_issues"] if own_rows else [])]
        files = [p for name in read for p in sorted((build / name).rglob("*")) or [build / name]]
        hashes = [marker.sha256(p) if p.is_file() else "" for p in files]
        key = repr((own_rows, pa.__version__, told, hashes)).encode()
        known = kept / marker.sha256_of(key)
        if not known.is_dir():
            make(build, known)
        shutil.copytree(known, out)

    return made


def copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def rows(folder: Path, config: str, split: str = "test") -> list[Row]:
    """Rows with their JSON columns decoded."""
    found: list[Row] = pq.read_table(_shard(folder, config, split)).to_pylist()
    return [{**row, **{name: loads(row[name]) for name in _json(row)}} for row in found]


def write(folder: Path, config: str, changed: Sequence[Row], split: str = "test") -> None:
    """Writes rows back, JSON columns as canonical text; a JSON column that holds text is left alone."""
    plain = [
        {name: _text(value) if name in _json(row) else value for name, value in row.items()}
        for row in changed
    ]
    schema = (
        arrow_schema(PublishedSample)
        if "tools" in plain[0]
        else pq.read_schema(_shard(folder, config, split))
    )
    pq.write_table(pa.Table.from_pylist(plain, schema=schema), _shard(folder, config, split))


def edit(folder: Path, config: str, change: Callable[[list[Row]], Any]) -> Any:
    """Changes the rows of a config in place; gives what `change` gives."""
    found = rows(folder, config)
    result = change(found)
    write(folder, config, found)
    return result


def find(report: AuditReport, id: str) -> Check:
    return next(check for check in report.checks if check.id == id)


def _json(row: Row) -> tuple[str, ...]:
    return ("tools", "golden_answers", "changes") if "tools" in row else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _shard(folder: Path, config: str, split: str) -> Path:
    (found,) = (folder / config).glob(f"{split}-*.parquet")
    return found


SYSTEM = 'Tools:\n1. Name: tide_table\nDescription: Tides of a port.\nParameters: {"port": {"type": "str"}}'


def gold(name: str, **parameters: Any) -> str:
    call = json.dumps({"name": name, "parameters": parameters})
    return f"<think>I look it up.</think>\n<tool_call>\n{call}\n</tool_call>"


def training_row(index: int, query: str, port: str, code: str = "clean", **info: Any) -> Row:
    """A row of `full`, `mixed` or `retry` as the trainer reads it."""
    component = None if code == "clean" else REGISTRY[code].component
    changes = (
        [] if code == "clean" else [{"path": "/messages/1/content", "before": "x", "after": query, "at": 0}]
    )
    extra = {
        "index": index,
        "split": "train",
        "clean_id": f"rlla__train_{index}",
        "type_code": code,
        "component": component,
        "copy": 0 if code == "clean" else 1,
        "generator": "rule",
        "flags": [],
        "changes": json.dumps(changes),
        **info,
    }
    return {
        "data_source": "rlla",
        "prompt": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": query}],
        "ability": "tool_calling",
        "reward_model": {"style": "rule", "ground_truth": gold("tide_table", port=port)},
        "extra_info": json.dumps(extra),
    }


def build_training(folder: Path) -> Path:
    """A hand-written training build: two rows of `full` and `mixed`, one of `retry` and `paft`."""
    from ..known import INJECTED_ERRORS

    error = {"type_code": "transient_timeout", "error": INJECTED_ERRORS["transient_timeout"], "position": 1}
    one = training_row(0, "Whne is high water at Mallow Quay?", "Mallow Quay", "realistic_typos")
    two = training_row(1, "Please tell me about low water at Brunt Ness.", "Brunt Ness", "query_paraphrase")
    clean = training_row(2, "When is low water at Brunt Ness today?", "Brunt Ness")
    again = training_row(3, "And at Mallow Quay, when is high water?", "Mallow Quay", retry=error)
    checked = training_row(4, "High water at Sallow Reach, please.", "Sallow Reach")
    prompted = {
        "messages": [*one["prompt"], {"role": "assistant", "content": one["reward_model"]["ground_truth"]}],
        "extra_info": one["extra_info"],
    }
    configs = {"full": [one, two], "mixed": [one, clean], "retry": [again], "paft": [prompted]}
    for config, train in configs.items():
        (folder / config).mkdir(parents=True)
        held = [{**checked} if config != "paft" else _fine_tuning_row(checked)]
        for split, found in (("train", train), ("validation", held)):
            schema = arrow_schema(FineTuningRow if config == "paft" else TrainingRow)
            path = folder / config / f"{split}-00000-of-00001.parquet"
            pq.write_table(pa.Table.from_pylist(found, schema=schema), path)
    perturbed = {"full": 2, "mixed": 1, "retry": 0, "paft": 1}
    report: dict[str, Any] = {
        "kind": "toolrl-dr",
        "report_version": marker.BUILD_VERSION,
        "form": "rl_parquet",
        "drawn": {},
        "sources": [{"file": "train.parquet", "bytes": 1, "sha256": "0" * 64}],
        "rows": {
            c: {"train": len(t), "perturbed": perturbed[c], "validation": 1} for c, t in configs.items()
        },
    }
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Training\n")
    (folder / "build_report.md").write_text("# Build report\n")
    (folder / "generations.jsonl").write_bytes(b"")
    report |= {"files": marker.hashes(folder, but=marker.BUILD), "own_sha256": ""}
    (folder / marker.BUILD).write_bytes(marker.sealed(report))
    return folder


def _fine_tuning_row(row: Row) -> Row:
    gold_text = row["reward_model"]["ground_truth"]
    turns = [*row["prompt"], {"role": "assistant", "content": gold_text}]
    return {"messages": turns, "extra_info": row["extra_info"]}


def edit_training(
    folder: Path, config: str, change: Callable[[list[Row]], Any], split: str = "train"
) -> None:
    """Changes the rows of a split of a training config in place."""
    path = _shard(folder, config, split)
    found: list[Row] = pq.read_table(path).to_pylist()
    change(found)
    pq.write_table(pa.Table.from_pylist(found, schema=pq.read_schema(path)), path)
