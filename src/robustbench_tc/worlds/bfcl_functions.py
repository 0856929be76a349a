"""What is declared of BFCL's 128 functions beside their documentation: the words that people use for their
work, and which reads a service could ask for first."""

from .base import ToolClass

_CLASSES = """\
contact | address book | add_contact get_user_id list_users
insurance | insured, insurance policy, coverage | purchase_insurance
invoice | receipt | retrieve_invoice
flight | booking, booked, book, trip, reservation, reserved, ticket to | book_flight cancel_booking \
get_booking_history get_flight_cost
customer support | support | contact_customer_support
budget | spending limit, fiscal year | set_budget_limit get_budget_fiscal_year
credit card | card | register_credit_card get_all_credit_cards get_credit_card_balance
exchange rate | currency, currencies, conversion | compute_exchange_rate
airport | | get_nearest_airport_by_city list_all_airports
traveler | traveller, passport, identity | verify_traveler_information
watchlist | watch list, watched | add_to_watchlist remove_stock_from_watchlist get_watchlist
order | ordered, trade, traded, bought, sold, purchase, purchased, shares | place_order cancel_order \
get_order_details get_order_history
funds | deposit, deposited, withdrawal, withdrew, withdrawn, balance, transaction, funded | fund_account \
withdraw_funds get_account_info get_transaction_history
stock | symbol, price, share price | get_stock_info get_symbol_by_name get_available_stocks \
filter_stocks_by_price notify_price_change
comment | commented | comment get_tweet_comments
retweet | retweeted | retweet
mention | mentioned, tagged | mention
following | follow, followed, unfollow, unfollowed, follower | follow_user unfollow_user \
list_all_following get_user_stats
tweet | tweeted, post, posted, posting | post_tweet get_tweet get_user_tweets search_tweets
ticket | support request, case, issue | create_ticket edit_ticket close_ticket resolve_ticket get_ticket \
get_user_tickets
message | messaged, note to, texted | send_message delete_message search_messages view_messages_sent \
get_message_stats
login | log in, log out, logged in, logged out, sign in, signed in, authentication, authenticated, \
authenticate, credentials, access token | authenticate_travel authenticate_twitter message_login \
ticket_login trading_login trading_logout logout message_get_login_status posting_get_login_status \
ticket_get_login_status trading_get_login_status travel_get_login_status
parking brake | handbrake | activateParkingBrake
brake | brake pedal, pedal | pressBrakePedal releaseBrakePedal
engine | ignition, car started, started the car | startEngine
door | locked, unlocked, lock, unlock | lockDoors
fuel | tank, gas, gasoline, gallon, liter, refuel, refueled | fillFuelTank gallon_to_liter liter_to_gallon
cruise control | cruise | setCruiseControl
headlight | light | setHeadlights
climate | air conditioning, heating, fan, cabin temperature | adjustClimateControl
navigation | route, destination, directions | set_navigation
tire | tyre, pressure | check_tire_pressure find_nearest_tire_shop
distance | zip code, zipcode, mileage, range | estimate_distance estimate_drive_feasibility_by_mileage \
get_zipcode_based_on_city
temperature | weather | get_outside_temperature_from_google get_outside_temperature_from_weather_com
car status | speed, dashboard, log | displayCarStatus get_current_speed display_log
time | | get_current_time
file | folder, directory, directories, document, copy, copies, copied, moved, renamed, deleted, content, \
disk usage | cat cd cp diff du echo find grep ls mkdir mv pwd rm rmdir sort tail touch wc
calculation | calculated, computed, average, mean, logarithm, sum, conversion, converted, result | \
absolute_value add divide imperial_si_conversion logarithm max_value mean min_value multiply percentage \
power round_number si_unit_conversion square_root standard_deviation subtract sum_values
"""
"""A class of functions a line: its name, other words for it, its functions."""

_LOOKS_FIRST = """\
ls pwd find | cat cp diff du echo grep mkdir mv rm rmdir sort tail touch wc
list_users | add_contact
list_users message_get_login_status | send_message message_login
view_messages_sent | delete_message
posting_get_login_status | post_tweet authenticate_twitter
get_tweet posting_get_login_status | comment retweet mention
list_all_following posting_get_login_status | follow_user unfollow_user
get_user_tickets ticket_get_login_status | create_ticket
get_ticket ticket_get_login_status | edit_ticket close_ticket resolve_ticket
ticket_get_login_status | ticket_login
get_stock_info get_account_info trading_get_login_status | place_order
get_order_details get_order_history trading_get_login_status | cancel_order
get_order_history trading_get_login_status | get_order_details
get_watchlist get_stock_info trading_get_login_status | add_to_watchlist
get_watchlist trading_get_login_status | remove_stock_from_watchlist
get_account_info trading_get_login_status | fund_account withdraw_funds
trading_get_login_status | trading_login trading_logout
travel_get_login_status | authenticate_travel set_budget_limit
get_all_credit_cards travel_get_login_status | register_credit_card
get_flight_cost get_credit_card_balance get_all_credit_cards | book_flight
get_booking_history travel_get_login_status | cancel_booking retrieve_invoice
get_booking_history retrieve_invoice get_all_credit_cards | purchase_insurance
list_all_airports travel_get_login_status | get_flight_cost
displayCarStatus | startEngine lockDoors fillFuelTank setHeadlights adjustClimateControl set_navigation
displayCarStatus get_current_speed | activateParkingBrake pressBrakePedal releaseBrakePedal setCruiseControl
"""
"""Reads, and the functions of the same class of upstream's before which a service could ask for them."""

CLASSES = tuple(
    ToolClass(name, tuple(filter(None, words.strip().split(", "))), tuple(tools.split()))
    for name, words, tools in (line.split(" |") for line in _CLASSES.splitlines())
)

LOOKS_FIRST = {
    tool: tuple(reads.split())
    for reads, tools in (line.split(" | ") for line in _LOOKS_FIRST.splitlines())
    for tool in tools.split()
}
"""Function → reads that a service could ask for before it."""
