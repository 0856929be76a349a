"""The row contract: what a tool, a call, a sample, a prediction, an episode are, and how they lie in Parquet.

Every room reads and writes these and nothing else: this is the single home of the row types. `json` is the
canonical text, `rows` the benchmark, `answers` what comes of its rows, `episodes` the live dataset, `facts`
what is known of types and sources, `parquet` the columns that the structs' annotations make, `running` the
faults of running systems.
"""

from .answers import *
from .episodes import *
from .facts import *
from .json import *
from .parquet import *
from .rows import *
