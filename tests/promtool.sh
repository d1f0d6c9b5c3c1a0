#!/usr/bin/env bash
# Get promtool out of Debian's package of Prometheus, as any user and without installing it:
# tests/promtool.sh FOLDER
set -euo pipefail
mkdir -p "$1"
cd "$1"
trap 'rm -rf lists archives ./*.deb promtool.new' EXIT
# Lists of our own where the system's are missing or old: only root may renew those.
apt=(apt-get --quiet --quiet -o Acquire::Retries=0)
own=("${apt[@]}" -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache::archives=$PWD/archives")
mkdir -p lists/partial archives/partial
"${apt[@]}" download prometheus || { "${own[@]}" update && "${own[@]}" download prometheus; }
dpkg-deb --fsys-tarfile prometheus_*.deb | tar --extract --to-stdout ./usr/bin/promtool > promtool.new
chmod +x promtool.new
mv promtool.new promtool
