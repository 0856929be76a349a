"""What is in the calendar when a task begins: eight people, four rooms, a week in May with eleven events."""

from typing import Any

PEOPLE: dict[str, dict[str, str]] = {
    "U-118": {"name": "Lena Brandt", "team": "Research"},
    "U-124": {"name": "Alex Moreau", "team": "Design"},
    "U-131": {"name": "Alex Petrov", "team": "Sales"},
    "U-146": {"name": "Priya Nair", "team": "Research"},
    "U-152": {"name": "Jonas Weber", "team": "Finance"},
    "U-167": {"name": "Sofia Rossi", "team": "Sales"},
    "U-173": {"name": "Daniel Kim", "team": "Engineering"},
    "U-189": {"name": "Amara Diallo", "team": "Engineering"},
}

ROOMS: dict[str, dict[str, Any]] = {
    "R-407": {"name": "Birch", "seats": 4},
    "R-415": {"name": "Cedar", "seats": 8},
    "R-428": {"name": "Maple", "seats": 12},
    "R-433": {"name": "Willow", "seats": 20},
}


def _event(
    title: str,
    organizer: str,
    when: str,
    room_id: str | None,
    attendees: dict[str, str],
    **reminders: int,
) -> dict[str, Any]:
    """An event; `when` is date, start and end, reminders are number of the id → minutes before."""
    date, start, end = when.split()
    return {
        "title": title,
        "organizer": organizer,
        "date": date,
        "start": start,
        "end": end,
        "room_id": room_id,
        "attendees": attendees,
        "reminders": [
            {"reminder_id": name.replace("_", "-"), "minutes": minutes} for name, minutes in reminders.items()
        ],
        "messages": [],
    }


WEEK: dict[str, Any] = {
    "people": PEOPLE,
    "rooms": ROOMS,
    "holds": {},
    "events": {
        "E-5104": _event(
            "Research sync",
            "U-118",
            "2026-05-04 10:00 10:30",
            "R-407",
            {"U-146": "accepted", "U-173": "invited"},
        ),
        "E-5117": _event(
            "Budget review",
            "U-152",
            "2026-05-05 09:00 10:00",
            "R-415",
            {"U-118": "invited", "U-167": "accepted"},
        ),
        "E-5123": _event(
            "Design critique",
            "U-124",
            "2026-05-05 14:00 15:00",
            None,
            {"U-189": "invited", "U-118": "accepted"},
        ),
        "E-5203": _event("Reading group", "U-146", "2026-05-05 16:00 17:00", "R-407", {"U-118": "invited"}),
        "E-5159": _event("One to one", "U-118", "2026-05-06 09:30 10:00", None, {"U-146": "accepted"}),
        "E-5138": _event("Client call", "U-131", "2026-05-06 11:00 11:30", None, {"U-167": "accepted"}),
        "E-5146": _event(
            "Architecture talk",
            "U-173",
            "2026-05-06 15:00 16:30",
            "R-428",
            {"U-189": "accepted", "U-146": "invited", "U-124": "invited"},
        ),
        "E-5175": _event(
            "Release planning",
            "U-189",
            "2026-05-07 10:00 11:00",
            "R-415",
            {"U-173": "accepted", "U-118": "invited"},
            RM_6120=15,
            RM_6134=120,
        ),
        "E-5162": _event(
            "Hiring panel",
            "U-167",
            "2026-05-07 13:00 14:00",
            None,
            {"U-131": "invited", "U-152": "accepted"},
        ),
        "E-5191": _event(
            "Team lunch",
            "U-146",
            "2026-05-08 12:00 13:00",
            None,
            {"U-118": "accepted", "U-173": "invited"},
        ),
        "E-5188": _event("Quarter close", "U-152", "2026-05-08 16:00 17:00", None, {"U-167": "invited"}),
    },
}
