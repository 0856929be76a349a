"""What an upload may cost. Everything that an upload can make large has a bound here."""

import math

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
    cpu_s: float = 4.0
    """Processor time of a check, with one second more for every `rows_per_cpu_s` answers: 8 s for the paper's
    3,977 rows, where a run of short replies takes about 1 s."""
    rows_per_cpu_s: int = 1_000
    chars_per_cpu_s: int = 1_000_000
    """Characters of replies for which there is one second more: honest runs that think for 4,000 and for
    16,000 characters before each call took 0.6 s and 0.5 s a million."""
    text_cpu_s: float = 50.0
    """The most that the length of the replies adds: 58 s in all for the paper's rows, asked once."""
    live_episodes_per_cpu_s: int = 20
    """The same for episodes of a live run, which are replayed: 560 of the bundled worlds take about 6 s."""
    live_calls_per_cpu_s: int = 400
    """Calls for which there is one second more: 50 in each of 21 replies take 1.4 ms a call to make again and
    to score. With the length of the journal they add `text_cpu_s` at most."""
    live_lines: int = 400
    """Lines of a journal for each episode: two for every reply, more behind defences."""
    wall_per_cpu: float = 4.0
    """Seconds of a clock for each of processor time: other processes want the cores too."""
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
    connections: int = 1_000
    """Open at once, in all."""
    connections_of_address: int = 100
    """Of one address; also its requests at work at once."""
    head_s: float = 15.0
    """For the head of a request, and for the first bytes of its body."""
    send_s: float = 60.0
    """As long as this a visitor may read nothing of an answer."""
    body_bytes: int = 256 * 1024
    """Of a request that brings no file."""
    body_bytes_per_s: int = 32 * 1024
    """The pace at which a body has to arrive, on average."""
    uploads_at_once: int = 16
    """Requests of the submit page that bring a file, in all."""
    uploads_at_once_of_one: int = 4
    """Of one account, and of one address."""
    upload_space: int = 4 * 1024 * MB
    """What the files of the submit page take of the disk, in all."""
    upload_space_of_one: int = 320 * MB
    """Of one account, and of one address."""
    upload_keep_s: float = 1800.0
    """After this they are removed."""
    uploads_of_user: int = 3
    """Uploads of scripts that are on their way at once (`uploads`)."""
    uploads_of_address: int = 6
    uploads: int = 48
    """With `file_bytes`, what uploads on their way may take of the disk."""
    upload_idle_s: float = 600.0
    """An upload to which nothing came for so long makes room for another."""

    def cpu_of(self, answers: int, chars: float = 0) -> int:
        """Seconds of processor time that reading and scoring so many answers, with replies of so many
        characters together, may take."""
        of_text = min(chars / self.chars_per_cpu_s, self.text_cpu_s)
        return math.ceil(self.cpu_s + answers / self.rows_per_cpu_s + of_text)

    def cpu_of_live(self, episodes: int, chars: float = 0, calls: int = 0) -> int:
        """The same for replaying so many episodes, whose journal has so many characters and calls."""
        more = chars / self.chars_per_cpu_s + calls / self.live_calls_per_cpu_s
        return math.ceil(self.cpu_s + episodes / self.live_episodes_per_cpu_s + min(more, self.text_cpu_s))

    def usual_s(self, answers: int) -> float:
        """Seconds of processor time that no usual run takes: what takes more goes on behind the others."""
        return self.cpu_of(answers) / 5
