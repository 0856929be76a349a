"""Who made a release: an ed25519 signature over the bytes of its manifest, in `manifest.json.sig`.

The signature is the 64 bytes that the algorithm gives and nothing else, so that any tool can check it:

    openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in manifest.json -sigfile manifest.json.sig

The private key is the maintainer's and is only read; the public key comes from whoever verifies, never from
the release.
"""

import stat
import sys
from collections.abc import Callable
from getpass import getpass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError, need_extra
from ..option import Tell

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_NEW_KEY = "make one with `ssh-keygen -t ed25519 -f FILE`"


def private_key(
    path: Path, *, warn: Tell, passphrase: Callable[[], str] | None = None
) -> "Ed25519PrivateKey":
    """The ed25519 key in an OpenSSH or PEM file. UserError where there is none.

    `warn` gets a line where others can read the file. `passphrase` is asked for the one of an encrypted key;
    None: there is nobody to ask.
    """
    data = _read(path)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    load = load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        try:
            found = load(data, None)
        except TypeError:  # it is encrypted
            if passphrase is None:
                said = f"{path} is encrypted: sign at a terminal, which can ask for its passphrase"
                raise UserError(said) from None
            found = load(data, passphrase().encode())
    except (ValueError, UnsupportedAlgorithm):
        why = "holds no private key that can be read, or the passphrase does not open it"
        raise UserError(f"{path} {why}: {_NEW_KEY}") from None
    if not isinstance(found, Ed25519PrivateKey):
        raise UserError(f"{path} is not an ed25519 key: {_NEW_KEY}")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn(f"warning: others can read {path}: chmod 600 {path}")
    return found


def public_key(path: Path) -> "Ed25519PublicKey":
    """The ed25519 key in a file with one OpenSSH line, or PEM. UserError where there is none."""
    data = _read(path)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

    if b"PRIVATE KEY" in data:
        raise UserError(f"{path} is a private key: --key takes the public one (ssh-keygen -y -f {path})")
    lines = [line for line in data.splitlines() if line.strip() and not line.startswith(b"#")]
    pem = any(line.startswith(b"-----BEGIN") for line in lines)
    if not pem and len(lines) != 1:
        raise UserError(f"{path} holds {len(lines)} lines: --key takes a file with one public key")
    try:
        found = load_pem_public_key(data) if pem else load_ssh_public_key(lines[0])
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
    return (lambda: getpass("passphrase of the key: ")) if sys.stdin.isatty() else None


def _read(path: Path) -> bytes:
    if find_spec("cryptography") is None:
        raise need_extra("cryptography", "sign")
    if not path.is_file():
        raise UserError(f"no key at {path}")
    return path.read_bytes()
