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
