"""`rbtc verify` on a folder: damage is found by anybody, forgery with a key, and nothing else is let by."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest
from robustbench_tc.release import sign
from robustbench_tc.release.verify import verify

from .conftest import Done
from .refusals import refuses
from .released import forge, release_of, to_spoil
from .trees import write

pytest.importorskip("cryptography", reason="needs the extra sign (make env)")


def write_private(path: Path, key: Any, form: str = "OpenSSH", password: str = "") -> Path:
    """The key in a file that nobody else can read."""
    from cryptography.hazmat.primitives import serialization as forms

    locked = forms.BestAvailableEncryption(password.encode()) if password else forms.NoEncryption()
    path.write_bytes(key.private_bytes(forms.Encoding.PEM, getattr(forms.PrivateFormat, form), locked))
    path.chmod(0o600)
    return path


def make_key(folder: Path, name: str) -> Path:
    """A fresh OpenSSH key pair; returns the private one's path."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    path = write_private(folder / name, key)
    public = key.public_key().public_bytes(forms.Encoding.OpenSSH, forms.PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public + b" maintainers@example.org\n")
    return path


def no_warning(line: str) -> None:
    raise AssertionError(line)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys `ours` and `theirs`."""
    folder = tmp_path_factory.mktemp("keys")
    make_key(folder, "ours")
    make_key(folder, "theirs")
    return folder


@pytest.fixture(scope="module")
def release(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed release."""
    return release_of(
        tmp_path_factory.mktemp("release"),
        codes=("query_paraphrase", "CD_AB"),
        key=sign.private_key(keys / "ours", warn=no_warning),
    )


@pytest.fixture
def spoilt(release: Path, tmp_path: Path) -> Path:
    """A release to spoil."""
    return to_spoil(release, tmp_path / "spoilt")


def kinds(folder: Path, **how: Any) -> list[tuple[str, str]]:
    return [(problem.kind, problem.path) for problem in verify(folder, **how).problems]


DATA = "CD_AB/test-00000-of-00001.parquet"

# --- a folder alone -----------------------------------------------------------------------------------


def test_a_line_per_file_that_is_not_as_released(spoilt: Path, rbtc: Callable[..., Done]) -> None:
    assert rbtc("verify", spoilt).code == 0
    backwards = (spoilt / DATA).read_bytes()[::-1]
    write(spoilt, {"README.md": "another card", DATA: backwards, "extra.txt": ""})
    next((spoilt / "clean").glob("*.parquet")).unlink()
    code, out, err = rbtc("verify", spoilt)
    lines = out.splitlines()
    assert code == 1 and err == ""
    assert [line.split(":")[0] for line in lines] == ["bad", "bad", "missing", "surplus"]
    assert lines[0].startswith(f"bad: {DATA}: sha256")
    assert lines[1].startswith("bad: README.md: 12 bytes instead of")
    assert lines[3] == "surplus: extra.txt"


def test_an_intact_folder_says_that_it_vouches_for_nothing(release: Path, rbtc: Callable[..., Done]) -> None:
    code, out, _ = rbtc("verify", release)
    assert code == 0
    assert "integrity only: a folder cannot vouch for itself" in out
    plain = json.loads(rbtc("verify", release, "--json").out)
    assert plain["intact"] is True and plain["witness"] == "none" and plain["signed"] is True


def test_what_git_and_the_hubs_client_keep_is_named_and_let_be(
    spoilt: Path, rbtc: Callable[..., Done]
) -> None:
    ours = [
        ".gitattributes",
        ".git/config",
        ".git/lfs/objects/ab/cd",
        ".cache/huggingface/download/x.metadata",
    ]
    write(spoilt, dict.fromkeys(ours, ""))
    code, out, _ = rbtc("verify", spoilt)
    assert code == 0 and all(path in out for path in ours)
    assert verify(spoilt).tolerated == tuple(sorted(ours))


@pytest.mark.parametrize(
    "path",
    [
        ".git/x.parquet",
        ".git/deep/er/x.PARQUET",
        ".cache/huggingface/CD_AB/test-00001-of-00002.parquet",
        ".cache/other/x",
        ".cache/huggingface2/x",
        ".gitattributes.parquet",
        ".gitignore",
        "CD_AB/.git/config",
        "CD_AB/test-00001-of-00002.parquet",
        "extra.parquet",
        "clean/more.parquet",
        "manifest.json.bak",
        "new/config/x.parquet",
    ],
)
def test_whatever_else_lies_there_is_surplus(path: str, spoilt: Path) -> None:
    assert kinds(write(spoilt, {path: ""})) == [("surplus", path)]


def test_a_link_is_never_a_file_of_a_release(spoilt: Path, tmp_path: Path) -> None:
    (spoilt / DATA).rename(tmp_path / "data")
    (spoilt / DATA).symlink_to(tmp_path / "data")  # the very bytes
    (spoilt / "aside").symlink_to(tmp_path)
    (spoilt / ".git").mkdir()
    (spoilt / ".git" / "hook").symlink_to(tmp_path / "data")
    os.mkfifo(spoilt / "pipe")
    assert kinds(spoilt) == [("link", path) for path in (".git/hook", DATA, "aside", "pipe")]
    # A link is found before it is followed.
    shutil.rmtree(spoilt / "CD_AB")
    (spoilt / "CD_AB").symlink_to(tmp_path)
    found = [("link", path) for path in (".git/hook", "CD_AB", "aside", "pipe")]
    assert kinds(spoilt) == [("missing", DATA), *found]


def test_the_copy_in_the_hubs_cache_may_be_links_into_its_blobs(release: Path, tmp_path: Path) -> None:
    repository = tmp_path / "datasets--acme--x"
    snapshot = repository / "snapshots" / "0123"
    (repository / "blobs").mkdir(parents=True)
    for number, path in enumerate(path for path in release.rglob("*") if path.is_file()):
        blob = repository / "blobs" / str(number)
        shutil.copyfile(path, blob)
        place = snapshot / path.relative_to(release)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(blob, place.parent))
    assert kinds(snapshot) == []
    blob.write_bytes(b"x")
    assert [kind for kind, _ in kinds(snapshot)] == ["bad"]
    (tmp_path / "elsewhere").write_bytes(path.read_bytes())
    place.unlink()
    place.symlink_to(tmp_path / "elsewhere")
    assert [kind for kind, _ in kinds(snapshot)] == ["link"]


def test_a_manifest_that_lies_about_its_data_is_bad(spoilt: Path) -> None:
    path = spoilt / manifest.NAME
    path.write_text(path.read_text().replace(manifest.read_manifest(spoilt).data_sha256, "0" * 64))
    assert kinds(spoilt) == [("bad", manifest.NAME)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"kind": 1}', "\xff", "[" * 100_000),
        '{"manifest_version": 2}',
        *('"1.0.0-.."', '"1.0.0\\n"', '"../.."'),
    ],
)
def test_a_broken_manifest_is_one_line(text: str, spoilt: Path, rbtc: Callable[..., Done]) -> None:
    path = spoilt / manifest.NAME
    if text.startswith('"'):
        text = path.read_text().replace('"1.0.0"', text)
    elif "version" in text:
        text = path.read_text().replace('"manifest_version": 1', '"manifest_version": 2')
    path.write_bytes(text.encode("latin-1"))
    code, out, err = rbtc("verify", spoilt)
    assert code == 1 and out == "" and err.startswith("rbtc: ") and err.count("\n") == 1


def test_a_file_name_does_not_reach_the_terminal(spoilt: Path, rbtc: Callable[..., Done]) -> None:
    (spoilt / "a\x1b]0;b\ngood: all").write_text("")
    Path(os.fsdecode(os.fsencode(spoilt) + b"/\xff")).write_text("")
    code, out, _ = rbtc("verify", spoilt)
    assert code == 1 and out.splitlines() == [r"surplus: a\x1b]0;b\ngood: all", r"surplus: \udcff"]
    assert len(json.loads(rbtc("verify", spoilt, "--json").out)["problems"]) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "no such folder, and no version on the Hub"),
        ("acme/robustbench-tc", "is not a version: name one, like acme/robustbench-tc@v1.0.0"),
        ("acme/robustbench-tc@", "is not a version"),
        ("a/b/c@v1", "no such folder, and no version on the Hub"),
        ("@v1", "no such folder, and no version on the Hub"),
    ],
)
def test_a_name_that_is_nothing_is_one_line(
    name: str, said: str, rbtc: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in rbtc("verify", name).refusal


# --- with a key ---------------------------------------------------------------------------------------


def test_a_signed_release_is_as_the_holder_of_the_key_signed_it(
    release: Path, keys: Path, rbtc: Callable[..., Done]
) -> None:
    code, out, _ = rbtc("verify", release, "--key", keys / "ours.pub")
    assert code == 0 and "as the holder of the key signed them" in out and "integrity only" not in out
    assert len((release / manifest.SIGNATURE).read_bytes()) == 64


def test_the_signature_is_one_that_openssl_checks(release: Path, keys: Path, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as forms

    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine")
    pem = tmp_path / "key.pem"
    public = sign.public_key(keys / "ours.pub")
    pem.write_bytes(public.public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(pem), "-rawin"]
    command += ["-in", str(release / manifest.NAME), "-sigfile", str(release / manifest.SIGNATURE)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert kinds(release, key=pem) == []


def test_another_signer_is_refused(release: Path, keys: Path, rbtc: Callable[..., Done]) -> None:
    code, out, _ = rbtc("verify", release, "--key", keys / "theirs.pub")
    assert code == 1 and out.startswith("signature: manifest.json.sig: not made with the key of")


def test_an_unsigned_release_is_refused(spoilt: Path, keys: Path, rbtc: Callable[..., Done]) -> None:
    (spoilt / manifest.SIGNATURE).unlink()
    code, out, _ = rbtc("verify", spoilt, "--key", keys / "ours.pub")
    assert code == 1 and "the release is unsigned" in out
    (spoilt / manifest.SIGNATURE).symlink_to(keys / "ours.pub")
    assert {kind for kind, _ in kinds(spoilt, key=keys / "ours.pub")} == {"signature", "link"}


def test_a_forged_release_is_intact_and_not_signed(spoilt: Path, keys: Path) -> None:
    """Only the key tells."""
    forge(spoilt)
    assert kinds(spoilt) == []
    assert kinds(spoilt, key=keys / "ours.pub") == [("signature", manifest.SIGNATURE)]
    # … nor does a signature of the forger's own, or a key that lies in the release, help
    forger = sign.private_key(keys / "theirs", warn=no_warning)
    (spoilt / manifest.SIGNATURE).write_bytes(forger.sign((spoilt / manifest.NAME).read_bytes()))
    assert kinds(spoilt, key=keys / "ours.pub") == [("signature", manifest.SIGNATURE)]


def test_every_bit_of_the_signature_counts(release: Path, keys: Path) -> None:
    public = sign.public_key(keys / "ours.pub")
    signature, text = (release / manifest.SIGNATURE).read_bytes(), (release / manifest.NAME).read_bytes()
    assert sign.is_signed_by(public, signature, text)
    for bit in range(512):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not sign.is_signed_by(public, bytes(flipped), text)
    for other in (b"", signature[:-1], signature + b"\0", signature * 2):
        assert not sign.is_signed_by(public, other, text)


@given(data=st.data())
@settings(max_examples=200)
def test_with_a_key_every_changed_byte_of_every_file_is_found(
    data: st.DataObject, release: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = flipped(data, release, tmp_path_factory)
    try:
        found = verify(folder, key=keys / "ours.pub")
    except UserError:
        return  # a manifest that cannot be read: the command ends with 1
    assert not found.intact


@given(data=st.data())
@settings(max_examples=100)
def test_without_a_key_every_changed_byte_but_the_manifests_is_found(
    data: st.DataObject, release: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = flipped(data, release, tmp_path_factory, but=(manifest.NAME, manifest.SIGNATURE))
    assert not verify(folder).intact


def flipped(
    data: st.DataObject, release: Path, factory: pytest.TempPathFactory, but: tuple[str, ...] = ()
) -> Path:
    """A copy of the release with one bit of one file flipped."""
    paths = sorted(path for path in release.rglob("*") if path.is_file() and path.name not in but)
    assert all(path.stat().st_size for path in paths), "an empty file has no byte to change"
    chosen = data.draw(st.sampled_from(paths))
    content = bytearray(chosen.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    folder = factory.mktemp("flipped") / "release"
    shutil.copytree(release, folder, copy_function=os.link)  # but for one file, the same bytes
    place = folder / chosen.relative_to(release)
    place.unlink()
    place.write_bytes(content)
    return folder


# --- keys ---------------------------------------------------------------------------------------------


def test_a_key_that_others_can_read_is_warned_of_and_never_written(
    keys: Path, tmp_path: Path, rbtc: Callable[..., Done], release: Path
) -> None:
    open_key = Path(shutil.copyfile(keys / "ours", tmp_path / "open"))
    open_key.chmod(0o644)
    lines: list[str] = []
    sign.private_key(open_key, warn=lines.append)
    assert lines == [f"warning: others can read {open_key}: chmod 600 {open_key}"]
    secret = (keys / "ours").read_bytes().split(b"\n")[2]
    for path in release.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 lines"),
        (b"junk", "no public key that can be read"),
        (b"ssh-ed25519 AAAA", "no public key that can be read"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no public key"),
        (b"a\nb\n", "2 lines"),
        (b"x" * 70_000, "no public key that can be read"),
    ],
)
def test_a_file_without_a_public_key_is_one_line(
    content: bytes, said: str, release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    (tmp_path / "key").write_bytes(content)
    assert said in rbtc("verify", release, "--key", tmp_path / "key").refusal


def test_keys_of_other_kinds_are_refused(keys: Path, tmp_path: Path, release: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    refuses("is a private key: --key takes the public one", verify, release, key=keys / "ours")
    refuses("no private key that can be read", sign.private_key, keys / "ours.pub", warn=no_warning)
    other = write_private(tmp_path / "rsa", rsa.generate_private_key(65537, 2048), "PKCS8")
    refuses("is not an ed25519 key", sign.private_key, other, warn=no_warning)
    refuses("no key at", sign.private_key, tmp_path / "none", warn=no_warning)


@pytest.mark.parametrize("form", ["OpenSSH", "PKCS8"])
def test_an_encrypted_key_asks_for_its_passphrase(form: str, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    path = write_private(tmp_path / "key", key, form, "open sesame")
    refuses("is encrypted: sign at a terminal", sign.private_key, path, warn=no_warning)
    refuses(
        "the passphrase does not open it",
        sign.private_key,
        path,
        warn=no_warning,
        passphrase=lambda: "another",
    )
    opened = sign.private_key(path, warn=no_warning, passphrase=lambda: "open sesame")
    assert opened.sign(b"x") == key.sign(b"x")


def test_a_missing_package_names_its_extra(
    release: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign, "find_spec", lambda name: None)
    refuses(r"pip install -e '.\[sign\]'", verify, release, key=keys / "ours.pub")
