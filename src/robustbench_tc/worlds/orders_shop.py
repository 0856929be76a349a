"""What is in the shop of `orders` when a task begins: five customers, nine products, eleven orders."""

from typing import Any


def _product(name: str, price: int, in_stock: int) -> dict[str, Any]:
    return {"name": name, "price": price, "in_stock": in_stock}


CUSTOMERS: dict[str, dict[str, Any]] = {
    "C-2019": {
        "name": "Mara Lindqvist",
        "email": "mara@larkmail.example",
        "address": {"street": "8 Harbour Street", "postcode": "1006", "city": "Lausanne"},
        "cards": [{"card_id": "CARD-311", "ends_in": "4421"}, {"card_id": "CARD-347", "ends_in": "7780"}],
    },
    "C-2036": {
        "name": "Tomas Okafor",
        "email": "tomas@okafor.example",
        "address": {"street": "21 Elm Row", "postcode": "3011", "city": "Bern"},
        "cards": [{"card_id": "CARD-402", "ends_in": "9034"}, {"card_id": "CARD-418", "ends_in": "1267"}],
    },
    "C-2058": {
        "name": "Ines Carvalho",
        "email": "ines.carvalho@postino.example",
        "address": {"street": "5 Chapel Hill", "postcode": "8001", "city": "Zurich"},
        "cards": [{"card_id": "CARD-526", "ends_in": "2203"}, {"card_id": "CARD-531", "ends_in": "6618"}],
    },
    "C-2074": {
        "name": "Wei Zhang",
        "email": "wei.zhang@larkmail.example",
        "address": {"street": "60 Station Road", "postcode": "6300", "city": "Zug"},
        "cards": [{"card_id": "CARD-609", "ends_in": "3390"}, {"card_id": "CARD-644", "ends_in": "5075"}],
    },
    "C-2091": {
        "name": "Noor Haddad",
        "email": "noor@haddad.example",
        "address": {"street": "17 Orchard Way", "postcode": "9000", "city": "St Gallen"},
        "cards": [{"card_id": "CARD-713", "ends_in": "5512"}, {"card_id": "CARD-752", "ends_in": "8870"}],
    },
}

PRODUCTS: dict[str, dict[str, Any]] = {
    "P-1184": _product("Desk lamp", 45, 14),
    "P-1239": _product("Floor lamp", 80, 8),
    "P-2107": _product("Wool blanket", 60, 9),
    "P-2166": _product("Cotton blanket", 35, 20),
    "P-3018": _product("Small teapot", 28, 12),
    "P-3055": _product("Large teapot", 38, 11),
    "P-4402": _product("Hiking backpack", 95, 10),
    "P-4471": _product("Day backpack", 55, 16),
    "P-5126": _product("Bread knife", 24, 30),
}

COUPONS = {
    "SPRING5": {"amount": 5, "minimum": 20},
    "TRAIL15": {"amount": 15, "minimum": 90},
    "HOME10": {"amount": 10, "minimum": 25},
}


def _order(
    customer_id: str,
    placed_on: str,
    status: str,
    items: dict[str, int],
    *payments: tuple[str, str, int, bool],
) -> dict[str, Any]:
    """An order; payments as (id, card, amount, settled)."""
    return {
        "customer_id": customer_id,
        "placed_on": placed_on,
        "status": status,
        "items": [
            {"product_id": product, "quantity": quantity, "price": PRODUCTS[product]["price"]}
            for product, quantity in items.items()
        ],
        "address": dict(CUSTOMERS[customer_id]["address"]),
        "delivery": {"speed": "standard", "fee": 0},
        "coupon": None,
        "payments": [
            {"payment_id": payment, "card_id": card, "amount": amount, "settled": settled}
            for payment, card, amount, settled in payments
        ],
        "refunds": [],
        "notes": [],
    }


SHOP: dict[str, Any] = {
    "today": "2026-03-02",
    "customers": CUSTOMERS,
    "products": PRODUCTS,
    "coupons": COUPONS,
    "orders": {
        "O-7012": _order(
            "C-2019", "2026-02-03", "delivered", {"P-1184": 2}, ("PAY-3106", "CARD-311", 90, True)
        ),
        "O-7045": _order("C-2019", "2026-02-26", "open", {"P-4402": 1}, ("PAY-3158", "CARD-347", 95, True)),
        "O-7051": _order("C-2036", "2026-02-27", "open", {"P-1239": 1}),
        "O-7060": _order(
            "C-2036", "2026-02-10", "delivered", {"P-2166": 4}, ("PAY-3214", "CARD-402", 140, True)
        ),
        "O-7077": _order("C-2058", "2026-02-25", "open", {"P-2107": 2}, ("PAY-3290", "CARD-531", 120, True)),
        "O-7083": _order("C-2058", "2026-02-28", "open", {"P-3018": 1}),
        "O-7090": _order(
            "C-2074", "2026-02-12", "delivered", {"P-5126": 5}, ("PAY-3327", "CARD-609", 120, True)
        ),
        "O-7094": _order("C-2074", "2026-02-24", "open", {"P-4471": 1}, ("PAY-3341", "CARD-644", 55, True)),
        "O-7101": _order(
            "C-2091", "2026-03-01", "open", {"P-1239": 1, "P-3018": 2}, ("PAY-3388", "CARD-713", 136, False)
        ),
        "O-7108": _order(
            "C-2091", "2026-02-05", "delivered", {"P-2107": 1}, ("PAY-3402", "CARD-752", 60, True)
        ),
        "O-7115": _order("C-2091", "2026-03-02", "open", {"P-3055": 1}),
    },
}
