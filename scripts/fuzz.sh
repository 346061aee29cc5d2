#!/usr/bin/env bash
# Runs every fuzz target of the workspace, one after the other, for the given time each: scripts/fuzz.sh 10s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=0
while IFS=: read -r file name; do
	count=$((count + 1))
	go test -run='^$' -fuzz="^$name\$" -fuzztime="$1" "./$(dirname "$file")" </dev/null
done < <(git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go' | sed 's/:func /:/')
echo "$count fuzz targets ran for $1 each"
