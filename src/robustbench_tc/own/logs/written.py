"""Cases as the YAML that `own.yaml` reads back: structure in lines, values as JSON."""

import json
from collections.abc import Iterable, Sequence
from itertools import count

from robustbench_tc.schema import Json

from .proposals import Proposal

_WIDTH = 100


def case(proposal: Proposal) -> str:
    """One entry of `cases:`."""
    lines = []
    for key, found in proposal.items():
        if isinstance(found, list) and found and len(value(found)) > _WIDTH:
            lines += [f"{key}:", *(f"- {value(one)}" for one in found)]
        else:
            lines.append(f"{key}: {value(found)}")
    return "".join(f"{'- ' if at == 0 else '  '}{line}\n" for at, line in enumerate(lines))


def value(found: Json) -> str:
    """A value as JSON, which YAML is: what YAML does not take as it is, is escaped."""
    return "".join(map(_seen, json.dumps(found, ensure_ascii=False)))


def _seen(char: str) -> str:
    if char.isprintable():
        return char
    units = char.encode("utf-16-be")
    if len(units) == 2:
        return f"\\u{units.hex()}"
    return f"\\U{ord(char):08x}"  # of YAML, not of JSON


def files(tools: Sequence[str], proposals: Iterable[Proposal], most: int, note: str) -> dict[str, bytes]:
    """The cases in files of at most `most` bytes, in their order: `cases.yaml`, `cases-2.yaml` and so on.

    `note`: where they come from.
    """
    first = (
        f"# {note}\n# Review them with `rbtc cases review`; until then every table says that they are not.\n"
        f"version: 1\ntools: {value(list(tools))}\ncases:\n"
    ).encode()
    found: list[list[bytes]] = []
    size = most + 1
    for proposal in proposals:
        entry = case(proposal).encode()
        if size + len(entry) > most:
            found.append([first])
            size = len(first)
        found[-1].append(entry)
        size += len(entry)
    names = (f"cases{'' if number == 1 else f'-{number}'}.yaml" for number in count(1))
    return {name: b"".join(parts) for name, parts in zip(names, found, strict=False)}
