"""What a run may be called and what may be stated of it: texts that pages, paths and comments can bear."""

import re
from datetime import datetime

import msgspec

from .entry import Refused, Submission

_ORG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_MODEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,94}[A-Za-z0-9+])?")
_ID = re.compile(r"[0-9]{8}-[0-9a-f]{12}")
SUBMISSION_BYTES = 20_000
"""Of `submission.yaml`."""

_LENGTHS = {"card": 300, "agent": 200, "defences": 200, "contact": 200, "note": 2_000}
_NUMBERS = {"params_b": (0.001, 100_000), "price_in": (0, 100_000), "price_out": (0, 100_000)}
_FORMS = {
    "licence": (re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 .,+()/_-]{0,58}[A-Za-z0-9.+)])?"), "apache-2.0"),
    "card": (
        re.compile(
            r"https://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~!$&()*+,;=:@%/?#-]*)?"
        ),
        "an https address",
    ),
}


def shown(text: str, length: int = 60) -> str:
    """A hostile text for a message: quoted, everything beyond printable ASCII escaped, bounded."""
    cut = text if len(text) <= length else text[:length] + "…"
    return ascii(cut).replace("\\u2026", "…")


def of_run(run: str) -> tuple[str, str, str]:
    """Organisation, model and id of a run's name. Raises Refused for one that no run has."""
    parts = run.split("/")
    if len(parts) != 3 or ".." in run:
        raise Refused("name", f"{shown(run)} is no run: runs lie in runs/ORG/MODEL/ID")
    org, model, identity = parts
    for what, part, allowed in (("organisation", org, _ORG), ("model", model, _MODEL), ("id", identity, _ID)):
        if not allowed.fullmatch(part):
            raise Refused(
                "name",
                f"the {what} {shown(part)} cannot be listed: ASCII letters, digits, '.', '_' and '-' only, "
                "at most 96 of them; an id is a day as YYYYMMDD, '-' and 12 hex digits",
            )
    try:
        datetime.strptime(identity[:8], "%Y%m%d")
    except ValueError:
        raise Refused("name", f"the id {identity} is none: a day as YYYYMMDD begins it") from None
    return org, model, identity


def submission(yaml: bytes, model: str) -> Submission:
    """`submission.yaml` of a run of that model. Raises Refused for what cannot be listed."""
    try:
        found = msgspec.yaml.decode(yaml, type=Submission)
    except (
        ValueError,
        RecursionError,
        OverflowError,
    ) as error:  # msgspec's and yaml's errors are ValueErrors
        raise Refused("form", f"submission.yaml cannot be read: {shown(str(error), 200)}") from None
    if found.model.rpartition("/")[2] != model:
        raise Refused("name", f"submission.yaml is of the model {shown(found.model)}, the folder of {model}")
    org, slash, _ = found.model.rpartition("/")
    if slash and (not _ORG.fullmatch(org) or ".." in org):
        raise Refused(
            "name",
            f"the model name {shown(found.model)} cannot be listed: give a name, or organisation/name",
        )
    for name, most in _LENGTHS.items():
        text = getattr(found, name)
        if text is not None and (len(text) > most or not text.replace("\n", " ").isprintable()):
            raise Refused("form", f"{name}: plain text of at most {most:,} characters")
    for name, (least, most) in _NUMBERS.items():
        number = getattr(found, name)
        if number is not None and not least <= number <= most:  # also refuses NaN
            raise Refused("form", f"{name}: a number between {least} and {most:,}")
    for name, (allowed, example) in _FORMS.items():
        text = getattr(found, name)
        if text is not None and not allowed.fullmatch(text):
            raise Refused("form", f"{name}: {shown(text)} cannot be listed, {example} can")
    return found
