# What each step begins with: it is in the folder of the programs, and OUT is where to write.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
OUT=${OUT:-$PWD/out}
mkdir -p "$OUT"
python=${PYTHON:-python3}
failures=0

# The card as it is: the date, the driver, the clocks.
{
    date
    nvidia-smi || true
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit --format=csv || true
} >"$OUT/card.txt" 2>&1

# Runs a command for at most so many seconds, keeps what it says in a file, and says how it went.
step() {
    local name=$1 limit=$2 begin=$SECONDS status
    shift 2
    timeout --kill-after=5 "$limit" "$@" >"$OUT/$name.log" 2>&1
    status=$?
    case $status in
    0) echo "ok      $name ($((SECONDS - begin)) s)" ;;
    124 | 137) echo "TOO LONG $name: more than $limit s" ;;
    *) echo "FAILED  $name: exit code $status, $(tail -n 1 "$OUT/$name.log" | cut -c 1-300)" ;;
    esac
    [ "$status" = 0 ] || failures=$((failures + 1))
    return "$status"
}

# The last line of a step.
finish() {
    echo "$1: $([ "$failures" = 0 ] && echo "all well" || echo "$failures failed"), see $OUT"
    [ "$failures" = 0 ]
}
