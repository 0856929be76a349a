"""What Great Expectations names and the gate does not use is imported when it is used."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from robustbench_tc.audits.expectations.gx import quiet
quiet()
heavy = ("scipy.stats", "altair")
assert not any(name in sys.modules for name in heavy), "imported though nobody used it"
import scipy
assert "stats" not in vars(scipy)
from great_expectations.expectations.core import expect_column_kl_divergence_to_be_less_than as user
assert type(user.stats) is type(user.alt) is not type(sys), "Great Expectations names others now"
"""


def test_great_expectations_is_imported_without_what_the_gate_does_not_use() -> None:
    pytest.importorskip("great_expectations", reason="needs the extra audit (make env)")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


IN_THE_BLOCK = """
import sys
from robustbench_tc.audits.expectations.postponed import postponed
import json.tool
kept = json.tool
try:
    with postponed("json.tool", "json.scanner", "xml.dom.minidom", "colorsys"):
        import colorsys, json.tool, xml.dom
        assert json.tool is kept and json.scanner.py_make_scanner  # was there
        held = xml.dom.minidom
        import xml.dom.minidom
        assert held is xml.dom.minidom and not hasattr(held, "nothing")
        assert colorsys.hls_to_rgb(0, 1, 0) == (1, 1, 1)
        import colorsys as again
        assert type(again) is type(sys)
        raise KeyError
except KeyError:
    pass  # raised above: the block ends also so
import xml.dom.minidom as real
assert type(real) is type(sys) and real.parseString is held.parseString
"""


def test_after_the_block_everybody_gets_the_module() -> None:
    done = subprocess.run([sys.executable, "-c", IN_THE_BLOCK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
