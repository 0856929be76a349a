"""The row contract: what a tool, a call, a sample, a prediction, an episode are, and how they lie in Parquet.

Every room reads and writes these and nothing else: this is the single home of the row types. `json` is the
canonical text, `rows` the benchmark, `answers` what comes of its rows, `episodes` the live dataset, `facts`
what is known of types and sources, `parquet` the columns that the structs' annotations make.
"""

from .answers import (
    ASKED_AGAIN as ASKED_AGAIN,
    ERROR_MODES as ERROR_MODES,
    STAGES as STAGES,
    ErrorMode as ErrorMode,
    Prediction as Prediction,
    Stage as Stage,
    Status as Status,
    Verdict as Verdict,
)
from .episodes import (
    AFTER_EFFECT as AFTER_EFFECT,
    CORE_TEXTS as CORE_TEXTS,
    DATASET as DATASET,
    EXPLICIT as EXPLICIT,
    KINDS as KINDS,
    MAX_STEPS as MAX_STEPS,
    PLEASE_DECIDE as PLEASE_DECIDE,
    TASKS as TASKS,
    At as At,
    CoreText as CoreText,
    Ended as Ended,
    Episode as Episode,
    Fault as Fault,
    Kind as Kind,
    Label as Label,
    LiveRow as LiveRow,
    LiveTool as LiveTool,
    Position as Position,
    Reply as Reply,
    Step as Step,
    Turn as Turn,
    row_hash as row_hash,
    state_hash as state_hash,
)
from .facts import (
    CLEAN as CLEAN,
    COMPONENTS as COMPONENTS,
    TRAITS as TRAITS,
    Channel as Channel,
    Level as Level,
    Method as Method,
    NoCall as NoCall,
    OutputFormat as OutputFormat,
    Pack as Pack,
    Part as Part,
    PerturbationType as PerturbationType,
    Rows as Rows,
    Source as Source,
)
from .json import Json as Json, digest as digest, dumps as dumps, loads as loads
from .parquet import (
    Int32 as Int32,
    JsonObject as JsonObject,
    arrow_schema as arrow_schema,
    arrow_table as arrow_table,
    columns as columns,
    features as features,
    json_fields as json_fields,
    plain_row as plain_row,
    record as record,
)
from .rows import (
    ANY as ANY,
    ASKED_COLUMNS as ASKED_COLUMNS,
    CONTROL_TOOLS as CONTROL_TOOLS,
    GOLD_NOT_STATED as GOLD_NOT_STATED,
    OMIT as OMIT,
    Call as Call,
    Change as Change,
    Component as Component,
    GoldenAnswer as GoldenAnswer,
    Message as Message,
    PublishedSample as PublishedSample,
    Sample as Sample,
    Tool as Tool,
    asked_hash as asked_hash,
    clean_id_hash as clean_id_hash,
    content_hash as content_hash,
    dataset_label as dataset_label,
    fingerprint as fingerprint,
    tool_hash as tool_hash,
    written_hash as written_hash,
)
