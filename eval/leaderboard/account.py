"""Who asks the API: `local` on a laptop, on a Space the account of the Hub whose token comes along.

A token is shown to the Hub and to nobody else. What stays in memory for a few minutes is a digest of it
under a key of this process, with the account's name.
"""

import hmac
import json
import re
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

from . import names
from .problem import Problem
from .refusal import Refused
from .submitting import LOCAL, Submitter

Login = Literal["local", "hf"]
"""local: everybody is `local`, for a laptop. hf: an account of Hugging Face."""

KEPT_S = 300.0
"""For so long an account is not asked for again: what a token that was revoked is still good for."""

WRONG, WRONG_S = 10, 600.0
"""So many wrong tokens of one address in so many seconds; further ones are not shown to the Hub."""

_KEPT = 2_000
"""Tokens and addresses that are remembered."""

_AT_ONCE = 8
_HUB_S = 10.0

_Account = tuple[str, tuple[str, ...]]
"""Its name, and the organisations that it is a member of."""

_TOKEN = re.compile(r"[\x21-\x7e]{8,1000}")

SIGN_IN = "send a token of Hugging Face as `Authorization: Bearer …` (it needs no permission)"


class Accounts:
    """Finds the account behind a request. Safe under threads; `of` may wait for the Hub."""

    def __init__(self, login: Login, clock: Callable[[], float] = time.monotonic) -> None:
        self.login = login
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._asking = threading.BoundedSemaphore(_AT_ONCE)
        self._known: OrderedDict[bytes, tuple[_Account, float]] = OrderedDict()
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def of(self, authorization: str | None, address: str) -> Submitter:
        """Who sends an `Authorization` header from an address. Raises Problem."""
        if self.login == "local":
            return Submitter(LOCAL, address)
        user, orgs = self._account(authorization, address)
        return Submitter(user, address, orgs)

    def _account(self, authorization: str | None, address: str) -> _Account:
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.casefold() != "bearer" or not _TOKEN.fullmatch(token):
            raise Problem(401, f"you are not signed in: {SIGN_IN}")
        digest, now = hmac.digest(self._key, token.encode(), "sha256"), self._clock()
        with self._lock:
            account, until = self._known.get(digest, (("", ()), 0.0))
            wrong = [at for at in self._wrong.get(address, []) if now - at < WRONG_S]
        if until > now:
            return account
        if len(wrong) >= WRONG:
            raise Problem(429, "too many tokens that the Hub does not know: wait a while", wait_s=WRONG_S)
        account = self._ask(token, address)
        with self._lock:
            _remember(self._known, digest, (account, now + KEPT_S))
        return account

    def _ask(self, token: str, address: str) -> _Account:
        if not self._asking.acquire(timeout=_HUB_S):
            raise Problem(503, "too many people sign in at once: try again in a moment", wait_s=5)
        try:
            return _account_of(_whoami(token))
        except Problem as problem:
            if problem.status == 401:
                with self._lock:
                    _remember(self._wrong, address, [*self._wrong.get(address, [])[-WRONG:], self._clock()])
            raise
        finally:
            self._asking.release()


def _remember(where: OrderedDict[Any, Any], key: object, value: object) -> None:
    where[key] = value
    where.move_to_end(key)
    while len(where) > _KEPT:
        where.popitem(last=False)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes to the Hub alone, wherever an answer points."""

    def redirect_request(self, *_: object) -> None:
        return None


def _whoami(token: str) -> Any:
    from huggingface_hub import constants

    asked = urllib.request.Request(
        f"{constants.ENDPOINT}/api/whoami-v2", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(asked, timeout=_HUB_S) as reply:
            return json.loads(reply.read(1 << 20))
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise Problem(401, f"the Hub does not know this token: {SIGN_IN}") from None
        raise _silent(f"answered {error.code}") from None
    except (OSError, ValueError) as error:
        raise _silent(f"did not answer, {type(error).__name__}") from None


def _account_of(said: Any) -> _Account:
    if not isinstance(said, dict) or said.get("type", "user") != "user":
        raise Problem(401, "this token is an organisation's: send a person's")
    try:
        user = names.check_user(str(said.get("name", "")))
    except Refused as refusal:
        raise Problem(401, str(refusal)) from None
    orgs = said.get("orgs")
    found = [one.get("name") for one in orgs if isinstance(one, dict)] if isinstance(orgs, list) else []
    return user, tuple(name for name in found if isinstance(name, str))


def _silent(what: str) -> Problem:
    return Problem(
        503, f"the Hub ({what}) could not say whose token this is: try again in a moment", wait_s=10
    )
