#!/bin/sh
# Steps for every CI system; action.yml runs the same.
#   ci.sh validate CELL [PROGRAM...]   check the cell and the programs; without one, its job
#   ci.sh with-cell CELL COMMAND...    start the cell, run the command beside it, end the cell
# UNDERSTUDY_REPORTS      folder of understudy.sarif and understudy.xml; default: this one
# UNDERSTUDY_RUN_OPTIONS  more options of `understudy run`, e.g. --ephemeral
# The command finds all addresses of the cell in the file that UNDERSTUDY_READY_FILE names.
set -eu

WAIT_SECONDS=300

usage() {
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

end_cell() {
  kill "$cell_pid" 2>/dev/null || true
  wait "$cell_pid" || true
  rm -rf "$folder"
}

[ $# -ge 2 ] || usage
step=$1
cell=$2
shift 2
case $step in
validate)
  reports=${UNDERSTUDY_REPORTS:-.}
  mkdir -p "$reports"
  understudy check "$cell"
  understudy validate "$@" --cell "$cell" --sarif "$reports/understudy.sarif" --junit "$reports/understudy.xml"
  ;;
with-cell)
  [ $# -ge 1 ] || usage
  folder=$(mktemp -d)
  UNDERSTUDY_READY_FILE=$folder/ready.json
  export UNDERSTUDY_READY_FILE
  # shellcheck disable=SC2086  # several options
  understudy run "$cell" --no-hmi --ready-file "$UNDERSTUDY_READY_FILE" ${UNDERSTUDY_RUN_OPTIONS:-} >"$folder/log" 2>&1 &
  cell_pid=$!
  trap end_cell EXIT
  waited=0
  until [ -s "$UNDERSTUDY_READY_FILE" ]; do
    if ! kill -0 "$cell_pid" 2>/dev/null || [ "$waited" -ge "$WAIT_SECONDS" ]; then
      cat "$folder/log" >&2
      echo "ci.sh: the cell $cell did not start within $WAIT_SECONDS s; try: understudy run $cell" >&2
      exit 1
    fi
    sleep 1
    waited=$((waited + 1))
  done
  "$@"
  ;;
*)
  usage
  ;;
esac
