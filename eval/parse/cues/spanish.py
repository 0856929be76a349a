"""Spanish."""

from .table import NEVER, Cues

_MAKE = (
    r"(?:(?:llam(?!ad)|hac|hag|har[éá]|ejecut|utili[zc]|invo[cq]|reali[zc]|envi|continu|proced|(?:re)?intent|complet|efectu"
    r"|emple|solicit|rep[ei]t|segu)\w*|us(?:ar|o|aré|en?))"
)
_MADE = r"(?!prepar|corr[ei]|identific|complet)(?:hice|hicimos|hecho|\w{2,}(?:(?<!r)é|ado|ido))"
"""Of verbs that prepare a call there is none."""
_CALL = (
    r"(?:llamadas?|solicitud(?:es)?|petici(?:ón|ones)|intentos?|consultas?|herramientas?|funci(?:ón|ones)"
    r"|invocaci(?:ón|ones))"
)
_WENT = (
    r"(?:\w{3,}ó\b|agot(?:aron|ado)|fallaron|dio (?:un |como )?(?:error|resultado|tiempo)|no (?:tuvo éxito|responde)"
    r"|(?:produjo|obtuvo) |fue \w+ad[oa]|(?:no )?está (?:caíd|fuera|no disponible|disponible)|hubo un"
    r"|han? (?:devuelto|\w+ado))"
)

_DOES = r"(?:devuelve|toma|acepta|obtiene|recibe|requiere|permite|sirve|se usa|proporciona|calcula)"

CUES = Cues(
    announced=(
        r"(?<!no )(?<!no lo )(?<!no la )\b\w{2,}(?:aré|eré|iré)\b|(?<!no )\bharé\b"
        r"|\b(?:de nuevo|otra vez|nuevamente|una vez más|reintent\w+|vuelvo a|vamos a|(?<!no )voy a"
        r"|(?<!no )procedo a)\b|(?<!no )\b(?:intento|hago|llamo|uso|utilizo|ejecuto|realizo|invoco|repito|pruebo|consulto|busco"
        r"|necesito|debo)\b|(?:^|[,.;:!] ?|\b(?:estoy|sigo|ahora) )\w+(?:ando|iendo)\b|\b(?:d[eé]j[ae]|perm[ií]ta)me\b"
        r"|\b(?:nuevo|otro|segundo) intento\b"
    ),
    reported=(
        rf"\b(?:ya|he|había|hemos|habíamos) (?:(?:ya|lo|la|los|las|he) )*{_MADE}\b|\b{_MADE} (?:ya|est[ae]|l[ao]s?|el|una?"
        rf"|antes)\b|\b{_CALL} (?:anterior(?:es)?|previ[ao]|fallid[ao]s?|original|que (?:hice|fall\w+))\b|\b{_CALL} {_WENT}"
        rf"|\b(?:anterior|previa|última|último) {_CALL}\b|^{_MADE}\b|\b{_MADE}$"
    ),
    refused=(
        rf"\b(?:no|nunca|sin) (?:\w+ ){{0,4}}?{_MAKE}\b|\bno (?:voy a|puedo|debo|quiero|se puede|es posible|pude"
        r"|(?:tengo|estoy) \w+)|\b(?:niego a|evit[ea]r?|prohibid[oa]|imposible|en (?:lugar|vez) de|rindo|renuncio)\b"
        r"|\b(?:pero|sin embargo|aunque)\b[^.;]{0,40}(?:\bno\b|\bcaíd|\bagot|\bfall)"
    ),
    supposed=(r"\b(?:\w{2,}(?:ría|ríamos)|pudiera|hubiera|quizás?|tal vez|supon(?:gamos|iendo))\b"),
    deferred=(
        r"\b(?:cuando|una vez que|en cuanto|tan pronto como|después de que|hasta que|si) (?:\w+ ){0,5}?(?:vuelva|esté"
        r"|funcione|responda|regrese|se (?:restablezca|recupere)|termine|(?:lo |la )?(?:desea|quiere|necesita)s?)\b"
        r"|\b(?:más tarde|mañana|luego|más adelante|la próxima vez|en unos (?:minutos|momentos))\b"
        r"|\b(?:usted|tú|usuario) (?:mismo )?(?:puede|podría|debe)\w*|^(?:puede|podría|debe)s?\b|\bpor favor,? \w+"
        r"|\b(?:usted|tú) mism[oa]\b|\bmanualmente\b|\binténtel?[oa]\b|\bpruebe\b"
    ),
    label=(
        rf"^(?:(?:la|las|el|los|mi|mis|una?) )*{_CALL} (?:(?:que|ya) )*(?:fallid|fall|anterior|pendiente|original|previ|rechazad"
        rf"|cancelad|realizad|hech|intentad|enviad|sin respuesta|agotad|hasta ahora)\w*(?: \w+){{0,3}}$"
        rf"|^(?:el |la )?(?:historial|registro|plan|pendientes?|intentos|próximos pasos)\b[^,]*$|\bpara que conste\b"
        rf"|^(?:error|fallo|tiempo agotado) (?:en|al|de|con)\b|\bhasta ahora$"
    ),
    example=(r"\b(?:p\. ?ej|ejemplos?|algo (?:así|como)|plantilla|sintaxis)\b"),
    asked=(
        r"¿[^?]*(?:debo|quiere|desea|proced|puedo|hago|ejecut|llamo|contin|confirm|está bien|parece|de acuerdo|correct|sigo"
        r"|adelante|autori|aprueb|permit|intento)[^?]*\?|\bconf[ií]rm[ae]\w*|\bsi (?:usted )?(?:lo )?(?:desea|quiere|está de acuerdo"
        r"|confirma|autoriza)s?\b|\b(?:su|tu) (?:confirmación|aprobación|permiso)\b"
    ),
    described=(
        rf"\b(?:herramienta|función|api|método|comando)\b[^.;:]{{0,40}}\b{_DOES}\b|\b(?:herramientas"
        r"|funciones) disponibles\b|\b(?:uso|firma|documentación|referencia)\b\s*[:：]?$|\btengo acceso a\b"
        r"|\bpuedo (?:usar|llamar)\b"
    ),
    does=rf",? (?:{_DOES}|es una)\b",
    outcome=(
        rf"(?:\b(?:pero|y|sin embargo|{_CALL}|est[aeo]|eso|servidor"
        rf"|servicio|que|aunque)\b[^.;]{{0,32}}){_WENT}|^[^\w]*{_WENT}|\bhubo un error\b|\bno hubo respuesta\b"
        rf"|\b(?:recibí|obtuve) (?:un |como )?(?:error|tiempo|respuesta)"
    ),
    gives_up=(
        r"\bmás tarde\b|\ben unos (?:minutos|momentos)\b|\b(?:vuelv[ae] a intentar|intént[ae])lo\b|\bme rindo\b"
        r"|\b(?:servicio|servidor) (?:no|está)\b|\bnada más\b|\b(?:tú|usted) mism[oa]\b"
    ),
    conditional=r"\b(?:si|cuando|una vez que|en cuanto|a menos que|para que|hasta que)\b",
    earlier=r"\b(?:anterior(?:es)?|previ[ao]s?|antes|últim[ao]|primer[ao]?|originalmente)\b",
    correction=(
        r"\b(?:incorrect[oa]s?|equivoc\w+|correg\w+|correcci[oó]n|corrijo|me equivoqué|está mal|mal"
        r" escrit[oa]|errónea|erróneo|perdón)\b"
    ),
    this_call=(
        r"\b(?:esta|este|la siguiente|el siguiente|siguiente|dicha|esa|ese)\b ?(?:llamada|solicitud"
        r"|petición|consulta|función|herramienta)?"
    ),
    soon=(r"(?:ahora(?: mismo)?|de nuevo|otra vez|primero|luego|después|ya|enseguida|por favor)"),
    so=(r"\b(?:así que|por (?:eso|lo que|lo tanto|ello)|de modo que|entonces)\b"),
    turn=NEVER,
    cause=NEVER,
    past=NEVER,
    negated=NEVER,
    aside=NEVER,
    named=NEVER,
)
