"""Times krait beside tests/reference/torch_baseline.py on the same work, in turns, and prints a table of ratios.

python3 tests/bench/compare.py KRAIT [--ops ssd,mamba3,block] [--chunks 32,64,128,256] [--rounds 2] [--repeat 5]
    [--threads 2] [--batch 1 --seqlen 2048 --heads 24 --headdim 64 --d-state 128] [--schedule TEXT] [--python FILE] [--json]

Every round runs krait and then the baseline with each chunk, so that both see the same machine. What counts is the best round's
median, for both, and of the baseline the best chunk. Exit status: 0; 1, a run failed; 2, wrong use; 3, no torch (krait alone is timed).
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "reference", "torch_baseline.py")
KEYS = ("forward_ms", "forward_backward_ms")
LABELS = {"forward_ms": "forward", "forward_backward_ms": "forward+backward"}


def python_with_torch(wanted):
    """The first interpreter that has torch, or None."""
    for candidate in [wanted] if wanted else [sys.executable, "/usr/bin/python3", shutil.which("python3")]:
        if not candidate:
            continue
        try:
            if subprocess.run([candidate, "-c", "import torch"], capture_output=True).returncode == 0:
                return candidate
        except OSError:
            pass
    return None


def run_json(command):
    """The JSON line that the command prints, or what it said on stderr."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return None, str(error)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        return None, said[-1] if said else f"exit status {done.returncode}"
    return json.loads(done.stdout.strip().splitlines()[-1]), None


def krait_command(o, op):
    block = {"ssd": "ssd", "mamba3": "mamba3_scan", "block": "mamba2"}[op]
    command = [o.krait, "bench", "--json", "--dtype", "f32", "--block", block]
    if op == "block":  # as the baseline has it: twice as wide inside
        command += ["--d-model", str(o.heads * o.headdim // 2), "--expand", "2"]
    else:
        command += ["--heads", str(o.heads)]
    command += ["--headdim", str(o.headdim), "--d-state", str(o.d_state), "--batch", str(o.batch), "--seqlen", str(o.seqlen)]
    return command + ["--threads", str(o.threads), "--repeat", str(o.repeat), "--schedule", o.schedule]


def baseline_command(o, python, op, chunk):
    sizes = dict(batch=o.batch, seqlen=o.seqlen, heads=o.heads, headdim=o.headdim, dstate=o.d_state, chunk=chunk,
                 threads=o.threads, repeat=o.repeat)
    return [python, BASELINE, "--op", op] + [part for key, value in sizes.items() for part in (f"--{key}", str(value))]


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def measure(o, python):
    """By op: the best of krait, of the baseline with its chunk, krait's last report, and errors."""
    results = {op: {"krait": {}, "baseline": {}, "chunk": {}, "report": None, "errors": []} for op in o.ops}
    for number in range(o.rounds):
        for op, result in results.items():
            progress(f"round {number + 1} of {o.rounds}: {op}, krait")
            report, error = run_json(krait_command(o, op))
            if error:
                result["errors"].append(f"krait, {op}: {error}")
            else:
                result["report"] = report
                for key in KEYS:
                    result["krait"][key] = min(result["krait"].get(key, math.inf), report[key])
            for chunk in o.chunks if python else []:
                progress(f"round {number + 1} of {o.rounds}: {op}, baseline, chunk {chunk}")
                report, error = run_json(baseline_command(o, python, op, chunk))
                if error:
                    result["errors"].append(f"baseline, {op}, chunk {chunk}: {error}")
                    continue
                for key in KEYS:
                    if report[key] < result["baseline"].get(key, math.inf):
                        result["baseline"][key], result["chunk"][key] = report[key], chunk
    progress("")
    return results


def table(results):
    print(f"{'op':8}{'pass':18}{'krait ms':>10}{'baseline ms':>13}{'chunk':>7}{'ratio':>8}")
    number = lambda value, width, digits: f"{value:{width}.{digits}f}" if value is not None else f"{'-':>{width}}"
    for op, result in results.items():
        for key in KEYS:
            ours, theirs = result["krait"].get(key), result["baseline"].get(key)
            ratio = theirs / ours if ours and theirs else None
            print(f"{op:8}{LABELS[key]:18}{number(ours, 10, 2)}{number(theirs, 13, 2)}{str(result['chunk'].get(key, '-')):>7}"
                  f"{number(ratio, 8, 2)}")
    for op, result in results.items():
        if result["report"] and "memory" in result["report"]:
            memory = result["report"]["memory"]
            print(f"{op}: temporaries of forward+backward {memory['temporaries_bytes'] / 2**20:.1f} MiB, "
                  f"inputs, outputs and gradients {memory['interface_bytes'] / 2**20:.1f} MiB")
    limits = [result["report"]["limits"] for result in results.values() if result["report"]]
    if limits:
        best = {key: max(each[key] for each in limits) for key in limits[0]}
        print(f"limits: memory {best['bandwidth_gb_s']:.1f} GB/s, arithmetic {best['arithmetic_gflop_s']:.1f} GFLOP/s, "
              f"BLAS {best['blas_gflop_s']:.1f} GFLOP/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krait")
    parser.add_argument("--ops", default="ssd,mamba3,block")
    parser.add_argument("--chunks", default="32,64,128,256")
    parser.add_argument("--schedule", default="")
    parser.add_argument("--python", help="interpreter of the baseline")
    parser.add_argument("--json", action="store_true")
    sizes = dict(rounds=2, repeat=5, threads=2, batch=1, seqlen=2048, heads=24, headdim=64)
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--d-state", type=int, default=128)
    o = parser.parse_args()
    o.ops = o.ops.split(",")
    for op in o.ops:
        if op not in ("ssd", "mamba3", "block"):
            parser.error(f"--ops has {op}; allowed: ssd, mamba3, block")
    try:
        o.chunks = [int(chunk) for chunk in o.chunks.split(",")]
    except ValueError:
        parser.error(f"--chunks is {o.chunks}; allowed: numbers with commas between")
    for name in [*sizes, "d_state"]:
        if getattr(o, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is {getattr(o, name)}; allowed: 1 and up")
    for chunk in o.chunks:
        if chunk < 1 or o.seqlen % chunk:
            parser.error(f"--chunks has {chunk}; allowed: divisors of --seqlen, {o.seqlen}")

    python = python_with_torch(o.python)
    if not python:
        where = f"{o.python} has no torch" if o.python else "no python3 here has torch (Debian: apt install python3-torch)"
        print(f"compare: {where}; krait is timed alone", file=sys.stderr)
    results = measure(o, python)
    for result in results.values():
        for error in result["errors"]:
            print(f"compare: {error}", file=sys.stderr)
    if o.json:
        print(json.dumps({op: {key: value for key, value in result.items()} for op, result in results.items()}))
    else:
        table(results)
    if any(result["errors"] for result in results.values()):
        return 1
    return 0 if python else 3


if __name__ == "__main__":
    sys.exit(main())
