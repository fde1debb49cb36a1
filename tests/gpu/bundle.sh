#!/bin/sh
# Runs in the folder that ./dev gpu-bundle makes, on a machine with a GPU, its driver and NVRTC:
#   ./run.sh [small]
# Fixtures, the bits of math=exact against those recorded on the emulated driver, and timings
# (small: of shapes that the emulated driver can run). Takes minutes at most; ends with 0 where all
# is well, 3 where something is missing, else 1.
cd "$(dirname "$0")" || exit 1
export KRAIT_CACHE_DIR="$PWD/cache"
mkdir -p logs
failed=0 missing=0
# Seconds for everything together; the emulated driver takes longer.
start=$(date +%s) limit=300
[ "${1:-}" != small ] || limit=1800
device=cuda:0

row() { printf '%-34s %s\n' "$1" "$2"; }

# step NAME COMMAND...: a row of the table, by the exit status and the last line that was printed.
step() {
  name=$1 log="logs/$(echo "$1" | tr ' /' '__').txt"
  shift
  left=$((start + limit - $(date +%s)))
  if [ $left -le 0 ]; then
    row "$name" "FAILED: no time is left of $limit seconds"
    failed=1
  elif timeout $left "$@" >"$log" 2>&1; then
    row "$name" "$(tail -n 1 "$log")"
  else
    status=$?
    row "$name" "FAILED ($status; $log): $(tail -n 1 "$log" | cut -c1-100)"
    if [ $status = 3 ]; then missing=1; else failed=1; fi
  fi
}

./krait info >logs/info.txt 2>&1
grep -E '^  (cuda:|CUDA driver:|NVRTC:)' logs/info.txt | cut -c1-150
if ! grep -q '^  cuda:0: .*compute capability' logs/info.txt; then
  echo "there is no GPU here that krait can use" >&2
  exit 3
fi
check() { name=$1; shift; step "$name" ./krait check fixtures/*.safetensors --device $device --dtype f32 "$@"; }
check "fixtures"
check "fixtures, segments=3" --schedule segments=3
check "fixtures, plan=step" --schedule plan=step
check "bits of math=exact" --schedule "$(cat exact.schedule)" --bits exact.bits.json

bench() { name=$1; shift; step "bench $name" ./krait bench --device $device "$@"; grep ' ms ' "$log"; return 0; }
if [ "${1:-}" = small ]; then
  bench "ssd, small" --block ssd --heads 2 --headdim 8 --d-state 8 --seqlen 40 --repeat 1
else
  bench "ssd b8 t2048 h80" --block ssd --batch 8 --seqlen 2048 --heads 80 --headdim 64 --d-state 128
  bench "mamba3_scan b8 t2048 h32" --block mamba3_scan --batch 8 --seqlen 2048 --heads 32 \
    --headdim 64 --d-state 128 --passes forward
  bench "mamba2 d_model 768" --block mamba2 --batch 8 --seqlen 2048 --d-model 768 \
    --headdim 64 --d-state 128 --passes forward,backward,step
fi
row "seconds" "$(($(date +%s) - start))"
[ $failed = 0 ] || exit 1
[ $missing = 0 ] || exit 3
echo "all is well"
