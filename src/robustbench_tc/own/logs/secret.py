"""The secret that a folder's pseudonyms are keyed by: `.rbtc-secret`, made once, its owner's alone."""

import os
import secrets
import stat
from pathlib import Path

from robustbench_tc.errors import UserError

NAME = ".rbtc-secret"
BYTES = 32


def read_secret(folder: Path) -> bytes | None:
    """The secret of a folder; None where it has none. Raises UserError for one that is no secret any more."""
    path = folder / NAME
    try:
        found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    with os.fdopen(found, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise UserError(f"{path}: not a file: remove it, and pseudonyms get a new secret")
        if state.st_mode & 0o077:
            raise UserError(f"{path}: others may read it: chmod 600 it, or remove it for a new one")
        text = file.read(4 * BYTES).strip()
    try:
        key = bytes.fromhex(text.decode())
    except ValueError:
        key = b""
    if len(key) != BYTES:
        raise UserError(f"{path}: not a secret of rbtc: remove it, and pseudonyms get a new one")
    return key


def make_secret() -> bytes:
    """A new secret."""
    return secrets.token_bytes(BYTES)


def write_secret(folder: Path, key: bytes) -> None:
    """Writes a folder's secret, which has none yet, with mode 600 from the first moment on."""
    path = folder / NAME
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    with os.fdopen(made, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(key.hex().encode() + b"\n")
