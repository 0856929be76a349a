#!/bin/sh
# Prints a Python that runs and can make environments: of the versions named, else the first from 3.11 on.
# A shim of pyenv may stand in the PATH and run nothing: pyenv's and uv's own interpreters are looked at, too.
for version in ${*:-3.11 3.12 3.13 3.14}; do
    for python in "python$version" \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version"*/bin/python \
        "${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/uv/python}/cpython-$version"*/bin/python3 \
        python3 python; do
        "$python" -c "
import ensurepip, sys
if '%d.%d' % sys.version_info[:2] != '$version':
    sys.exit(1)
print(sys.executable)" 2>/dev/null && exit 0
    done
done
exit 1
