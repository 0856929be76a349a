"""Logs as inspect_ai writes them, made by hand: from a scored run of ours, or of another task."""

import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import schema

STORED, DEFLATED, BZIP2, LZMA, ZSTANDARD = 0, 8, 12, 14, 93
Member = tuple[str, bytes]


def packed(data: bytes, method: int) -> bytes:
    if method == DEFLATED:
        squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
        return squeeze.compress(data) + squeeze.flush()
    if method == ZSTANDARD:
        frame: bytes = pa.Codec("zstd").compress(data, asbytes=True)
        return frame
    return data


def zip_of(members: Iterable[Member], method: int = ZSTANDARD, *, flags: int = 0, wrong: int = 0) -> bytes:
    """A zip file; `wrong` is added to every checksum."""
    body, listed, count = b"", b"", 0
    for name, data in members:
        inside, named = packed(data, method), name.encode()
        crc = (zlib.crc32(data) + wrong) & 0xFFFFFFFF
        said = struct.pack(
            "<HHHHHIIIHH", 20, flags, method, 0, 33, crc, len(inside), len(data), len(named), 0
        )
        listed += (
            b"PK\x01\x02"
            + struct.pack("<H", 20)
            + said
            + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
            + named
        )
        body += b"PK\x03\x04" + said + named + inside
        count += 1
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(listed), len(body), 0)
    return body + listed + b"PK\x05\x06" + end


def header(samples: int, *, epochs: int = 1, model: str = "m", metadata: Any = None) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "made",
            "model": model,
            "created": "2026-11-23T00:00:00+00:00",
            "dataset": {"name": "made", "samples": samples},
            "config": {"epochs": epochs},
            "metadata": metadata,
            "packages": {"inspect_ai": "0.3.285"},
        },
        "plan": {"config": {"temperature": 0.0}},
    }


def write(
    path: Path, samples: Sequence[dict[str, Any]], head: dict[str, Any] | None = None, method: int = ZSTANDARD
) -> Path:
    """A log with these samples."""
    members = [("_journal/start.json", b"{}")]
    members += [(f"samples/{n}_epoch_1.json", schema.dumps(one).encode()) for n, one in enumerate(samples)]
    members.append(("header.json", schema.dumps(head or header(len(samples))).encode()))
    path.write_bytes(zip_of(members, method))
    return path


def of_run(run: Path, log: Path) -> Path:
    """What our task would have left of a scored run's answers."""
    record = schema.loads((run / "run.json").read_bytes())
    settings, samples = record["settings"], []
    for row in pq.read_table(run / "scores.parquet").to_pylist():
        one = schema.record(row, schema.Prediction)
        sample: dict[str, Any] = {"id": one.id, "epoch": one.repeat + 1, "input": "asked", "target": "gold"}
        sample["metadata"] = {
            "clean_id": one.clean_id,
            "type": one.type_code,
            "source": one.source,
            "category": one.category,
            "sample_hash": one.sample_hash,
        }
        if one.status == "request_error":
            samples.append(sample | {"error": {"message": one.error or "gone"}})
            continue
        verdict = schema.record(row, schema.Verdict)
        sample["metadata"]["prediction"] = one
        said = {"repeat": one.repeat, "verdict": verdict}
        value = "C" if verdict.correct else "I"
        samples.append(sample | {"scores": {"verdict": {"value": value, "metadata": said}}})
    ours = {
        "dataset": "/somewhere/else/" + Path(record["dataset"]).name,
        "dataset_version": record["dataset_version"],
        "fingerprint": settings["fingerprint"],
        "mode": settings["mode"],
        "prompt_version": settings["prompt_version"],
    }
    repeats = settings.get("repeat", 1)
    head = header(
        len(samples) // repeats, epochs=repeats, model=settings["model"], metadata={"robustbench_tc": ours}
    )
    return write(log, samples, head)
