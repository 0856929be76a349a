"""Spanish."""

from .table import Cues

_MAKE = (
    r"(?:llam(?:ar|o|aré|e|es|en)|hac(?:er|e)|hag(?:o|a|as|an)|haré|ejecut(?:ar|o|aré|e|es|en)|us(?:ar|o|aré|e|es|en)|utili(?:zar|zo|zaré|ce|ces|cen)|invo(?:car|co|caré|que|ques|quen)"
    r"|reali(?:zar|zo|zaré|ce|ces|cen)|envi(?:ar|o|aré|e|es)|continu(?:ar|o|aré|e)|proced(?:er|o|eré|a)|intent(?:ar|o|aré|e|es|en)|reintent(?:ar|o|aré|e)|complet(?:ar|o|aré)|efectu(?:ar|o|aré|e)|emple(?:ar|o|aré|e)|solicit(?:ar|o|aré)|repetir|repito|seguir)"
)
_MADE = (
    r"(?:hice|hicimos|hecho|llamé|llamado|ejecuté|ejecutado|intenté|intentado|realicé|realizado|probé|probado|usé|usado|utilicé|utilizado|envié|enviado|invoqué|invocado|efectué|efectuado|solicité|solicitado|lancé|lanzado|emití|emitido|completé|completado)"
)
_CALL = r"(?:llamadas?|solicitud(?:es)?|petici(?:ón|ones)|intentos?|consultas?|herramientas?|funci(?:ón|ones)|invocaci(?:ón|ones))"
_WENT = (
    r"(?:(?:se )?agot(?:ó|aron|ado)|expiró|falló|fallaron|ha(?:n)? fallado|fracasó|devolvió|dio (?:un |como )?(?:error|resultado|tiempo)|no (?:respondió|funcionó|contestó|tuvo éxito|devolvió)|(?:produjo|arrojó|lanzó|generó|provocó|obtuvo|recibió) |regresó|retornó|excedió|superó|fue (?:rechazad|denegad|bloquead)|caducó|se cayó|está (?:caíd|fuera|no disponible)|no está disponible|terminó (?:con|en)|hubo un|resultó en|ha (?:devuelto|expirado|caducado|dado)|se interrumpió)"
)

CUES = Cues(
    announced=(
        r"(?<!no )(?<!no lo )(?<!no la )\b\w{2,}(?:aré|eré|iré)\b|"
        r"\b(?:de nuevo|otra vez|nuevamente|una vez más|reintent\w+|vuelvo a|volveré a|vamos a|voy a(?<!no voy a)|(?:me )?dispongo a|procedo a(?<!no procedo a))\b|(?<!no )\b(?:lo )?(?:intento|intentaré|llamaré|haré|ejecutaré|usaré|utilizaré|invocaré|realizaré|repetiré|enviaré|consultaré|hago|llamo|uso|utilizo|ejecuto|realizo|invoco|repito|pruebo|consulto)\b"
        r"|\b(?:estoy|sigo) \w+(?:ando|iendo)\b|(?:^|[,.;:!] ?)(?:ahora )?(?:intentando|llamando|ejecutando|reintentando|probando|usando|repitiendo|haciendo)\b|\b(?:déjame|déjeme|permítame|permíteme|probemos|intentemos|veamos|debo|necesito|tengo que)\b|\baquí (?:está|va|tiene|tienes|lo)\b|\bahora (?:sí|mismo|llam|lo|la|us|ejec|voy)\w*\b|\bmi (?:llamada|respuesta)\b|\botro intento\b|\bsegundo intento\b"
    ),
    reported=(
        rf"\bya (?:(?:lo|la|le|los|las|he|había|hemos) )*{_MADE}\b|\b(?:he|había|hemos|habíamos) (?:ya )?{_MADE}\b|\b{_MADE} (?:ya|esta|este|la|el|los|las|una|un|previamente|antes)\b|\b{_CALL} (?:anterior(?:es)?|previa|previo|fallid[ao]s?|original|que (?:hice|falló|fallaron))\b"
        rf"|\b{_CALL} {_WENT}|\b(?:anterior|previa|última|último) {_CALL}\b|\b(?:hice|llamé|ejecuté|realicé|invoqué|probé|usé|envié|intenté)\b"
    ),
    refused=(
        rf"\bno (?:\w+ ){{0,4}}?{_MAKE}\b|\bno (?:voy a|puedo|debo|debería|quiero|podré|se puede|es posible|pude|pienso|tengo permiso|tengo autorización|estoy autorizad)|\b(?:me )?niego a\b|\bno (?:lo |la |me )?\w+(?:aré|eré|iré)\b|\bnunca {_MAKE}\b|\bevit(?:e|ar|a)\b|\bprohibid[oa]\b|\bimposible\b|\bsin (?:hacer|ejecutar|llamar)\b|\ben lugar de\b|\ben vez de\b"
        rf"|\b(?:pero|sin embargo|aunque)\b[^.;]{{0,40}}(?:\bno\b|\bcaíd|\bagot|\bfall)|\bme rindo\b|\brenuncio\b"
    ),
    supposed=r"\b(?:podría|podríamos|pudiera|sería|haría|llamaría|usaría|ejecutaría|utilizaría|habría|hubiera|quizás?|tal vez|hipotétic\w+|supon(?:gamos|iendo)|imagin\w+|en teoría|tendría)\b|\bsi (?:pudiera|fuera|tuviera)\b",
    example=r"\bpor ejemplo\b|\bp\. ?ej\b|\bejemplos?\b|\balgo (?:así|como)\b|\bcomo por\b|\bplantilla\b|\bsintaxis\b|\ba modo de\b|\bilustra\w*",
    asked=(
        r"¿[^?]*(?:debo|debería|quiere|quieres|desea|deseas|proced|puedo|hago|ejecut|llamo|contin|confirm|está bien|le parece|te parece|de acuerdo|correct|sigo|adelante|autoriza|permit|lo intento|realizo)[^?]*\?|\b(?:por favor,? )?(?:confirme|confírme(?:me|lo)?|confirma|confírmame)\b|\bsi (?:usted )?(?:lo )?(?:desea|quiere|quieres|deseas|está de acuerdo|confirma|autoriza)\b|\bespero su (?:confirmación|aprobación|permiso)\b|\bcon su permiso\b|\bdígame si (?:debo|quiere|procedo)\b"
    ),
    described=(
        r"\b(?:herramienta|función|api|método|comando)\b[^.;:]{0,40}\b(?:devuelve|toma|acepta|obtiene|recibe|requiere|permite|sirve|se usa|se utiliza|proporciona|calcula|envía)\b|\b(?:herramientas|funciones) disponibles\b|\b(?:uso|firma|documentación|referencia)\b\s*[:：]?$|\btengo acceso a\b|\bpuedo (?:usar|llamar)\b"
    ),
    does=r"[,]? (?:devuelve|toma|acepta|obtiene|recibe|requiere|permite|sirve|se usa|se utiliza|proporciona|calcula|envía|es una)\b",
    outcome=rf"(?:\b(?:pero|y|sin embargo|la {_CALL}|el {_CALL}|{_CALL}|esto|esta|este|eso|el servidor|el servicio|lo cual|que|aunque)\b[^.;]{{0,32}}){_WENT}|^[^\w]*{_WENT}|\bhubo un error\b|\b(?:recibí|obtuve) (?:un |como )?(?:error|tiempo|respuesta)",
    later=r"\b(?:int[eé]nt\w+|vuelv[ae] a intentar\w*|prueb[ae]|reintent[ae]|consulte)[^.;]{0,24}\bmás tarde\b|\bmás tarde\b|\ben unos (?:minutos|momentos)\b|\bvuelv[ae] a intentarlo\b|\binténtelo de nuevo\b|\binténtalo de nuevo\b|\bme rindo\b",
    conditional=r"\b(?:si|cuando|en caso de|una vez que|en cuanto|a menos que|para que|hasta que)\b",
    earlier=r"\b(?:anterior(?:es)?|previ[ao]s?|antes|últim[ao]|primer[ao]?|originalmente)\b",
    correction=r"\b(?:incorrect[oa]s?|equivoc\w+|correg\w+|correcci[oó]n|corrijo|me equivoqué|está mal|mal escrit[oa]|errónea|erróneo|perdón)\b",
    this_call=r"\b(?:esta|este|la siguiente|el siguiente|siguiente|dicha|esa|ese)\b ?(?:llamada|solicitud|petición|consulta|función|herramienta)?",
    soon=r"(?:ahora(?: mismo)?|de nuevo|otra vez|primero|luego|después|inmediatamente|ya|enseguida|a continuación|nuevamente|por favor)",
    it=r"\b(?:lo|la|esta|esto|llamada)\b|\w(?:lo|la)\b",
    contrast=r"^\W*(?:pero|sin embargo|aunque|porque)",
)
