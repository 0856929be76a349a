"""Who made a release: an ed25519 signature over the bytes of its manifest, in `manifest.json.sig`.

The signature is the 64 bytes that the algorithm gives and nothing else, so that any tool can check it:

    openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in manifest.json -sigfile manifest.json.sig

The private key is the maintainer's and is only read; the public key comes from whoever verifies, never from
the release.
"""

import stat
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError, need_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def private_key(
    path: Path, *, warn: Callable[[str], None], passphrase: Callable[[], str] | None = None
) -> "Ed25519PrivateKey":
    """The ed25519 key in an OpenSSH or PEM file. UserError where there is none.

    `warn` gets a line where others can read the file. `passphrase` is asked for the one of an encrypted key;
    None: there is nobody to ask.
    """
    _need()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    data = _read(path)
    ssh = b"BEGIN OPENSSH PRIVATE KEY" in data
    load: Callable[..., Any] = (
        serialization.load_ssh_private_key if ssh else serialization.load_pem_private_key
    )
    try:
        found = load(data, None)
    except (TypeError, ValueError) as error:  # what both say of an encrypted key, in several words
        said = str(error).lower()
        if b"ENCRYPTED" not in data and "password" not in said and "encrypted" not in said:
            raise UserError(f"{path} holds no private key that can be read: {_NEW_KEY}") from None
        if passphrase is None:
            raise UserError(
                f"{path} is encrypted: sign at a terminal, which can ask for its passphrase"
            ) from None
        try:
            found = load(data, passphrase().encode())
        except (TypeError, ValueError):
            raise UserError(f"{path}: the passphrase does not open it") from None
    except UnsupportedAlgorithm as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, Ed25519PrivateKey):
        raise UserError(f"{path} is not an ed25519 key: {_NEW_KEY}")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn(f"warning: others can read {path}: chmod 600 {path}")
    return found


def public_key(path: Path) -> "Ed25519PublicKey":
    """The ed25519 key in a file with one OpenSSH line, or PEM. UserError where there is none."""
    _need()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise UserError(f"{path} is a private key: --key takes the public one (ssh-keygen -y -f {path})")
    lines = [line for line in data.splitlines() if line.strip() and not line.startswith(b"#")]
    pem = any(line.startswith(b"-----BEGIN") for line in lines)
    if not pem and len(lines) != 1:
        raise UserError(f"{path} holds {len(lines)} lines: --key takes a file with one public key")
    load: Callable[..., Any] = serialization.load_pem_public_key if pem else serialization.load_ssh_public_key
    try:
        found = load(data if pem else lines[0])
    except (ValueError, UnsupportedAlgorithm):
        raise UserError(f"{path} holds no public key that can be read: give an OpenSSH line or PEM") from None
    if not isinstance(found, Ed25519PublicKey):
        raise UserError(f"{path} is not an ed25519 key: releases are signed with ed25519 only")
    return found


def is_signed_by(key: "Ed25519PublicKey", signature: bytes, data: bytes) -> bool:
    """Whether the holder of `key` signed exactly these bytes."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def ask_passphrase() -> Callable[[], str] | None:
    """Asks at the terminal; None where there is none."""
    if not sys.stdin.isatty():
        return None
    from getpass import getpass

    return lambda: getpass("passphrase of the key: ")


_NEW_KEY = "make one with `ssh-keygen -t ed25519 -f FILE`"


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise UserError(f"no key at {path}")
    return path.read_bytes()


def _need() -> None:
    if find_spec("cryptography") is None:
        raise need_extra("cryptography", "sign")
