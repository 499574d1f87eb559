#!/bin/sh
# Submits Spark's example that computes pi with the spark.* keys of one of the files: ./try.sh standalone.properties
set -eu
keys=$(mktemp)
trap 'rm -f "$keys"' EXIT
grep '^spark\.' "$1" | grep -v '^spark\.session=' >"$keys"
spark=$(python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')
"$spark/bin/spark-submit" --properties-file "$keys" "$spark/examples/src/main/python/pi.py" 10
