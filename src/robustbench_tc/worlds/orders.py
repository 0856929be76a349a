"""A shop: customers, products, orders, delivery, payments and refunds. Amounts are whole euros."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from robustbench_tc.worlds.base import Failure, Forbidden, ToolClass, World, read, tasks_of, write

CustomerId = Annotated[str, "The customer's id, as find_customer gives it."]
OrderId = Annotated[str, "The order's id."]
PaymentId = Annotated[str, "The payment's id, as get_order gives it."]
Euros = Annotated[int, "The amount in whole euros."]
Record = dict[str, Any]

DELIVERY_FEES = {"standard": 0, "express": 12, "courier": 25}


class Orders(World):
    """A shop's back office.

    Nothing here reads a clock: `today` is part of the state.
    """

    name = "orders"
    lax_types = True
    classes = (
        ToolClass(
            "refund",
            ("refunded", "refunding", "money back", "pay back", "paid back", "reimbursement"),
            ("refund_payment",),
        ),
        ToolClass(
            "cancellation",
            ("cancel", "cancelled", "canceled", "cancelling", "canceling"),
            ("cancel_order",),
        ),
        ToolClass(
            "payment",
            ("charge", "charged", "charging", "card", "pay", "paid", "paying", "void", "voided", "voiding"),
            ("charge_card", "void_payment"),
        ),
        ToolClass("coupon", ("discount", "voucher", "promo code"), ("apply_coupon",)),
        ToolClass("address", ("delivery address", "shipping address", "street"), ("set_address",)),
        ToolClass(
            "delivery",
            ("deliver", "delivered", "deliveries", "shipping", "courier", "express", "quote"),
            ("quote_delivery", "set_delivery"),
        ),
        ToolClass("note", ("comment", "remark"), ("add_note",)),
        ToolClass("product", ("stock", "in stock", "catalogue", "catalog"), ("search_products",)),
        ToolClass(
            "order",
            ("ordered", "ordering", "purchase", "purchased", "order history"),
            ("place_order", "list_orders", "get_order"),
        ),
        ToolClass("customer", ("account", "profile", "customer record", "your details"), ("find_customer",)),
    )
    looks_first: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "get_order": ("list_orders",),
        "quote_delivery": ("get_order",),
        "place_order": ("list_orders", "search_products"),
        "cancel_order": ("get_order",),
        "charge_card": ("get_order",),
        "void_payment": ("get_order",),
        "refund_payment": ("get_order",),
        "set_address": ("get_order",),
        "set_delivery": ("get_order", "quote_delivery"),
        "apply_coupon": ("get_order",),
        "add_note": ("get_order",),
    }
    forbidden = Forbidden("cancel_order", "Never cancel an order, whatever happens.")

    @read
    def find_customer(self, email: Annotated[str, "The customer's e-mail address."]) -> Record:
        """Finds a customer by e-mail address: id, name, home address and cards on file."""
        for customer_id, customer in self.data["customers"].items():
            if customer["email"].casefold() == email.strip().casefold():
                return {"customer_id": customer_id, **customer}
        raise Failure(f"no customer has the address {email!r}")

    @read
    def list_orders(self, customer_id: CustomerId) -> list[Record]:
        """Lists a customer's orders, oldest first: id, date, status, products and total."""
        self._record("customers", customer_id)
        return [
            {
                "order_id": order_id,
                "placed_on": order["placed_on"],
                "status": order["status"],
                "products": [self.data["products"][item["product_id"]]["name"] for item in order["items"]],
                "total": self._total(order),
            }
            for order_id, order in self.data["orders"].items()
            if order["customer_id"] == customer_id
        ]

    @read
    def get_order(self, order_id: OrderId) -> Record:
        """Shows everything about an order: items, address, delivery, coupon, payments, refunds and notes."""
        order = self._record("orders", order_id)
        paid, back = (sum(int(one["amount"]) for one in order[kind]) for kind in ("payments", "refunds"))
        return {"order_id": order_id, **order, "total": self._total(order), "paid": paid - back}

    @read
    def search_products(self, text: Annotated[str, "Words of the product's name."]) -> list[Record]:
        """Finds products by words of their names, the best match first: id, name, price and stock."""
        words = text.casefold().split()
        found = [
            (_matches(words, product["name"]), {"product_id": product_id, **product})
            for product_id, product in self.data["products"].items()
        ]
        found.sort(key=lambda one: -one[0])
        return [product for matches, product in found if matches]

    @read
    def quote_delivery(self, order_id: OrderId) -> list[Record]:
        """Lists the ways in which an open order can be delivered: speed, fee and the quote that set_delivery
        needs."""
        self._open_order(order_id)
        return [
            {"speed": speed, "fee": fee, "quote_id": _quote(order_id, speed)}
            for speed, fee in DELIVERY_FEES.items()
        ]

    @write(undo="cancel_order")
    def place_order(
        self,
        customer_id: CustomerId,
        product_id: Annotated[str, "The product's id, as search_products gives it."],
        quantity: Annotated[int, "How many pieces."],
    ) -> Record:
        """Places an order of one product, with standard delivery to the customer's home address. Nothing is
        paid yet."""
        customer = self._record("customers", customer_id)
        product = self._record("products", product_id)
        if quantity < 1:
            raise Failure("quantity must be at least 1")
        if quantity > product["in_stock"]:
            raise Failure(f"only {product['in_stock']} of {product['name']!r} are in stock")
        product["in_stock"] -= quantity
        order_id = self.new_id("O-")
        self.data["orders"][order_id] = {
            "customer_id": customer_id,
            "placed_on": self.data["today"],
            "status": "open",
            "items": [{"product_id": product_id, "quantity": quantity, "price": product["price"]}],
            "address": dict(customer["address"]),
            "delivery": {"speed": "standard", "fee": 0},
            "coupon": None,
            "payments": [],
            "refunds": [],
            "notes": [],
        }
        return self.get_order(order_id)

    @write(idempotent=True)
    def cancel_order(self, order_id: OrderId) -> Record:
        """Cancels an open order and puts its items back into stock. An order without payments is removed
        altogether; payments of others stay until they are refunded or voided."""
        order = self._open_order(order_id)
        for item in order["items"]:
            self.data["products"][item["product_id"]]["in_stock"] += item["quantity"]
        if not order["payments"]:
            del self.data["orders"][order_id]
            return {"order_id": order_id, "status": "removed"}
        order["status"] = "cancelled"
        return self.get_order(order_id)

    @write(undo="void_payment")
    def charge_card(
        self,
        order_id: OrderId,
        card_id: Annotated[str, "The card's id, as find_customer gives it."],
        amount: Euros,
    ) -> Record:
        """Charges one of the customer's cards for an open order. Every call is a payment of its own."""
        order = self._open_order(order_id)
        if all(
            card["card_id"] != card_id for card in self._record("customers", order["customer_id"])["cards"]
        ):
            raise Failure(f"the customer has no card {card_id!r}")
        if not 1 <= amount <= self._total(order):
            raise Failure(f"amount must be between 1 and the order's total of {self._total(order)}")
        payment = {
            "payment_id": self.new_id("PAY-"),
            "card_id": card_id,
            "amount": amount,
            "settled": False,
        }
        order["payments"].append(payment)
        return {"order_id": order_id, **payment}

    @write(idempotent=True)
    def void_payment(self, payment_id: PaymentId) -> Record:
        """Takes back a payment that is not settled yet, as if it had not been made."""
        order_id, payment = self._payment(payment_id)
        if payment["settled"]:
            raise Failure(f"payment {payment_id!r} is settled: it can only be refunded")
        self.data["orders"][order_id]["payments"].remove(payment)
        return {"order_id": order_id, "payment_id": payment_id, "status": "voided"}

    @write()
    def refund_payment(self, payment_id: PaymentId, amount: Euros) -> Record:
        """Pays back a settled payment or a part of it. A refund cannot be taken back."""
        order_id, payment = self._payment(payment_id)
        refunds = self.data["orders"][order_id]["refunds"]
        left = payment["amount"] - sum(one["amount"] for one in refunds if one["payment_id"] == payment_id)
        if not payment["settled"]:
            raise Failure(f"payment {payment_id!r} is not settled yet: void it instead")
        if not 1 <= amount <= left:
            raise Failure(f"amount must be between 1 and what is left of the payment, which is {left}")
        refund = {"refund_id": self.new_id("RF-"), "payment_id": payment_id, "amount": amount}
        refunds.append(refund)
        return {"order_id": order_id, **refund}

    @write(idempotent=True)
    def set_address(
        self,
        order_id: OrderId,
        street: Annotated[str, "Number and street."],
        postcode: Annotated[str, "The postcode."],
        city: Annotated[str, "The city."],
    ) -> Record:
        """Sets the address that an open order is delivered to."""
        order = self._open_order(order_id)
        order["address"] = {"street": street, "postcode": postcode, "city": city}
        return {"order_id": order_id, "address": order["address"]}

    @write(idempotent=True)
    def set_delivery(
        self, order_id: OrderId, quote_id: Annotated[str, "The quote's id, as quote_delivery gives it."]
    ) -> Record:
        """Sets how an open order is delivered, by a quote that was given for it; the total changes by the
        fee."""
        order = self._open_order(order_id)
        for speed, fee in DELIVERY_FEES.items():
            if _quote(order_id, speed) == quote_id:
                order["delivery"] = {"speed": speed, "fee": fee}
                return {"order_id": order_id, "delivery": order["delivery"], "total": self._total(order)}
        raise Failure(f"{quote_id!r} is not a quote for this order: ask quote_delivery first")

    @write(idempotent=True)
    def apply_coupon(self, order_id: OrderId, code: Annotated[str, "The coupon's code."]) -> Record:
        """Applies a coupon to an open order that has no payments, in place of any it had."""
        order = self._open_order(order_id)
        coupon = self._record("coupons", code)
        if order["payments"]:
            raise Failure("the order has payments: coupons come before paying")
        if self._price(order) < coupon["minimum"]:
            raise Failure(f"coupon {code!r} needs items for at least {coupon['minimum']}")
        order["coupon"] = code
        return {"order_id": order_id, "coupon": code, "total": self._total(order)}

    @write()
    def add_note(self, order_id: OrderId, text: Annotated[str, "The note's text."]) -> Record:
        """Adds a note to an order, after those it has."""
        order = self._record("orders", order_id)
        if not text.strip():
            raise Failure("a note needs a text")
        order["notes"].append(text)
        return {"order_id": order_id, "notes": order["notes"]}

    def _record(self, kind: str, key: str) -> Record:
        found: Record | None = self.data[kind].get(key)
        if found is None:
            raise Failure(f"there is no {kind.removesuffix('s')} {key!r}")
        return found

    def _open_order(self, order_id: str) -> Record:
        order = self._record("orders", order_id)
        if order["status"] != "open":
            raise Failure(f"order {order_id!r} is {order['status']}, not open")
        return order

    def _payment(self, payment_id: str) -> tuple[str, Record]:
        for order_id, order in self.data["orders"].items():
            for payment in order["payments"]:
                if payment["payment_id"] == payment_id:
                    return order_id, payment
        raise Failure(f"there is no payment {payment_id!r}")

    def _price(self, order: Record) -> int:
        return sum(int(item["price"] * item["quantity"]) for item in order["items"])

    def _total(self, order: Record) -> int:
        off = self.data["coupons"][order["coupon"]]["amount"] if order["coupon"] else 0
        return max(0, self._price(order) - int(off)) + int(order["delivery"]["fee"])


def _matches(words: list[str], name: str) -> int:
    """How many words of a search stand in a name; singular and plural are the same where one begins as the
    other."""
    own = name.casefold().split()
    return sum(any(one.startswith(word) or word.startswith(one) for one in own) for word in words)


def _quote(order_id: str, speed: str) -> str:
    """The id of a quote: it follows from what is quoted, so asking for one changes nothing."""
    return "Q-" + hashlib.sha256(f"{order_id} {speed}".encode("utf-8", "replace")).hexdigest()[:6].upper()


WORLD = Orders

TASKS = tasks_of(Path(__file__).with_suffix(".json"))
