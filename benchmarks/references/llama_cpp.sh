#!/usr/bin/env bash
# Build llama.cpp's server, for `make bench-llama-cpp`: into the folder given. Needs a C++ compiler
# and the Python given, which has pip.
set -euo pipefail
folder=$1
python=$2

# Its source as this package carries it.
version=0.3.36
package=llama_cpp_python-$version

rm -rf "$folder/source" "$folder/tools" "$folder/version"
mkdir -p "$folder/source"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps \
    --no-binary llama-cpp-python --dest "$folder" "llama-cpp-python==$version"
tar -xzf "$folder/$package.tar.gz" -C "$folder/source" --strip-components=3 \
    "$package/vendor/llama.cpp"
"$python" -m venv "$folder/tools"
"$folder/tools/bin/python" -m pip install --quiet --disable-pip-version-check cmake ninja
export PATH="$PWD/$folder/tools/bin:$PATH"

# GCC's ldtilecfg does not say that it reads all of its operand (amxtileintrin.h), so the stores
# that set up AMX would be dropped as dead, and the server would crash on processors that have it.
cmake -S "$folder/source" -B "$folder/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-fno-dse -fno-tree-dse" \
    -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF -DLLAMA_OPENSSL=OFF \
    -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF
nice -n 19 cmake --build "$folder/build" --target llama-server --parallel "$(nproc)"

# The last one: it is installed where this is.
echo "as in llama-cpp-python $version" > "$folder/version"
