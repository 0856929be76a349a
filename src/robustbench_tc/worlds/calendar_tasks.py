"""Twenty requests to the calendar of `calendar`.

Each value that gold uses stands in the user's words or in an earlier result. Ids of events, reminders and
holds that a task makes follow from its seed.
"""

from robustbench_tc.worlds.base import Task, Turn, call
from robustbench_tc.worlds.calendar_week import WEEK


def _task(number: int, *turns: Turn) -> Task:
    return Task(f"calendar_{number}", WEEK, turns, seed=100 + number)


TASKS = [
    _task(
        1,
        Turn(
            'I\'m Lena Brandt. Please put "Grant draft" into my calendar on 2026-05-06 from 13:00 to 14:00.',
            [
                call("find_people", name="Lena Brandt"),
                call(
                    "create_event",
                    organizer_id="U-118",
                    title="Grant draft",
                    date="2026-05-06",
                    start="13:00",
                    end="14:00",
                ),
            ],
        ),
        Turn(
            "Invite Priya Nair to it.",
            [call("find_people", name="Priya Nair"), call("invite", event_id="E-4190", person_id="U-146")],
        ),
    ),
    _task(
        2,
        Turn(
            "Jonas Weber here. My budget review on 2026-05-05 has to be from 11:00 to 12:00 instead, on the "
            "same day.",
            [
                call("find_people", name="Jonas Weber"),
                call("list_events", person_id="U-152", date="2026-05-05"),
                call("move_event", event_id="E-5117", date="2026-05-05", start="11:00", end="12:00"),
            ],
        ),
    ),
    _task(
        3,
        Turn(
            "Event E-5123 has no room yet. Book the smallest free one with at least 8 seats for it.",
            [
                call("get_event", event_id="E-5123"),
                call("find_free_rooms", date="2026-05-05", start="14:00", end="15:00", seats=8),
                call("hold_room", room_id="R-415", date="2026-05-05", start="14:00", end="15:00"),
                call("book_room", event_id="E-5123", hold_id="H-8475"),
            ],
        ),
    ),
    _task(
        4,
        Turn(
            "This is Amara Diallo. What am I invited to on 2026-05-05?",
            [
                call("find_people", name="Amara Diallo"),
                call("list_events", person_id="U-189", date="2026-05-05"),
            ],
            [{"title": ["Design critique"]}, {"event_id": ["E-5123"]}],
        ),
        Turn(
            "Accept that for me, please.",
            [call("answer_invitation", event_id="E-5123", person_id="U-189", answer="accepted")],
        ),
        Turn(
            "And add a reminder to it, 45 minutes before.",
            [call("add_reminder", event_id="E-5123", minutes=45)],
        ),
    ),
    _task(
        5,
        Turn(
            "I'm Lena Brandt. For 2026-05-05, mark me as accepted for the budget review and as declined for "
            "the reading group.",
            [
                call("find_people", name="Lena Brandt"),
                call("list_events", person_id="U-118", date="2026-05-05"),
                call("answer_invitation", event_id="E-5117", person_id="U-118", answer="accepted"),
                call("answer_invitation", event_id="E-5203", person_id="U-118", answer="declined"),
            ],
        ),
    ),
    _task(
        6,
        Turn(
            "Please add a reminder 30 minutes before event E-5162.",
            [call("add_reminder", event_id="E-5162", minutes=30)],
        ),
        Turn(
            "And the one 120 minutes before event E-5175 is too early, remove it.",
            [call("get_event", event_id="E-5175"), call("remove_reminder", reminder_id="RM-6134")],
        ),
    ),
    _task(
        7,
        Turn(
            "I'm Daniel Kim. Send everybody at my architecture talk on 2026-05-06 this message: \"Slides are "
            'in the shared folder."',
            [
                call("find_people", name="Daniel Kim"),
                call("list_events", person_id="U-173", date="2026-05-06"),
                call("send_message", event_id="E-5146", text="Slides are in the shared folder."),
            ],
        ),
    ),
    _task(
        8,
        Turn(
            "Sofia Rossi here. Delete my hiring panel on 2026-05-07.",
            [
                call("find_people", name="Sofia Rossi"),
                call("list_events", person_id="U-167", date="2026-05-07"),
                call("delete_event", event_id="E-5162"),
            ],
        ),
        Turn(
            'Instead I need an event "Interview prep" that day from 15:00 to 15:30.',
            [
                call(
                    "create_event",
                    organizer_id="U-167",
                    title="Interview prep",
                    date="2026-05-07",
                    start="15:00",
                    end="15:30",
                )
            ],
        ),
    ),
    _task(
        9,
        Turn(
            "I'm Jonas Weber. When do Lena Brandt and I first have time together on 2026-05-05?",
            [
                call("find_people", name="Jonas Weber"),
                call("find_people", name="Lena Brandt"),
                call("find_free_times", person_ids=["U-152", "U-118"], date="2026-05-05"),
            ],
            [{"start": ["10:00"]}],
        ),
        Turn(
            'Create "Grant costs" for me from the beginning of that time until 10:45, and invite her.',
            [
                call(
                    "create_event",
                    organizer_id="U-152",
                    title="Grant costs",
                    date="2026-05-05",
                    start="10:00",
                    end="10:45",
                ),
                call("invite", event_id="E-5580", person_id="U-118"),
            ],
        ),
    ),
    _task(
        10,
        Turn(
            "Please invite Alex from Sales to event E-5123.",
            [call("find_people", name="Alex"), call("invite", event_id="E-5123", person_id="U-131")],
        ),
        Turn(
            'And send its attendees this message: "Bring one printed draft each."',
            [call("send_message", event_id="E-5123", text="Bring one printed draft each.")],
        ),
    ),
    _task(
        11,
        Turn(
            'I\'m Amara Diallo. I need two events on 2026-05-08: "Code review" from 09:00 to 10:00 and '
            '"Bug triage" from 14:00 to 14:30.',
            [
                call("find_people", name="Amara Diallo"),
                call(
                    "create_event",
                    organizer_id="U-189",
                    title="Code review",
                    date="2026-05-08",
                    start="09:00",
                    end="10:00",
                ),
                call(
                    "create_event",
                    organizer_id="U-189",
                    title="Bug triage",
                    date="2026-05-08",
                    start="14:00",
                    end="14:30",
                ),
            ],
        ),
        Turn(
            "Invite Daniel Kim to the bug triage only.",
            [call("find_people", name="Daniel Kim"), call("invite", event_id="E-6176", person_id="U-173")],
        ),
    ),
    _task(
        12,
        Turn(
            "The architecture talk, E-5146, has outgrown its room. Book a free one with at least 15 seats.",
            [
                call("get_event", event_id="E-5146"),
                call("find_free_rooms", date="2026-05-06", start="15:00", end="16:30", seats=15),
                call("hold_room", room_id="R-433", date="2026-05-06", start="15:00", end="16:30"),
                call("book_room", event_id="E-5146", hold_id="H-8884"),
            ],
        ),
        Turn(
            'Thanks. Send the attendees this message: "We moved to Willow."',
            [call("send_message", event_id="E-5146", text="We moved to Willow.")],
        ),
    ),
    _task(
        13,
        Turn(
            "I'm Lena Brandt. What do I have on 2026-05-07?",
            [
                call("find_people", name="Lena Brandt"),
                call("list_events", person_id="U-118", date="2026-05-07"),
            ],
            [{"title": ["Release planning"]}, {"event_id": ["E-5175"]}],
        ),
        Turn(
            "I can't make it. Please decline it for me.",
            [call("answer_invitation", event_id="E-5175", person_id="U-118", answer="declined")],
        ),
        Turn(
            'And send its attendees this message: "Please take notes for Lena."',
            [call("send_message", event_id="E-5175", text="Please take notes for Lena.")],
        ),
    ),
    _task(
        14,
        Turn(
            "Please set a reminder for event E-5188, 60 minutes before it.",
            [call("add_reminder", event_id="E-5188", minutes=60)],
        ),
        Turn(
            "One more, 10 minutes before it. Leave the first one.",
            [call("add_reminder", event_id="E-5188", minutes=10)],
        ),
    ),
    _task(
        15,
        Turn(
            "Priya Nair here. Please move two events of mine to 2026-05-07: the reading group of "
            "2026-05-05, again from 16:00 to 17:00, and the lunch of 2026-05-08, again from 12:00 to 13:00.",
            [
                call("find_people", name="Priya Nair"),
                call("list_events", person_id="U-146", date="2026-05-05"),
                call("list_events", person_id="U-146", date="2026-05-08"),
                call("move_event", event_id="E-5203", date="2026-05-07", start="16:00", end="17:00"),
                call("move_event", event_id="E-5191", date="2026-05-07", start="12:00", end="13:00"),
            ],
        ),
    ),
    _task(
        16,
        Turn(
            'I\'m Alex Petrov. Please create "Pipeline review" for me on 2026-05-07 from 09:00 to 10:00.',
            [
                call("find_people", name="Alex Petrov"),
                call(
                    "create_event",
                    organizer_id="U-131",
                    title="Pipeline review",
                    date="2026-05-07",
                    start="09:00",
                    end="10:00",
                ),
            ],
        ),
        Turn(
            "Invite Sofia Rossi and Jonas Weber.",
            [
                call("find_people", name="Sofia Rossi"),
                call("invite", event_id="E-9949", person_id="U-167"),
                call("find_people", name="Jonas Weber"),
                call("invite", event_id="E-9949", person_id="U-152"),
            ],
        ),
        Turn(
            "Book the smallest free room with at least 3 seats for it.",
            [
                call("find_free_rooms", date="2026-05-07", start="09:00", end="10:00", seats=3),
                call("hold_room", room_id="R-407", date="2026-05-07", start="09:00", end="10:00"),
                call("book_room", event_id="E-9949", hold_id="H-5884"),
            ],
        ),
        Turn(
            "Last, a reminder 20 minutes before.",
            [call("add_reminder", event_id="E-9949", minutes=20)],
        ),
    ),
    _task(
        17,
        Turn(
            "Take Priya Nair off the list of event E-5146 and invite Sofia Rossi in her place.",
            [
                call("find_people", name="Priya Nair"),
                call("uninvite", event_id="E-5146", person_id="U-146"),
                call("find_people", name="Sofia Rossi"),
                call("invite", event_id="E-5146", person_id="U-167"),
            ],
        ),
    ),
    _task(
        18,
        Turn(
            "I'm Jonas Weber. Which of my events is on 2026-05-08?",
            [
                call("find_people", name="Jonas Weber"),
                call("list_events", person_id="U-152", date="2026-05-08"),
            ],
            [{"title": ["Quarter close"]}, {"event_id": ["E-5188"]}],
        ),
        Turn(
            "Move it to 15:00, until 16:00, on the same day.",
            [call("move_event", event_id="E-5188", date="2026-05-08", start="15:00", end="16:00")],
        ),
        Turn(
            'Let the attendees know: "We start at 15:00."',
            [call("send_message", event_id="E-5188", text="We start at 15:00.")],
        ),
    ),
    _task(
        19,
        Turn(
            "Event E-5175 has a reminder 15 minutes before it. I'd rather have one 25 minutes before, in its "
            "place.",
            [
                call("get_event", event_id="E-5175"),
                call("remove_reminder", reminder_id="RM-6120"),
                call("add_reminder", event_id="E-5175", minutes=25),
            ],
        ),
    ),
    _task(
        20,
        Turn(
            "Daniel Kim here. When are Amara Diallo and I both free on 2026-05-06, before 16:00?",
            [
                call("find_people", name="Daniel Kim"),
                call("find_people", name="Amara Diallo"),
                call("find_free_times", person_ids=["U-173", "U-189"], date="2026-05-06"),
            ],
            [{"start": ["09:00"], "end": ["15:00"]}],
        ),
        Turn(
            'Create "Deploy rehearsal" for me from 14:00 to 15:00 and invite her.',
            [
                call(
                    "create_event",
                    organizer_id="U-173",
                    title="Deploy rehearsal",
                    date="2026-05-06",
                    start="14:00",
                    end="15:00",
                ),
                call("invite", event_id="E-9436", person_id="U-189"),
            ],
        ),
        Turn(
            'And send the attendees this message: "Bring the checklist."',
            [call("send_message", event_id="E-9436", text="Bring the checklist.")],
        ),
    ),
]
