"""What an upload may cost. Everything that an upload can make large has a bound here."""

import msgspec

MB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one upload, of the process that reads it, and of one user's day."""

    file_bytes: int = 64 * MB
    record_bytes: int = MB
    """Of run.json."""
    decoded_bytes: int = 512 * MB
    """Of all columns together once they are unpacked: what a small file may grow to."""
    repeats: int = 5
    """Answers per row."""
    reply_chars: int = 200_000
    """Of one reply's text, and of one call's arguments."""
    field_chars: int = 2_000
    """Of any other text: ids, error messages, names."""
    calls: int = 128
    """Native calls of one reply."""
    memory_bytes: int = 3 * 1024 * MB
    """Address space of the reading process, beyond what it has when it starts."""
    cpu_s: int = 120
    wall_s: float = 240.0
    per_day: int = 10
    """Submissions of one user and day (UTC)."""
    quotas: dict[str, int] = {}
    """The same for accounts and organisations that are known to send more (`--quota`)."""
    checks_per_listing: int = 4
    """Checks of one account and day for each submission that it may list; failed ones count."""
    address_checks: int = 160
    """Checks of one address and day, over all of its accounts."""
    waiting_per_account: int = 3
    waiting_per_address: int = 8
    waiting: int = 64
    """Uploads that wait at once. With the two above: 9 addresses fill the queue, and still stop no tenth."""
    lately_s: float = 600.0
    """As long as this a check counts as a turn of its account and address."""
    pending: int = 5
    """Scored uploads that one user has not listed yet; the oldest makes room."""
    pending_s: float = 3600.0
    uploads_of_user: int = 3
    """Uploads of scripts that are on their way at once (`uploads`)."""
    uploads_of_address: int = 6
    uploads: int = 48
    """With `file_bytes`, what uploads on their way may take of the disk."""
    upload_idle_s: float = 600.0
    """An upload to which nothing came for so long makes room for another."""
