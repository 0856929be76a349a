"""What the Hub's answers and its clients' exceptions mean, in one short line each."""

import re
from typing import Any

from ..io.manifest import printable

PAUSE_S = 10.0
"""How long to wait for a Hub that wants fewer requests and does not say how long."""


def why_not(identity: dict[str, Any], repo: str) -> str | None:
    """Why the owner of a token may not write to `repo`, by the answer of whoami-v2; None: nothing says so."""
    owner = repo.split("/")[0]
    name = identity.get("name")
    orgs = {org.get("name"): org for org in identity.get("orgs", [])}
    if owner != name and owner not in orgs:
        return f"the token belongs to {name}, who is not a member of {owner}"
    if owner in orgs and orgs[owner].get("roleInOrg") == "read":
        return f"the token belongs to {name}, who may only read in {owner}"
    access = identity.get("auth", {}).get("accessToken", {})
    if access.get("role") == "read":
        return "the token may only read"
    if access.get("role") == "fineGrained":
        for scope in access.get("fineGrained", {}).get("scoped", []):
            if scope.get("entity", {}).get("name") in (owner, repo) and "repo.write" in scope["permissions"]:
                return None
        return f"the token has no right repo.write for {owner}"
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what lies below it."""
    chain = [error]
    while (below := chain[-1].__cause__ or chain[-1].__context__) is not None and below not in chain:
        chain.append(below)
    return chain


def pause(error: Exception) -> float | None:
    """How long a Hub that wants fewer requests wants to be left alone; None where it is something else."""
    from huggingface_hub.errors import HfHubHTTPError

    for found in _chain(error):
        if isinstance(found, HfHubHTTPError) and found.response.status_code == 429:
            said = found.response.headers.get("Retry-After", "")
            return max(1.0, float(said)) if re.fullmatch(r"[0-9]{1,6}", said) else PAUSE_S
    return None


def reason(error: Exception, timeout_s: float) -> str:
    """What went wrong, in one short line."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    chain = _chain(error)
    for found in chain:
        if isinstance(found, HfHubHTTPError):
            return _status(found.response.status_code, found.server_message)
        if isinstance(found, OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE is set"
        if "Timeout" in type(found).__name__:
            return f"the Hub did not answer in time (--timeout {timeout_s:g} s for an upload)"
    names = {type(found).__name__ for found in chain}
    if names & {"ConnectError", "ConnectionRefusedError", "gaierror"}:
        return "the Hub cannot be reached"
    if names & {"RemoteProtocolError", "ReadError", "WriteError", "ConnectionResetError"}:
        return "the connection broke off"
    return f"{type(error).__name__}: {printable(' '.join(str(error).split()), 200)}"


def _status(status: int, said: str | None) -> str:
    meaning = {
        401: "the token is not accepted (401)",
        403: "the token has no right to do this (403)",
        412: "somebody else changed the repository meanwhile (412)",
        413: "the Hub finds the upload too large (413)",
        429: "the Hub wants fewer requests (429)",
    }.get(status, f"the Hub answered {status}")
    line = printable(" ".join((said or "").split()), 200)
    return f"{meaning}: {line}" if line else meaning
