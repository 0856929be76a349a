"""What an account and an address have used of a day. Checks that failed count: they cost as much.

Kept in memory: a restart forgets the day. What is listed is counted in the store, which forgets nothing.
"""

from collections import Counter

from .limits import Limits
from .refusal import Refused
from .submitting import Submitter


class Meter:
    """Checks of one day (UTC) by account and address. Not safe under threads: `Desk` holds its lock."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._day = ""
        self._used: Counter[tuple[str, str]] = Counter()

    def per_day(self, who: Submitter) -> int:
        """Submissions that `who` may list a day: the largest quota of the account and its organisations."""
        quotas = self._limits.quotas
        return max(
            (quotas[name] for name in (who.user, *who.orgs) if name in quotas), default=self._limits.per_day
        )

    def count(self, who: Submitter, day: str) -> None:
        """Counts a check that is about to begin. Raises Refused where the day's are used up."""
        if day != self._day:
            self._day = day
            self._used.clear()
        limits = self._limits
        mine = self.per_day(who) * limits.checks_per_listing
        bounds = {
            ("account", who.account): (f"{who.user} has", mine),
            ("address", who.network): ("your address has", max(mine, limits.address_checks)),
        }
        for key, (whose, most) in bounds.items():
            if self._used[key] >= most:
                raise Refused(
                    "quota",
                    f"{whose} had {most:,} uploads checked today, failed ones included, which is all a day "
                    "takes: come tomorrow; `rbtc leaderboard submit-check` checks at home",
                )
        self._used.update(bounds.keys())
