# Every visit sources this first. A visit has two parts, `first` and `second`, each with a time limit of its own. It is a list of steps,
# and whatever happens to one of them the next is tried.
#
# What it finds is in the folder OUT as soon as it is known, so that a visit that is cut short has it too:
#   summary.txt   how each step went, in at most 100 lines; the visit prints it in the end
#   log.txt       what the steps have printed, and running.log what the present one has
#   card.txt      the card: its name, driver and clocks
# and what a visit adds, which makes eight files at most.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
visit=$(basename "$0")
part=${1:-}
case $part in
first) limit=350 ;;
second) limit=230 ;;
*) echo "usage: $visit first|second" >&2 && exit 2 ;;
esac

# All of these can be set: the time in seconds, the folder, the machine, a Python with PyTorch 2.11.
limit=${LIMIT:-$limit}
OUT=$(realpath -m "${OUT:-$here/out/$visit-$part}")
gpu=${GPU:-real}
python=${PYTHON:-python3}
# PATIENCE multiplies the limits of the steps, for computers that have much else to do.
# With REHEARSE each step is as short as it can be, to see on any computer that the scripts work. RUNNER is put before each program.
rehearse=${REHEARSE:-}
# Whose times are measured to make and judge a model. In a rehearsal a simulated card's: stand-ins would take minutes.
measured=${rehearse:+sim:t4}
measured=${measured:-$gpu}
read -ra runner <<<"${RUNNER:-}"

# What the second part and later visits need of the first. It need not be there.
kept=${KEPT:-$here/kept}
# How much of a step's output is kept in the log, in bytes: its beginning and its end.
head_bytes=150000 tail_bytes=100000
cd "$here" || exit 2
mkdir -p "$OUT" "$kept" && scratch=$(mktemp -d) || exit 2
rm -f "$OUT"/{summary.txt,log.txt,card.txt,running.log}
lines=() notes=() failures=0 missing=0 watcher=

left() { echo $((limit - SECONDS)); }

# The first number, in a rehearsal the second.
full_or_short() { if [ -z "$rehearse" ]; then echo "$1"; else echo "$2"; fi; }

# Writes the summary anew, so that it is there whenever the visit ends.
summarize() {
    local ended="$visit $part: $failures failed, $missing left out, ${SECONDS} s of $limit"
    {
        {
            head -n 1 "$OUT/card.txt"
            printf '%s\n' ${lines[@]+"${lines[@]}"} ${notes[@]+"${notes[@]}"}
        } | cut -c 1-115 >"$scratch/lines"
        head -n 97 "$scratch/lines"
        [ "$(wc -l <"$scratch/lines")" -le 97 ] || echo "… and more, in log.txt"
        echo "$ended"
    } >"$scratch/summary"
    mv "$scratch/summary" "$OUT/summary.txt"
}

# A line of the summary, which is shown at once too.
tell() {
    lines+=("$*")
    echo "$*" | cut -c 1-200
    summarize
}

failed() {
    failures=$((failures + 1))
    tell "FAILED    $*"
}

left_out() {
    missing=$((missing + 1))
    tell "left out  $*"
}

# Lines for the end of the summary, at most so many, from standard input.
note() {
    local line
    while IFS= read -r line; do notes+=("$line"); done < <(head -n "$1")
    summarize
}

# The last line of a file that is not empty, or that matches.
last_line() { grep "${2:-[^[:space:]]}" "$1" | tail -n 1 | cut -c 1-300; }

# Puts what a step has printed into the log, and keeps it for the script in $scratch/NAME.
keep_log() {
    local file="$OUT/running.log"
    {
        echo "== $1"
        if [ "$(wc -c <"$file")" -le $((head_bytes + tail_bytes)) ]; then
            cat "$file"
        else
            head -c "$head_bytes" "$file"
            printf '\n… left out …\n'
            tail -c "$tail_bytes" "$file"
        fi
    } >>"$OUT/log.txt"
    mv "$file" "$scratch/$1"
}

# attempt NAME SECONDS COMMAND… runs a command for at most so long, and never longer than the visit has left. It returns the command's
# exit code, and 125 if no time was left for it.
attempt() {
    local name=$1 most=$(($2 * ${PATIENCE:-1})) status
    shift 2
    took=0 begin=$SECONDS
    [ "$most" -le $(($(left) - 4)) ] || most=$(($(left) - 4))
    if [ "$most" -lt 3 ]; then
        : >"$scratch/$name"
        return 125
    fi
    timeout --kill-after=3 "$most" ${runner[@]+"${runner[@]}"} "$@" >"$OUT/running.log" 2>&1
    status=$?
    took=$((SECONDS - begin))
    keep_log "$name"
    return $status
}

# The same, and tells how it went. SAY is what the line looks like that the summary shows of it, by default the last one.
step() {
    local name=$1 status
    attempt "$@"
    status=$?
    case $status in
    0) tell "ok        $name ($took s): $(last_line "$scratch/$name" "${SAY:-}")" ;;
    125) left_out "$name: no time is left" ;;
    124 | 137) failed "$name: stopped after $took s: $(last_line "$scratch/$name")" ;;
    *) failed "$name: exit code $status: $(last_line "$scratch/$name" "${SAY:-}")" ;;
    esac
    return $status
}

# Whether there is a command; if not, that is told.
is_there() {
    command -v "$1" >/dev/null || { left_out "$2: there is no $1" && false; }
}

# Whether the Python has a PyTorch that sees the card. It is asked once.
has_pytorch() {
    if [ -z "${pytorch:-}" ]; then
        pytorch=$(timeout 60 "$python" -c 'import torch
print("PyTorch", torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version())
torch.zeros(1, device="cuda")' 2>&1) && tell "ok        $(tail -n 1 <<<"$pytorch")" || pytorch="no: $(tail -n 1 <<<"$pytorch")"
    fi
    [[ $pytorch != no:* ]] || { left_out "$1: no PyTorch, ${pytorch#no: }" && false; }
}

# Writes the card's clocks, power and memory to OUT/FILE, twice a second, until the visit ends.
watch_card() {
    is_there nvidia-smi "$1" || return
    timeout "$limit" nvidia-smi --format=csv -lms 500 \
        --query-gpu=timestamp,utilization.gpu,memory.used,temperature.gpu,power.draw,pstate,clocks.sm,clocks.mem \
        >"$OUT/$1" 2>&1 &
    watcher=$!
}

# The profile of this card: from the first part, or measured now.
calibrated() {
    if ! [ -s "$kept/card.profile" ] || ! [ -s "$kept/card.host" ]; then
        step calibrate 150 ./calibrate --gpu "$measured" --output "$kept/card.profile" --host-output "$kept/card.host" || return
    fi
    cp "$kept"/card.{profile,host} "$OUT/"
}

# Ends the visit, also when it is told to stop.
finish() {
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    if [ -s "$OUT/running.log" ]; then keep_log "what was running"; fi
    rm -f "$OUT/running.log"
    summarize
    echo
    cat "$OUT/summary.txt"
    rm -rf "$scratch"
    [ $failures = 0 ]
}
trap 'failed "the visit was told to stop"; finish; exit 1' TERM INT

# The card as it is, in the first line too.
[ ! -s commit.txt ] || COMMIT=$(cat commit.txt)
{
    facts=$(timeout 10 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    echo "$visit $part on ${facts:-a computer without nvidia-smi (--gpu $gpu)}, $(date -u +%F)${COMMIT:+, commit $COMMIT}"
    timeout 10 nvidia-smi
    timeout 10 nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit --format=csv
    uname -srm
    nproc
} >"$OUT/card.txt" 2>&1
summarize
