"""Nothing that the releasing machine keeps secret may stand in a release."""

import os
import re
from pathlib import Path

from ..audits.hygiene.files import texts_of
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

LARGEST = 64 * 2**20
"""Bytes of a file that is looked through, where it is no Parquet file."""

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
        if not name.endswith(".parquet") and (folder / name).stat().st_size > LARGEST:
            continue  # weights
        for text in texts_of(folder / name):
            for secret, value in secrets.items():
                if value in text or dumps(value)[1:-1] in text:
                    raise UserError(f"{name} holds the value of {secret}: remove it from the build")
