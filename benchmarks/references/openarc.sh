#!/usr/bin/env bash
# Install OpenArc, for `make bench-openarc`: into the folder given, with the Python given, from a
# clone of https://github.com/SearchSavior/OpenArc.
set -euo pipefail
folder=$1
python=$2
clone=${3:?say where a clone of OpenArc is: OPENARC=...}

commit=92e6e1d439fc91f92c4cefbaccd5564a4fd7bf44
here=$(dirname "$0")

rm -rf "$folder/source" "$folder/version"
mkdir -p "$folder/source"
git -C "$clone" archive "$commit" src LICENSE | tar -x -C "$folder/source"
# It asks for Python 3.12, but its source needs no more than 3.11, so it is run from where it is.
"$python" -m venv --clear "$folder/.venv"
"$folder/.venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --requirement "$here/openarc.txt"

# The last one: it is installed where this is.
echo "commit ${commit:0:12}, on $("$folder/.venv/bin/python" -c \
    'from importlib.metadata import version; print("openvino-genai", version("openvino-genai"))')" \
    > "$folder/version"
