#!/usr/bin/env bash
# Runs every script in every scenario, one after the other and the whole row again in each round, so that a machine
# that drifts drifts for all. Writes the medians over rounds as one table, k6/results/all.md.
#   k6/run-all.sh [-e ROUNDS=3] [-e RESULTS=k6/results] [-e KEY=VALUE]...      the rest goes to k6
# K6 names another k6. Exits with 1 when a run failed; its figures are not in the table.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=3
results=k6/results
pass=()
while [ $# -gt 0 ]; do
  case "$1 ${2-}" in
    '-e ROUNDS='*) rounds=${2#ROUNDS=} ;;
    '-e RESULTS='*) results=${2#RESULTS=} ;;
    '-e '*=*) pass+=(-e "$2") ;;
    *) echo "usage: k6/run-all.sh [-e KEY=VALUE]..." >&2; exit 2 ;;
  esac
  shift 2
done

runs=()
for lines in 2 50; do
  for style in rest grpc graphql graphql-persisted; do runs+=("reserve.$style LINES=$lines"); done
done
for style in rest rest-bff graphql graphql-persisted grpc-web grpc; do runs+=("detail.$style"); done
for view in status full history; do
  for style in rest grpc graphql; do runs+=("order.$style VIEW=$view"); done
done
for times in 1 10; do
  for style in rest grpc; do runs+=("list.$style TIMES=$times"); done
done
# These need a thousand books: start the server with --books 1000.
for style in rest grpc; do runs+=("bulk-get.$style"); done
runs+=("bulk-stream.rest")
for batch in 1 10 100; do runs+=("bulk-stream.grpc BATCH=$batch"); done
for ndjson in 0 1; do runs+=("bulk-post.rest NDJSON=$ndjson"); done
runs+=("bulk-post.grpc")
for batch in 1 100; do runs+=("bulk-post.grpc BATCH=$batch"); done
for style in rest rest-gzip rest-304 grpc; do runs+=("page.$style"); done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
failed=0
for round in $(seq "$rounds"); do
  for run in "${runs[@]}"; do
    read -r script knob <<<"$run"
    mkdir -p "$folder/run"
    # K6 may be more than one word.
    if ${K6:-k6} run --quiet ${knob:+-e "$knob"} ${pass[@]+"${pass[@]}"} -e RESULTS="$folder/run" "k6/$script.js"; then
      sed -n 3p "$folder"/run/*.md >>"$folder/rows"
      head -n 1 "$folder"/run/*.md >"$folder/head"
    else
      echo "failed in round $round: k6/$script.js $knob" >&2
      failed=1
    fi
    rm -r "$folder/run"
  done
done

[ -s "$folder/rows" ] || exit 1
{
  printf '%s op/s, least to most |\n' "$(cat "$folder/head")"
  echo '|---|---|---:|---:|---:|---:|---:|---:|---:|---:|'
  # Rows of one scenario and style belong together, in the order in which they first came.
  awk -F ' *[|] *' '
    function sorted(values, list,    n, i, j, swap) {
      n = split(values, list, " ")
      for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) {
        swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap
      }
      return n
    }
    function median(values,    list, n, places) {
      if (values ~ /n\/a/) return "n/a"
      n = sorted(values, list)
      places = index(list[1], ".") ? length(list[1]) - index(list[1], ".") : 0
      return sprintf("%." places "f", (list[int((n + 1) / 2)] + list[int((n + 2) / 2)]) / 2)
    }
    {
      row = $2 " | " $3
      if (!(row in rates)) order[++rows] = row
      rates[row] = rates[row] " " $4
      for (i = 4; i < NF; i++) values[row, i] = values[row, i] " " $i
      columns = NF - 1
    }
    END {
      for (r = 1; r <= rows; r++) {
        printf "| %s", order[r]
        for (i = 4; i <= columns; i++) printf " | %s", median(values[order[r], i])
        n = sorted(rates[order[r]], list)
        printf " | %s to %s |\n", list[1], list[n]
      }
    }' "$folder/rows"
} >"$results/all.md"
cat "$results/all.md"
exit "$failed"
