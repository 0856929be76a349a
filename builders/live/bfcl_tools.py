"""Which of BFCL's 128 functions write, which of those can be repeated, and which take another back.

A function writes if it changes a public attribute in the replay of some gold; a writing function is
idempotent if no gold call of it changes anything more when it is carried out twice in a row. A test derives
both from all 800 golds. Of the functions that no gold calls six write as well (`NEVER_IN_GOLD`): another test
calls them.
"""

_ONCE = (
    "authenticate_travel",
    "book_flight",
    "comment",
    "create_ticket",
    "delete_message",
    "fillFuelTank",
    "fund_account",
    "mention",
    "place_order",
    "post_tweet",
    "purchase_insurance",
    "register_credit_card",
    "send_message",
    "withdraw_funds",
)

IDEMPOTENT = frozenset(
    (
        "activateParkingBrake",
        "add_contact",
        "add_to_watchlist",
        "authenticate_twitter",
        "cancel_booking",
        "cancel_order",
        "close_ticket",
        "cp",
        "echo",
        "edit_ticket",
        "lockDoors",
        "message_login",
        "mkdir",
        "mv",
        "pressBrakePedal",
        "remove_stock_from_watchlist",
        "resolve_ticket",
        "retweet",
        "rm",
        "rmdir",
        "setCruiseControl",
        "setHeadlights",
        "set_budget_limit",
        "set_navigation",
        "startEngine",
        "ticket_login",
        "touch",
        "trading_logout",
    )
)
"""Writing functions that change nothing more when they are repeated: most answer with an error then."""

NEVER_IN_GOLD = frozenset(
    (
        "adjustClimateControl",
        "follow_user",
        "logout",
        "releaseBrakePedal",
        "trading_login",
        "unfollow_user",
    )
)
"""Functions that write although no gold calls them; they change nothing more when they are repeated."""

WRITES = IDEMPOTENT | frozenset(_ONCE) | NEVER_IN_GOLD

UNDO = {
    "add_to_watchlist": "remove_stock_from_watchlist",
    "book_flight": "cancel_booking",
    "cp": "rm",
    "mkdir": "rmdir",
    "touch": "rm",
}
"""Functions that leave the public state as it was. Not here, because they leave a trace: cancel_order (the
order stays, cancelled), delete_message (messages stay counted), withdraw_funds (two transactions),
close_ticket (the ticket stays)."""
