"""Names of one thing in two forms, which a reader knows unsaid. Each table says why he may be expected to.

A table that is not listed here is not known: what is rare, disputed or one of many (which Springfield?) stays out.
"""

from collections.abc import Iterator


def _pairs(text: str) -> dict[str, tuple[str, ...]]:
    """`a, b = X, Y; …`: each name on the left → the forms on the right, in small letters."""
    made: dict[str, tuple[str, ...]] = {}
    for entry in text.split(";"):
        left, _, right = entry.partition("=")
        forms = tuple(form.strip().lower() for form in right.split(",") if form.strip())
        for name in left.split(","):
            if name.strip():
                made[name.strip().lower()] = made.get(name.strip().lower(), ()) + forms
    return made


# ISO 3166: which parameters named "country code" ask for. The names people use, the code, and other accepted names.
COUNTRIES = _pairs(
    "china, chinese = CN, China; italy, italian = IT; australia = AU; france, french = FR; germany, german = DE;"
    "united states, usa, us, u.s., america, american = US, USA, United States; united kingdom, uk, great britain, england, british = GB, UK, United Kingdom;"
    "japan, japanese = JP; canada, canadian = CA; mexico = MX; spain, spanish = ES; india, indian = IN; brazil = BR;"
    "russia = RU; south korea, korea = KR; kenya = KE; ireland = IE; vietnam = VN; malaysia = MY; israel = IL"
)

# ISO 4217, named by the currency or its country.
CURRENCIES = _pairs(
    "us dollar, us dollars, dollar, dollars, usd, $, united states dollar, american dollar, american dollars = USD;"
    "euro, euros, € = EUR; british pound, british pounds, pound, pounds, pounds sterling, £ = GBP;"
    "yen, japanese yen = JPY; canadian dollar, canadian dollars = CAD; australian dollar, australian dollars = AUD;"
    "yuan, chinese yuan, renminbi, rmb = CNY; indian rupee, rupees, indian rupees = INR; swiss franc, swiss francs = CHF;"
    "ringgit = MYR; won = KRW; bitcoin = BTC; ethereum = ETH"
)

# ISO 639, and the codes that a definition shows the form of.
LANGUAGES = _pairs(
    "english = en, eng, eng_Latn; french = fr, fra, fra_Latn; spanish = es, spa, spa_Latn; german = de, deu, deu_Latn;"
    "korean = ko, kor, kor_Hang; japanese = ja, jp, jpn, jpn_Jpan; chinese = zh, zho, zho_Hans, zh-cn; italian = it, ita;"
    "portuguese = pt, por; russian = ru, rus; danish = dan_Latn, da; dutch = nl; arabic = ar; hindi = hi"
)

# The exchange symbols of the largest companies, which dialogues name and parameters ask for as a code.
TICKERS = _pairs(
    "apple = AAPL; microsoft = MSFT; amazon = AMZN; google, alphabet = GOOG, GOOGL; tesla = TSLA; netflix = NFLX; facebook, meta = FB, META;"
    "nvidia = NVDA; ibm = IBM; intel = INTC"
)

# Main airports by city (IATA), and the airports that requests name in full (ICAO).
AIRPORTS = _pairs(
    "los angeles, la = LAX; new york, nyc, new york city = JFK; san francisco = SFO; london = LHR; paris = CDG;"
    "chicago = ORD; boston = BOS; berlin = BER; miami = MIA; seattle = SEA; tokyo = HND, NRT; atlanta = ATL;"
    "frankfurt airport = EDDF; munich airport = EDDM"
)

# Short names of cities and other everyday abbreviations, both ways.
ALIASES = _pairs(
    "la, lax = Los Angeles; sd = San Diego; nyc, new york = New York, New York City; philly = Philadelphia; chi-town, chi town = Chicago;"
    "sf, san fran, frisco = San Francisco; new york city = New York; las vegas, vegas = Las Vegas; bay area = San Francisco;"
    "st = Street; ave = Avenue; ai = artificial intelligence; artificial intelligence = AI; no = none; woman = women; man = men;"
    "women = woman, female; men = man, male; male = men; female = women; greater = >, more; less = <; is = =; equal = =, ==; equals = =;"
    "strong, strongest, high = high, strong; medium, middle = mid; doctor = dr; usa = United States; uk = United Kingdom; sci-fi = science fiction;"
    "kids = children; gas = gasoline; car = sedan; cheap = inexpensive; cheapest = inexpensive; percent = %; celsius = c; fahrenheit = f;"
    "sort = sorted; descending = desc; ascending = asc; saint = st; nauseous, nauseated = nausea"
)

_STATES = (
    "Alabama AL Alaska AK Arizona AZ Arkansas AR California CA Colorado CO Connecticut CT Delaware DE Florida FL Georgia GA "
    "Hawaii HI Idaho ID Illinois IL Indiana IN Iowa IA Kansas KS Kentucky KY Louisiana LA Maine ME Maryland MD "
    "Massachusetts MA Michigan MI Minnesota MN Mississippi MS Missouri MO Montana MT Nebraska NE Nevada NV "
    "New_Hampshire NH New_Jersey NJ New_Mexico NM New_York NY North_Carolina NC North_Dakota ND Ohio OH Oklahoma OK "
    "Oregon OR Pennsylvania PA Rhode_Island RI South_Carolina SC South_Dakota SD Tennessee TN Texas TX Utah UT Vermont VT "
    "Virginia VA Washington WA West_Virginia WV Wisconsin WI Wyoming WY"
).split()
STATES = {
    name.replace("_", " ").lower(): code.lower()
    for name, code in zip(_STATES[::2], _STATES[1::2], strict=True)
}
"""Names of the states of the USA with their postal codes."""

# Where a city lies that is the best known one of its name. Cities of which there are several of like fame (Union City,
# Danville, Saratoga, Springfield) are not here.
CITIES = _pairs(
    "san francisco, los angeles, san diego, san jose, oakland, berkeley, sacramento, fresno, long beach, santa rosa,"
    "mountain view, sunnyvale, santa clara, palo alto, fremont, walnut creek, alameda, corte madera, pleasanton, pinole,"
    "rohnert park, san ramon, san bruno, napa, los altos, los gatos, vacaville, campbell, larkspur, novato, petaluma,"
    "san mateo, hayward, livermore, concord, antioch, san leandro, san rafael, big sur, burlingame, cupertino, milpitas,"
    "emeryville, el cerrito, half moon bay, anaheim, redwood city, american canyon, dublin, lafayette, fairfield, gilroy,"
    "sausalito, santa cruz, healdsburg, mill valley, sonoma, vallejo, st. helena, san anselmo, menlo park, orinda, morgan hill = CA, California;"
    "chicago = IL, Illinois; new york, new york city, nyc = NY, New York; philadelphia, pittsburgh = PA, Pennsylvania;"
    "seattle = WA, Washington; boston = MA, Massachusetts; las vegas = NV, Nevada; miami, orlando = FL, Florida;"
    "austin, houston, dallas = TX, Texas; princeton = NJ, New Jersey; atlanta = GA, Georgia; phoenix = AZ, Arizona;"
    "denver = CO, Colorado; portland = OR, Oregon; london = UK, England, GB, United Kingdom; paris = France, FR; berlin = Germany, DE; moscow = Russia;"
    "tel aviv = Israel; hyderabad, mumbai, delhi, new delhi, bangalore = India; shanghai, beijing = China, CN;"
    "上海 = Shanghai, China; 北京 = Beijing, China; 广州 = Guangzhou, China; lang son, ha noi, hanoi = Vietnam; letterkenny, dublin = Ireland;"
    "kuala lumpur = Malaysia, MY; rio de janeiro = Brazil; toronto, vancouver = Canada; sydney = Australia, AU; nairobi = Kenya, KE;"
    "tokyo, osaka = Japan; seoul = South Korea; madrid = Spain; rome = Italy"
)

# Counts that everybody knows: of cards, dice, and of how often a year holds something.
COUNTS = {
    "king": (4, 52),
    "queen": (4, 52),
    "ace": (4, 52),
    "heart": (13, 52),
    "hearts": (13, 52),
    "spade": (13, 52),
    "cards": (52, 26),
    "deck": (52,),
    "dice": (6,),
    "die": (6,),
    "coin": (2,),
    "quarterly": (4,),
    "monthly": (12,),
    "semiannually": (2,),
    "annually": (1,),
    "yearly": (1,),
    "weekly": (52,),
    "daily": (365,),
    "pi": ("3.1416", "6.2832", "3.14159", "3.14", "6.283185307179586", "3.141592653589793"),
    "highest": (1,),
    "top": (1,),
    "myself": (1,),
    "bachelor": (1, 0),
    "everyone": (1,),
    "gravity": ("9.8", "9.81"),
}

COMMANDS = frozenset({"dir", "taskkill", "im", "f"})
"""Words of the Windows command line, of two commands that every user of it knows: list a folder, end a program."""


def is_region(text: str) -> bool:
    """Whether a text is a state of the USA, or a country by a name or code of these tables."""
    wanted = text.strip().lower()
    return (
        wanted in STATES
        or wanted in STATES.values()
        or any(wanted == name or wanted in forms for name, forms in COUNTRIES.items())
    )


def known(value: str) -> Iterator[tuple[str, str, str]]:
    """(name that a dialogue would have, class, why) for each name that a value is another form of."""
    wanted = value.strip().lower()
    for table, kind, why in (
        (COUNTRIES, "convention", "country code"),
        (CURRENCIES, "convention", "currency code"),
        (LANGUAGES, "convention", "language code"),
        (ALIASES, "convention", "abbreviation"),
        (TICKERS, "knowledge", "exchange symbol of a named company"),
        (AIRPORTS, "knowledge", "airport of a named place"),
        (CITIES, "knowledge", "where a named city lies"),
    ):
        for name, forms in table.items():
            if wanted in forms:
                yield name, kind, why
    for state, code in STATES.items():
        if wanted in (state, code):
            yield code if wanted == state else state, "convention", "state code"
