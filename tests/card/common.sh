# Every step sources this first: it changes to the folder of the programs, and sets OUT, where to write.
set -uo pipefail
OUT=$(realpath -m "${OUT:-$(dirname "${BASH_SOURCE[0]}")/out}")
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
mkdir -p "$OUT"
python=${PYTHON:-python3}
failures=0

# The card as it is: the date, the driver, the clocks at rest.
{
    date
    nvidia-smi || true
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit --format=csv || true
} >"$OUT/card.txt" 2>&1

# Counts a failure, and says what it was.
failed() {
    echo "FAILED  $*"
    failures=$((failures + 1))
}

# The last line of a file that is not empty.
last_line() { grep -v '^\s*$' "$1" | tail -n 1 | cut -c 1-300; }

# Runs a command for at most so many seconds, keeps what it says in a file, and says how it went.
step() {
    local name=$1 limit=$2 begin=$SECONDS status
    shift 2
    timeout --kill-after=5 "$limit" "$@" >"$OUT/$name.log" 2>&1
    status=$?
    if [ $status = 0 ]; then
        echo "ok      $name ($((SECONDS - begin)) s)"
    elif [ $((SECONDS - begin)) -ge "$limit" ]; then
        failed "$name takes more than $limit s"
    else
        failed "$name: exit code $status, $(last_line "$OUT/$name.log")"
    fi
    return $status
}

# Writes what the card does every second to a file, until `kill $watcher`.
watch_card() {
    nvidia-smi --query-gpu=timestamp,utilization.gpu,utilization.memory,memory.used,temperature.gpu,power.draw,pstate,clocks.sm,clocks.mem \
        --format=csv -lms 500 >"$OUT/$1.csv" 2>&1 &
    watcher=$!
}

# The last line of a step.
finish() {
    if [ $failures = 0 ]; then echo "$1: all well, see $OUT"; else echo "$1: $failures failed, see $OUT"; fi
    [ $failures = 0 ]
}
