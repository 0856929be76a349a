"""What a reader knows without being told: codes, abbreviations, names of one thing in two forms. Each table says why
it may be expected of a reader."""

from .reading import split

# name in the dialogue → accepted forms; ISO 3166, which the parameters ask for as "country code"
COUNTRIES = "china:cn,chn italy:it,ita australia:au,aus france:fr,fra germany:de,deu"
