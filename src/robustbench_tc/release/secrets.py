"""Nothing that the releasing machine keeps secret may stand in a release."""

import gzip
import os
import re
from pathlib import Path

from ..errors import UserError
from ..io import manifest
from ..schema import dumps

SECRET_NAMES = re.compile(
    r"(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|CREDENTIAL|COOKIE|DSN|CONNECTION_STRING)S?"
    r"(?:_(?:ID|VALUE)|_?\d{1,2})?$|(?<=.)_(?:PAT|PASS|PWD|PW|AUTH|SAS)$|^PAT$",
    re.IGNORECASE,
)
"""Environment variables whose value must be in no file of a release: `OPENAI_APIKEY` like `HF_TOKEN`."""

_LOGIN = re.compile(r"://[^/\s:@]+:[^/\s@]+@")
"""What makes the value of any variable a secret: an address with a password in it."""

SECRET_LENGTH = 12
"""Shorter values could stand anywhere."""


def check_secrets(folder: Path) -> None:
    """UserError if a file holds the value of a secret environment variable, or the Hub's stored token."""
    from huggingface_hub import get_token

    known = {
        name: value for name, value in os.environ.items() if SECRET_NAMES.search(name) or _LOGIN.search(value)
    }
    known |= {"the Hub's token": get_token() or ""}
    secrets = {name: value.strip() for name, value in known.items() if len(value.strip()) >= SECRET_LENGTH}
    if not secrets:
        return
    for name in manifest.files_of(folder):
        for text in _texts(folder / name):
            for secret, value in secrets.items():
                if value.encode() in text or dumps(value)[1:-1].encode() in text:
                    raise UserError(f"{name} holds the value of {secret}: remove it from the build")


def _texts(path: Path) -> list[bytes]:
    """The bytes to search of a file: every column's values and the footer of Parquet, no weights."""
    if path.suffix == ".parquet":
        import pyarrow as pa

        from ..io import parquet

        with parquet.opened(path) as file:
            schema = file.schema_arrow
            notes = [schema.metadata, file.metadata.metadata, *(field.metadata for field in schema)]
            found = [text for note in notes for item in (note or {}).items() for text in item]
            found.append(str(schema.names).encode())
            for batch in file.iter_batches(use_threads=False):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                found.append(sink.getvalue().to_pybytes())
            return found
    if path.stat().st_size > 64 * 2**20:
        return []
    data = path.read_bytes()
    return [data, gzip.decompress(data)] if path.suffix == ".gz" else [data]
