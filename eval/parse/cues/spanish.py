"""Spanish."""

from .table import Cues

_MAKE = (
    r"(?:llam(?:ar|o|aré|e|es|en)|hac(?:er|e)|hag(?:o|a|as|an)|haré|ejecut(?:ar|o|aré|e|es|en)|us(?:ar|o"
    r"|aré|e|es|en)|utili(?:zar|zo|zaré|ce|ces|cen)|invo(?:car|co|caré|que|ques|quen)"
    r"|reali(?:zar|zo|zaré|ce|ces|cen)|envi(?:ar|o|aré|e|es)|continu(?:ar|o|aré|e)|proced(?:er|o|eré|a)"
    r"|intent(?:ar|o|aré|e|es|en)|reintent(?:ar|o|aré|e)|complet(?:ar|o|aré)|efectu(?:ar|o|aré|e)"
    r"|emple(?:ar|o|aré|e)|solicit(?:ar|o|aré)|repetir|repito|seguir)"
)
_MADE = (
    r"(?:hice|hicimos|hecho|llamé|llamado|ejecuté|ejecutado|intenté|intentado|realicé|realizado|probé"
    r"|probado|usé|usado|utilicé|utilizado|envié|enviado|invoqué|invocado|efectué|efectuado|solicité"
    r"|solicitado|lancé|lanzado|emití|emitido|completé|completado)"
)
_CALL = (
    r"(?:llamadas?|solicitud(?:es)?|petici(?:ón|ones)|intentos?|consultas?|herramientas?|funci(?:ón|ones)"
    r"|invocaci(?:ón|ones))"
)
_WENT = (
    r"(?:(?:se )?agot(?:ó|aron|ado)|expiró|falló|fallaron|ha(?:n)? fallado|fracasó|devolvió|dio (?:un |como"
    r" )?(?:error|resultado|tiempo)|no (?:respondió|funcionó|contestó|tuvo éxito|devolvió)|(?:produjo"
    r"|arrojó|lanzó|generó|provocó|obtuvo|recibió) |regresó|retornó|excedió|superó|fue (?:rechazad|denegad"
    r"|bloquead)|caducó|se cayó|está (?:caíd|fuera|no disponible)|no está disponible|terminó (?:con|en)"
    r"|hubo un|resultó en|ha (?:devuelto|expirado|caducado|dado)|se interrumpió)"
)

CUES = Cues(
    announced=(
        r"(?<!no )(?<!no lo )(?<!no la )\b\w{2,}(?:aré|eré|iré)\b|"
        r"\b(?:de nuevo|otra vez|nuevamente|una vez más|reintent\w+|vuelvo a|volveré a|vamos a|voy a(?<!no"
        r" voy a)|(?:me )?dispongo a|procedo a(?<!no procedo a))\b|(?<!no )\b(?:lo )?(?:intento|intentaré"
        r"|llamaré|haré|ejecutaré|usaré|utilizaré|invocaré|realizaré|repetiré|enviaré|consultaré|hago|llamo"
        r"|uso|utilizo|ejecuto|realizo|invoco|repito|pruebo|consulto)\b"
        r"|\b(?:estoy|sigo) \w+(?:ando|iendo)\b|(?:^|[,.;:!] ?)(?:ahora )?(?:intentando|llamando|ejecutando"
        r"|reintentando|probando|usando|repitiendo|haciendo)\b|\b(?:déjame|déjeme|permítame|permíteme"
        r"|probemos|intentemos|veamos|debo|necesito|tengo que)\b|\baquí (?:está|va|tiene|tienes|lo)\b"
        r"|\bahora (?:sí|mismo|llam|lo|la|us|ejec|voy)\w*\b|\bmi (?:llamada|respuesta)\b|\botro intento\b"
        r"|\bsegundo intento\b"
    ),
    reported=(
        rf"\bya (?:(?:lo|la|le|los|las|he|había|hemos) )*{_MADE}\b|\b(?:he|había|hemos|habíamos) (?:ya"
        rf" )?{_MADE}\b|\b{_MADE} (?:ya|esta|este|la|el|los|las|una|un|previamente|antes)\b|\b{_CALL}"
        rf" (?:anterior(?:es)?|previa|previo|fallid[ao]s?|original|que (?:hice|falló|fallaron))\b"
        rf"|\b{_CALL} {_WENT}|\b(?:anterior|previa|última|último) {_CALL}\b|\b(?:hice|llamé|ejecuté|realicé"
        rf"|invoqué|probé|usé|envié|intenté)\b"
    ),
    refused=(
        rf"\bno (?:\w+ ){{0,4}}?{_MAKE}\b|\bno (?:voy a|puedo|debo|debería|quiero|podré|se puede|es posible"
        rf"|pude|pienso|tengo permiso|tengo autorización|estoy autorizad)|\b(?:me )?niego a\b|\bno (?:lo "
        rf"|la |me )?\w+(?:aré|eré|iré)\b|\bnunca {_MAKE}\b|\bevit(?:e|ar|a)\b|\bprohibid[oa]\b"
        rf"|\bimposible\b|\bsin (?:hacer|ejecutar|llamar)\b|\ben lugar de\b|\ben vez de\b"
        rf"|\b(?:pero|sin embargo|aunque)\b[^.;]{{0,40}}(?:\bno\b|\bcaíd|\bagot|\bfall)|\bme rindo\b"
        rf"|\brenuncio\b"
    ),
    supposed=(
        r"\b(?:podría|podríamos|pudiera|sería|haría|llamaría|usaría|ejecutaría|utilizaría|habría|hubiera"
        r"|quizás?|tal vez|hipotétic\w+|supon(?:gamos|iendo)|imagin\w+|en teoría|tendría)\b|\bsi (?:pudiera"
        r"|fuera|tuviera)\b"
    ),
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
    example=(
        r"\bpor ejemplo\b|\bp\. ?ej\b|\bejemplos?\b|\balgo (?:así|como)\b|\bcomo por\b|\bplantilla\b"
        r"|\bsintaxis\b|\ba modo de\b|\bilustra\w*"
    ),
    asked=(
        r"¿[^?]*(?:debo|debería|quiere|quieres|desea|deseas|proced|puedo|hago|ejecut|llamo|contin|confirm"
        r"|está bien|le parece|te parece|de acuerdo|correct|sigo|adelante|autoriza|permit|lo intento"
        r"|realizo)[^?]*\?|\b(?:por favor,? )?(?:confirme|confírme(?:me|lo)?|confirma|confírmame)\b|\bsi"
        r" (?:usted )?(?:lo )?(?:desea|quiere|quieres|deseas|está de acuerdo|confirma|autoriza)\b|\bespero"
        r" su (?:confirmación|aprobación|permiso)\b|\bcon su permiso\b|\bdígame si (?:debo|quiere|procedo)\b"
    ),
    described=(
        r"\b(?:herramienta|función|api|método|comando)\b[^.;:]{0,40}\b(?:devuelve|toma|acepta|obtiene"
        r"|recibe|requiere|permite|sirve|se usa|se utiliza|proporciona|calcula|envía)\b|\b(?:herramientas"
        r"|funciones) disponibles\b|\b(?:uso|firma|documentación|referencia)\b\s*[:：]?$|\btengo acceso a\b"
        r"|\bpuedo (?:usar|llamar)\b"
    ),
    does=(
        r"[,]? (?:devuelve|toma|acepta|obtiene|recibe|requiere|permite|sirve|se usa|se utiliza|proporciona"
        r"|calcula|envía|es una)\b"
    ),
    outcome=(
        rf"(?:\b(?:pero|y|sin embargo|la {_CALL}|el {_CALL}|{_CALL}|esto|esta|este|eso|el servidor|el"
        rf" servicio|lo cual|que|aunque)\b[^.;]{{0,32}}){_WENT}|^[^\w]*{_WENT}|\bhubo un error\b"
        rf"|\b(?:recibí|obtuve) (?:un |como )?(?:error|tiempo|respuesta)"
    ),
    gives_up=(
        r"\b(?:int[eé]nt\w+|vuelv[ae] a intentar\w*|prueb[ae]|reintent[ae]|consulte)[^.;]{0,24}\bmás"
        r" tarde\b|\bmás tarde\b|\ben unos (?:minutos|momentos)\b|\bvuelv[ae] a intentarlo\b|\binténtelo de"
        r" nuevo\b|\binténtalo de nuevo\b|\bme rindo\b"
        r"|\b(?:servicio|servidor) (?:no|está)\b|\bnada más\b"
    ),
    conditional=r"\b(?:si|cuando|en caso de|una vez que|en cuanto|a menos que|para que|hasta que)\b",
    earlier=r"\b(?:anterior(?:es)?|previ[ao]s?|antes|últim[ao]|primer[ao]?|originalmente)\b",
    correction=(
        r"\b(?:incorrect[oa]s?|equivoc\w+|correg\w+|correcci[oó]n|corrijo|me equivoqué|está mal|mal"
        r" escrit[oa]|errónea|erróneo|perdón)\b"
    ),
    this_call=(
        r"\b(?:esta|este|la siguiente|el siguiente|siguiente|dicha|esa|ese)\b ?(?:llamada|solicitud"
        r"|petición|consulta|función|herramienta)?"
    ),
    soon=(
        r"(?:ahora(?: mismo)?|de nuevo|otra vez|primero|luego|después|inmediatamente|ya|enseguida|a"
        r" continuación|nuevamente|por favor)"
    ),
    it=r"\b(?:lo|la|esta|esto|llamada)\b|\w(?:lo|la)\b",
    contrast=r"^\W*(?:pero|sin embargo|aunque|porque)",
    so=(r"\b(?:así que|por (?:eso|lo que|lo tanto|ello)|de modo que|entonces)\b"),
)
