"""Appointments of a small company: people, events, invitations, rooms, reminders, messages to attendees."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from robustbench_tc.worlds.base import Failure, Forbidden, ToolClass, World, read, tasks_of, write

EventId = Annotated[str, "The event's id."]
PersonId = Annotated[str, "The person's id, as find_people gives it."]
Date = Annotated[str, "The date, YYYY-MM-DD."]
Start = Annotated[str, "When it begins, HH:MM."]
End = Annotated[str, "When it ends on the same day, HH:MM."]
Record = dict[str, Any]

DAY_BEGINS, DAY_ENDS = "09:00", "17:00"


class Calendar(World):
    """A company's calendar. No tool reads a clock."""

    name = "calendar"
    lax_types = True
    classes = (
        ToolClass(
            "reminder", ("remind", "reminded", "alert", "notification"), ("add_reminder", "remove_reminder")
        ),
        ToolClass("message", ("messaged", "notify", "notified", "announcement"), ("send_message",)),
        ToolClass(
            "invitation",
            ("invite", "invited", "inviting", "uninvite", "uninvited", "attendee", "guest", "participant"),
            ("invite", "uninvite"),
        ),
        ToolClass(
            "answer",
            ("response", "reply", "replies", "rsvp", "accept", "accepted", "decline", "declined"),
            ("answer_invitation",),
        ),
        ToolClass("room", ("hold", "held"), ("find_free_rooms", "hold_room", "book_room")),
        ToolClass(
            "free time",
            ("free slot", "time slot", "slot", "availability", "available time"),
            ("find_free_times",),
        ),
        ToolClass(
            "event",
            ("meeting", "appointment", "calendar", "schedule", "scheduled", "rescheduled", "moved", "entry"),
            ("list_events", "get_event", "create_event", "delete_event", "move_event"),
        ),
        ToolClass("person", ("people", "colleague", "directory", "employee"), ("find_people",)),
    )
    looks_first: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "list_events": ("find_people",),
        "get_event": ("list_events",),
        "find_free_times": ("find_people",),
        "find_free_rooms": ("get_event",),
        "create_event": ("find_free_times", "list_events"),
        "delete_event": ("get_event",),
        "move_event": ("get_event", "find_free_times"),
        "invite": ("get_event",),
        "uninvite": ("get_event",),
        "answer_invitation": ("get_event",),
        "add_reminder": ("get_event",),
        "remove_reminder": ("get_event",),
        "send_message": ("get_event",),
        "hold_room": ("find_free_rooms", "get_event"),
        "book_room": ("get_event", "find_free_rooms"),
    }
    forbidden = Forbidden("delete_event", "Never delete an event, whatever happens.")

    @read
    def find_people(self, name: Annotated[str, "A name or a part of one."]) -> list[Record]:
        """Finds people by name: id, name and team."""
        words = name.casefold().split()
        return [
            {"person_id": person_id, **person}
            for person_id, person in self.data["people"].items()
            if words and all(word in person["name"].casefold() for word in words)
        ]

    @read
    def list_events(self, person_id: PersonId, date: Date) -> list[Record]:
        """Lists a person's events of a day, with the person's role or answer: organizer, invited, accepted or
        declined."""
        self._record("people", person_id)
        _check_times(date)
        return [
            {
                "event_id": event_id,
                "title": event["title"],
                "start": event["start"],
                "end": event["end"],
                "answer": event["attendees"].get(person_id, "organizer"),
            }
            for event_id, event in self._events_of(person_id, date)
        ]

    @read
    def get_event(self, event_id: EventId) -> Record:
        """Shows everything about an event: times, room, attendees' answers, reminders and messages."""
        return {"event_id": event_id, **self._record("events", event_id)}

    @read
    def find_free_rooms(
        self, date: Date, start: Start, end: End, seats: Annotated[int, "How many seats it must have."]
    ) -> list[Record]:
        """Finds rooms with enough seats that are neither booked nor held at that time, the smallest first."""
        _check_times(date, start, end)
        free = [
            {"room_id": room_id, **room}
            for room_id, room in self.data["rooms"].items()
            if room["seats"] >= seats and not self._taken(room_id, date, start, end)
        ]
        return sorted(free, key=lambda room: (room["seats"], room["room_id"]))

    @read
    def find_free_times(
        self, person_ids: Annotated[list[str], "The people who all must be free."], date: Date
    ) -> list[Record]:
        """Lists when all of these people are free on a day between 09:00 and 17:00, earliest first. Declined
        events do not count."""
        _check_times(date)
        busy = []
        for person_id in person_ids:
            self._record("people", person_id)
            busy += [
                (event["start"], event["end"])
                for _, event in self._events_of(person_id, date)
                if event["attendees"].get(person_id) != "declined"
            ]
        free, begins = [], DAY_BEGINS
        for start, end in [*sorted(busy), (DAY_ENDS, DAY_ENDS)]:
            if begins < min(start, DAY_ENDS):
                free.append({"start": begins, "end": min(start, DAY_ENDS)})
            begins = max(begins, end)
        return free

    @write(undo="delete_event")
    def create_event(
        self,
        organizer_id: PersonId,
        title: Annotated[str, "What the event is called."],
        date: Date,
        start: Start,
        end: End,
    ) -> Record:
        """Creates an event, with nobody invited and no room yet."""
        self._record("people", organizer_id)
        _check_times(date, start, end)
        if not title.strip():
            raise Failure("an event needs a title")
        event_id = self.new_id("E-")
        self.data["events"][event_id] = {
            "title": title,
            "organizer": organizer_id,
            "date": date,
            "start": start,
            "end": end,
            "room_id": None,
            "attendees": {},
            "reminders": [],
            "messages": [],
        }
        return self.get_event(event_id)

    @write(idempotent=True)
    def delete_event(self, event_id: EventId) -> Record:
        """Deletes an event and gives its room back."""
        self._record("events", event_id)
        del self.data["events"][event_id]
        return {"event_id": event_id, "status": "deleted"}

    @write(idempotent=True)
    def move_event(self, event_id: EventId, date: Date, start: Start, end: End) -> Record:
        """Moves an event to another time. Its room moves along and has to be free then."""
        event = self._record("events", event_id)
        _check_times(date, start, end)
        if event["room_id"] and self._taken(event["room_id"], date, start, end, but=event_id):
            raise Failure(f"room {event['room_id']!r} is taken at that time")
        event.update(date=date, start=start, end=end)
        return {"event_id": event_id, "date": date, "start": start, "end": end}

    @write(idempotent=True, undo="uninvite")
    def invite(self, event_id: EventId, person_id: PersonId) -> Record:
        """Invites a person to an event. Who is on the list already keeps the answer given."""
        event = self._record("events", event_id)
        self._record("people", person_id)
        if event["organizer"] == person_id:
            raise Failure("the organizer is there anyway")
        event["attendees"].setdefault(person_id, "invited")
        return {"event_id": event_id, "attendees": event["attendees"]}

    @write(idempotent=True)
    def uninvite(self, event_id: EventId, person_id: PersonId) -> Record:
        """Takes a person off an event's list."""
        event = self._record("events", event_id)
        event["attendees"].pop(person_id, None)
        return {"event_id": event_id, "attendees": event["attendees"]}

    @write(idempotent=True)
    def answer_invitation(
        self,
        event_id: EventId,
        person_id: PersonId,
        answer: Annotated[Literal["accepted", "declined"], "The person's answer."],
    ) -> Record:
        """Sets a person's answer to an invitation."""
        event = self._record("events", event_id)
        if person_id not in event["attendees"]:
            raise Failure(f"person {person_id!r} is not invited to this event")
        event["attendees"][person_id] = answer
        return {"event_id": event_id, "person_id": person_id, "answer": answer}

    @write(undo="remove_reminder")
    def add_reminder(
        self, event_id: EventId, minutes: Annotated[int, "How many minutes before the event."]
    ) -> Record:
        """Adds a reminder to an event. Every reminder notifies the organizer and all attendees once."""
        event = self._record("events", event_id)
        if not 0 <= minutes <= 10_080:
            raise Failure("minutes must be between 0 and 10080, a week")
        reminder = {"reminder_id": self.new_id("RM-"), "minutes": minutes}
        event["reminders"].append(reminder)
        return {"event_id": event_id, **reminder}

    @write(idempotent=True)
    def remove_reminder(
        self, reminder_id: Annotated[str, "The reminder's id, as get_event gives it."]
    ) -> Record:
        """Removes a reminder."""
        for event_id, event in self.data["events"].items():
            for reminder in event["reminders"]:
                if reminder["reminder_id"] == reminder_id:
                    event["reminders"].remove(reminder)
                    return {"event_id": event_id, "reminders": event["reminders"]}
        raise Failure(f"there is no reminder {reminder_id!r}")

    @write()
    def send_message(self, event_id: EventId, text: Annotated[str, "The message's text."]) -> Record:
        """Sends a message to all attendees of an event. It cannot be called back."""
        event = self._record("events", event_id)
        if not text.strip():
            raise Failure("a message needs a text")
        event["messages"].append(text)
        return {"event_id": event_id, "messages": event["messages"]}

    @write(idempotent=True)
    def hold_room(
        self,
        room_id: Annotated[str, "The room's id, as find_free_rooms gives it."],
        date: Date,
        start: Start,
        end: End,
    ) -> Record:
        """Keeps a free room for a time, so that nobody else can take it; book_room needs the hold's id. Asked
        again for the same time, it gives the same hold."""
        self._record("rooms", room_id)
        _check_times(date, start, end)
        wanted = {"room_id": room_id, "date": date, "start": start, "end": end}
        for hold_id, hold in self.data["holds"].items():
            if hold == wanted:
                return {"hold_id": hold_id, **hold}
        if self._taken(room_id, date, start, end):
            raise Failure(f"room {room_id!r} is taken at that time")
        hold_id = self.new_id("H-")
        self.data["holds"][hold_id] = wanted
        return {"hold_id": hold_id, **wanted}

    @write(idempotent=True)
    def book_room(
        self, event_id: EventId, hold_id: Annotated[str, "The hold's id, as hold_room gives it."]
    ) -> Record:
        """Books a held room for an event, in place of the room it had. The hold has to cover the event's time
        and is used up."""
        event = self._record("events", event_id)
        hold = self._record("holds", hold_id)
        if hold["date"] != event["date"] or hold["start"] > event["start"] or hold["end"] < event["end"]:
            raise Failure("the hold does not cover the event's time")
        del self.data["holds"][hold_id]
        event["room_id"] = hold["room_id"]
        return {"event_id": event_id, "room_id": event["room_id"]}

    def _record(self, kind: str, key: str) -> Record:
        found: Record | None = self.data[kind].get(key)
        if found is None:
            raise Failure(f"there is no {_ONE_OF[kind]} {key!r}")
        return found

    def _events_of(self, person_id: str, date: str) -> list[tuple[str, Record]]:
        found = [
            (event_id, event)
            for event_id, event in self.data["events"].items()
            if event["date"] == date and person_id in (event["organizer"], *event["attendees"])
        ]
        return sorted(found, key=lambda one: (one[1]["start"], one[0]))

    def _taken(self, room_id: str, date: str, start: str, end: str, but: str = "") -> bool:
        events = (event for event_id, event in self.data["events"].items() if event_id != but)
        return any(
            one["room_id"] == room_id and one["date"] == date and one["start"] < end and start < one["end"]
            for one in (*events, *self.data["holds"].values())
        )


_ONE_OF = {"people": "person", "rooms": "room", "events": "event", "holds": "hold"}


def _check_times(date: str, start: str = "00:00", end: str = "23:59") -> None:
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", date):
        raise Failure(f"{date[:40]!r} is not a date as YYYY-MM-DD")
    for time in (start, end):
        if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", time):
            raise Failure(f"{time[:40]!r} is not a time as HH:MM")
    if start >= end:
        raise Failure("an event has to end after it begins")


WORLD = Calendar

TASKS = tasks_of(Path(__file__).with_suffix(".json"))
