"""Swahili."""

from .table import NEVER, Cues

_DO = r"(?:fany|it|tum|jarib|endesh|tekelez|ulizi|omb|pig|rudi)"
_CALL = r"(?:mwito|miito|ombi|maombi|jaribio|zana|huduma|seva|kazi|simu)"
_WENT = (
    r"(?:(?:u|i|li|ya|zi)?(?:me|li)(?:isha|kwisha) (?:kwa )?muda|muda (?:wake )?(?:u|ume|uli|um)\w*isha"
    r"|(?:u|i|li|zi|ya|wa)(?:me|li)shindwa|(?:u|i|li|zi)(?:me|li)(?:rudisha|rejesha|toa|leta|kataliwa|feli"
    r"|kwama|goma|pata|fanikiwa)|ha(?:ku|ija|uja|lija|li|i)\w*(?:fanikiwa|jibu|fanya|rudi)\w*|hitilafu|kosa"
    r"|haipatikani|haufanyi kazi|imezimwa|imefeli)"
)

CUES = Cues(
    announced=(
        r"\b(?:nita|tuta)\w+|\b(?:ni)?na(?:jaribu|ita|fanya|angalia|tumia|tuma|rudia|endelea|endesha|piga|omba)\b|\b(?:acha|wacha|ngoja) ni\w+"
        r"|\btena\b(?! baadaye)|\bjaribio (?:jipya|jingine|la pili)\b|\bnahitaji ku\w+|\blazima ni\w+"
    ),
    reported=(
        rf"\btayari\b|\b(?:nime|nili|tume|tuli)(?:{_DO}|wahi|sha)\w*|\b{_CALL} (?:wa awali|la awali|uliopita|lililopita"
        rf"|ulioshindwa|lililoshindwa|iliyoshindwa)\b|\b{_CALL}[^.;:]{{0,16}} {_WENT}"
    ),
    refused=(
        rf"\b(?:sita|hatuta|haita)\w+|\b(?:si|hatu|usi|msi)(?:wezi|ruhusiwi|taki|{_DO})\w*"
        r"|\bsina (?:ruhusa|uwezo|idhini)\b|\bhai?wezekani\b|\bni marufuku\b|\bnakataa\b|\bsija\w+|\bbadala ya ku\w+"
        r"|\bbila ku\w+|\bnakata tamaa\b|\bepuka\b"
    ),
    supposed=(
        r"\b(?:ninge|tunge|inge|unge)\w+|\blabda\b|\bhuenda\b"
        r"|\bnaweza\b[^.;]{0,24}\blakini\b"
    ),
    deferred=(
        r"\b\w+(?:ki|po)(?:rudi|patikan|fany|jib|maliz)\w*|\b(?:baadaye|kesho|baada ya (?:muda|dakika)|wakati mwingine)\b"
        r"|\b(?:unaweza|mnaweza|unapaswa|tafadhali)\b|\bmwenyewe\b|^jaribu\b"
    ),
    label=(
        rf"^(?:{_CALL}|majaribio) (?:\w*(?:shind|kwisha|kata|subiri|pit|fany|tum)\w*|wa awali|la awali|hadi sasa)(?: \w+)*$"
        rf"|^(?:historia|kumbukumbu|orodha|mpango|hitilafu|kosa)\b[^,]*$|\bhadi sasa$"
    ),
    example=r"\bkwa mfano\b|\bm[fi]+ano\b|\bkama vile\b|\bkitu kama\b|\bkiolezo\b",
    asked=(
        r"\b(?:je|niendelee|nifanye|niite|ungependa|unataka|unakubali|nitumie|naweza|nijaribu"
        r"|sawa)\b[^.?]{0,80}\?|\b(?:tafadhali )?thibitisha\b|\bnasubiri (?:idhini|uthibitisho|ruhusa)\b"
        r"|\b(?:kama|ikiwa) (?:unataka|ungependa|unakubali|utakubali)\b|\bkwa idhini yako\b"
    ),
    described=(
        r"\b(?:zana|kazi|chombo)\b[^.;:]{0,40}\b(?:(?:hu|ina)(?:rudisha|chukua|tumika|toa|hitaji))\b|\bzana zilizopo\b|\bzana zinazopatikana\b"
        r"|\bmatumizi\s*[:：]?$|\bnyaraka\b|\bninaweza kutumia\b|\bnina zana\b"
    ),
    does=(r",? (?:(?:hu|ina)(?:rudisha|chukua|tumika|toa|hitaji)|ni zana)\b"),
    outcome=(
        rf"(?:\b(?:lakini|na|ila|hata hivyo|{_CALL}|huo|hilo|hii)\b[^.;]{{0,32}}){_WENT}|^[^\w]*{_WENT}"
        rf"|\b(?:nilipata|nimepata|nilipokea) (?:hitilafu|kosa|jibu)"
    ),
    gives_up=r"\bbaadaye\b|\bbaada ya (?:muda|dakika)\b|\btafadhali jaribu tena\b|\bnakata tamaa\b",
    conditional=r"\b(?:kama|ikiwa|iwapo|endapo|wakati|mara tu|ili|hadi|baada ya)\b",
    earlier=r"\b(?:awali|iliyopita|uliopita|lililopita|kwanza|kabla|hapo awali|mwisho)\b",
    correction=(r"\b(?:sio? sahihi|ni(?:me|li)kosea|\w*sahihish\w*|\w*rekebish\w*|samahani|kosa langu)\b"),
    this_call=(
        r"\b(?:huu|hii|huo|hilo|hili|ufuatao|lifuatalo|ifuatayo|hapa chini)\b|\b(?:mwito|ombi) (?:huu|hili"
        r"|ufuatao)\b"
    ),
    soon=r"(?:sasa(?: hivi)?|tena|kwanza|kisha|mara moja|baadaye kidogo|hivi sasa|halafu|tafadhali)",
    so=(r"\b(?:kwa hiyo|hivyo|basi|kwa hivyo)\b"),
    turn=NEVER,
    cause=NEVER,
    past=NEVER,
    negated=NEVER,
    aside=NEVER,
    named=NEVER,
)
