"""Twenty requests to the shop of `orders`.

Each value that gold uses stands in the user's words or in an earlier result. Ids of orders, payments and
refunds that a task makes follow from its seed.
"""

from robustbench_tc.worlds.base import Task, Turn, call
from robustbench_tc.worlds.orders_shop import CUSTOMERS, SHOP


def _task(number: int, *turns: Turn) -> Task:
    return Task(f"orders_{number}", SHOP, turns, seed=number)


MARA, TOMAS, INES, WEI, NOOR = (one["email"] for one in CUSTOMERS.values())

TASKS = [
    _task(
        1,
        Turn(
            f"Hello, this is Mara ({MARA}). My hiking backpack should go to 14 Mill Lane, 4051 Basel instead "
            "of my home. Please change that order.",
            [
                call("find_customer", email=MARA),
                call("list_orders", customer_id="C-2019"),
                call("set_address", order_id="O-7045", street="14 Mill Lane", postcode="4051", city="Basel"),
            ],
        ),
    ),
    _task(
        2,
        Turn(
            f"I'd like to order 3 bread knives. My e-mail address is {TOMAS}.",
            [
                call("find_customer", email=TOMAS),
                call("search_products", text="bread knives"),
                call("place_order", customer_id="C-2036", product_id="P-5126", quantity=3),
            ],
        ),
        Turn(
            "Please charge its total to my card ending in 9034.",
            [call("charge_card", order_id="O-1926", card_id="CARD-402", amount=72)],
        ),
    ),
    _task(
        3,
        Turn(
            f"Please charge my order of the large teapot, all of it, to my card ending in 8870. I am {NOOR}.",
            [
                call("find_customer", email=NOOR),
                call("list_orders", customer_id="C-2091"),
                call("charge_card", order_id="O-7115", card_id="CARD-752", amount=38),
            ],
        ),
    ),
    _task(
        4,
        Turn(
            "Please put coupon SPRING5 on order O-7083.",
            [call("apply_coupon", order_id="O-7083", code="SPRING5")],
        ),
        Turn(
            f"Good. Charge what it costs now to my card ending in 2203. You know me as {INES}.",
            [
                call("find_customer", email=INES),
                call("charge_card", order_id="O-7083", card_id="CARD-526", amount=23),
            ],
        ),
    ),
    _task(
        5,
        Turn(
            "What would it cost to have order O-7051 delivered faster?",
            [call("quote_delivery", order_id="O-7051")],
            [{"fee": [12, 25]}],
        ),
        Turn(
            "Then make it express, please.",
            [call("set_delivery", order_id="O-7051", quote_id="Q-EA9642")],
        ),
    ),
    _task(
        6,
        Turn(
            "Two of the bread knives in order O-7090 arrived blunt. Please refund 48 euros of what I paid "
            "for it.",
            [
                call("get_order", order_id="O-7090"),
                call("refund_payment", payment_id="PAY-3327", amount=48),
            ],
        ),
    ),
    _task(
        7,
        Turn(
            f"I'm Mara Lindqvist, {MARA}. One of the desk lamps that you delivered was broken. Please refund "
            'me 45 euros for it, and add the note "Lamp broken on arrival" to that order.',
            [
                call("find_customer", email=MARA),
                call("list_orders", customer_id="C-2019"),
                call("get_order", order_id="O-7012"),
                call("refund_payment", payment_id="PAY-3106", amount=45),
                call("add_note", order_id="O-7012", text="Lamp broken on arrival"),
            ],
        ),
    ),
    _task(
        8,
        Turn("Please cancel my order O-7051.", [call("cancel_order", order_id="O-7051")]),
        Turn(
            f"I'd rather have 1 hiking backpack. My e-mail address is {TOMAS}.",
            [
                call("find_customer", email=TOMAS),
                call("search_products", text="hiking backpack"),
                call("place_order", customer_id="C-2036", product_id="P-4402", quantity=1),
            ],
        ),
    ),
    _task(
        9,
        Turn(
            "Order O-7077 has to reach me at work: 2 Tower Square, 8005 Zurich.",
            [
                call(
                    "set_address",
                    order_id="O-7077",
                    street="2 Tower Square",
                    postcode="8005",
                    city="Zurich",
                )
            ],
        ),
        Turn(
            "And have it brought by courier, whatever that costs.",
            [
                call("quote_delivery", order_id="O-7077"),
                call("set_delivery", order_id="O-7077", quote_id="Q-259F29"),
            ],
        ),
    ),
    _task(
        10,
        Turn(
            "My wool blanket came two weeks late (order O-7108). What did I pay for it?",
            [call("get_order", order_id="O-7108")],
            [{"paid": [60]}],
        ),
        Turn(
            "Refund me 20 euros of that, please.",
            [call("refund_payment", payment_id="PAY-3402", amount=20)],
        ),
    ),
    _task(
        11,
        Turn(
            "Which backpacks do you have?",
            [call("search_products", text="backpack")],
            [{"name": ["Hiking backpack", "Day backpack"]}, {"product_id": ["P-4402", "P-4471"]}],
        ),
        Turn(
            f"I'd like 2 of the day backpacks. My account is {WEI}.",
            [
                call("find_customer", email=WEI),
                call("place_order", customer_id="C-2074", product_id="P-4471", quantity=2),
            ],
        ),
        Turn(
            "I have a coupon, TRAIL15. Please use it for that order.",
            [call("apply_coupon", order_id="O-8411", code="TRAIL15")],
        ),
        Turn(
            "Charge the new total to my card ending in 3390.",
            [call("charge_card", order_id="O-8411", card_id="CARD-609", amount=95)],
        ),
    ),
    _task(
        12,
        Turn(
            "The payment for order O-7101 went to the wrong card. Please void it.",
            [call("get_order", order_id="O-7101"), call("void_payment", payment_id="PAY-3388")],
        ),
        Turn(
            f"Now charge the same amount to my card ending in 8870. I'm {NOOR}.",
            [
                call("find_customer", email=NOOR),
                call("charge_card", order_id="O-7101", card_id="CARD-752", amount=136),
            ],
        ),
    ),
    _task(
        13,
        Turn(
            f'Please add the note "Leave with the neighbour" to each of my open orders. I am {INES}.',
            [
                call("find_customer", email=INES),
                call("list_orders", customer_id="C-2058"),
                call("add_note", order_id="O-7077", text="Leave with the neighbour"),
                call("add_note", order_id="O-7083", text="Leave with the neighbour"),
            ],
        ),
    ),
    _task(
        14,
        Turn(
            f"I've moved. All that I have open with you should go to 3 Quay Road, 6003 Lucerne. {INES}",
            [
                call("find_customer", email=INES),
                call("list_orders", customer_id="C-2058"),
                call("set_address", order_id="O-7077", street="3 Quay Road", postcode="6003", city="Lucerne"),
                call("set_address", order_id="O-7083", street="3 Quay Road", postcode="6003", city="Lucerne"),
            ],
        ),
    ),
    _task(
        15,
        Turn(
            f"Which of my orders are still open? My e-mail address is {TOMAS}.",
            [call("find_customer", email=TOMAS), call("list_orders", customer_id="C-2036")],
            [{"order_id": ["O-7051"]}, {"products": ["Floor lamp"]}],
        ),
        Turn(
            "Charge its total to the card ending in 1267.",
            [call("charge_card", order_id="O-7051", card_id="CARD-418", amount=80)],
        ),
        Turn(
            'And add this note to it: "Ring twice".',
            [call("add_note", order_id="O-7051", text="Ring twice")],
        ),
    ),
    _task(
        16,
        Turn(
            f"I need two separate orders: 1 small teapot, and 2 cotton blankets. I'm {WEI}.",
            [
                call("find_customer", email=WEI),
                call("search_products", text="small teapot"),
                call("place_order", customer_id="C-2074", product_id="P-3018", quantity=1),
                call("search_products", text="cotton blanket"),
                call("place_order", customer_id="C-2074", product_id="P-2166", quantity=2),
            ],
        ),
        Turn(
            "Pay both in full with my card ending in 5075, each on its own.",
            [
                call("charge_card", order_id="O-6923", card_id="CARD-644", amount=28),
                call("charge_card", order_id="O-8687", card_id="CARD-644", amount=70),
            ],
        ),
    ),
    _task(
        17,
        Turn(
            f"Please order 1 floor lamp for me, {MARA}, with express delivery.",
            [
                call("find_customer", email=MARA),
                call("search_products", text="floor lamp"),
                call("place_order", customer_id="C-2019", product_id="P-1239", quantity=1),
                call("quote_delivery", order_id="O-9552"),
                call("set_delivery", order_id="O-9552", quote_id="Q-EC5437"),
            ],
        ),
        Turn(
            "Charge the total, delivery included, to my card ending in 7780.",
            [call("charge_card", order_id="O-9552", card_id="CARD-347", amount=92)],
        ),
    ),
    _task(
        18,
        Turn(
            "Order O-7094 is not what I need after all. Cancel it, please.",
            [call("cancel_order", order_id="O-7094")],
        ),
        Turn(
            "Now refund 25 euros of what I paid for it; I'll see about the rest next week.",
            [
                call("get_order", order_id="O-7094"),
                call("refund_payment", payment_id="PAY-3341", amount=25),
            ],
        ),
        Turn(
            f"I'd like 1 large teapot as well. My account is {WEI}.",
            [
                call("find_customer", email=WEI),
                call("search_products", text="large teapot"),
                call("place_order", customer_id="C-2074", product_id="P-3055", quantity=1),
            ],
        ),
    ),
    _task(
        19,
        Turn(
            f"Please use coupon HOME10 for every open order of mine that has no payment yet. I'm {NOOR}.",
            [
                call("find_customer", email=NOOR),
                call("list_orders", customer_id="C-2091"),
                call("get_order", order_id="O-7101"),
                call("get_order", order_id="O-7115"),
                call("apply_coupon", order_id="O-7115", code="HOME10"),
            ],
        ),
        Turn(
            "Charge what is left of it to the card ending in 5512.",
            [call("charge_card", order_id="O-7115", card_id="CARD-713", amount=28)],
        ),
    ),
    _task(
        20,
        Turn(
            f"Hi, I'm Tomas, {TOMAS}. Please order 2 desk lamps.",
            [
                call("find_customer", email=TOMAS),
                call("search_products", text="desk lamp"),
                call("place_order", customer_id="C-2036", product_id="P-1184", quantity=2),
            ],
        ),
        Turn(
            "They are a present: send them to 9 Garden Close, 2502 Biel.",
            [call("set_address", order_id="O-3477", street="9 Garden Close", postcode="2502", city="Biel")],
        ),
        Turn(
            "Can they come by courier? Please set that.",
            [
                call("quote_delivery", order_id="O-3477"),
                call("set_delivery", order_id="O-3477", quote_id="Q-E90EF0"),
            ],
        ),
        Turn(
            "Fine. Charge the total to my card ending in 1267.",
            [call("charge_card", order_id="O-3477", card_id="CARD-418", amount=115)],
        ),
    ),
]
