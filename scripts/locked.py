"""Prints what an environment installs: the part of requirements.lock, hashes included, that some extras need.

    python scripts/locked.py audit dev > wanted.txt && pip install --require-hashes --no-deps -r wanted.txt
    python scripts/locked.py --extras      the extras that the lock resolves together

The lock is one resolution for everything, so that no two environments disagree, and each installs its own
part of it. As constraints the hashes would be of no use: the pip that comes with Python 3.11 takes them from
requirements only. This runs before anything is installed: standard library only.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

UNLOCKED = ("train", "trl", "vllm", "serve", "inspect", "lm-eval")
"""They pin what the lock pins otherwise (transformers, torch, fsspec), each in an environment of its own."""


def main(words: list[str]) -> None:
    """Writes the answer to standard output; ends with a line on standard error where there is none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = {
        name: needs
        for name, needs in project["project"]["optional-dependencies"].items()
        if name not in UNLOCKED
    }
    if words == ["--extras"]:
        sys.stdout.write(" ".join(extras) + "\n")
        return
    if unknown := [word for word in words if word not in extras]:
        sys.exit(f"no locked extra {unknown[0]!r}: there are {', '.join(extras)}")
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [need for word in words for need in extras[word]]
    sys.stdout.write(part((ROOT / "requirements.lock").read_text(), map(named, wanted)))


def part(lock: str, roots: "map[str]") -> str:
    """The entries of `roots` and of everything that came into the lock because of them."""
    entries: dict[str, list[str]] = {}
    """Several for a package whose version depends on the Python."""
    needs: dict[str, set[str]] = {}
    for entry in re.split(r"^(?=\w)", lock, flags=re.MULTILINE)[1:]:
        name = named(entry)
        entries.setdefault(name, []).append("".join(re.findall(r"^[^#]*\n", entry, re.MULTILINE)))
        for parent in re.findall(r"^    #(?: via|  ) ([\w.-]+)", entry, re.MULTILINE):
            needs.setdefault(named(parent), set()).add(name)
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name not in entries:
            sys.exit(f"requirements.lock has no {name}: pyproject.toml has changed, so run `make lock`")
        found.add(name)
        waiting += needs.get(name, ())
    return "".join(text for name in sorted(found) for text in entries[name])


def named(requirement: str) -> str:
    """The normal form of a requirement's name."""
    found = re.match(r"[\w.-]+", requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


if __name__ == "__main__":
    main(sys.argv[1:])
