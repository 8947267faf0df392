#!/bin/bash
# Every command when its reader has gone, when the disk is full, and at Ctrl-C.
# Usage: ends_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

/usr/bin/python3 - "$roost" "$data" <<'PY' || fail "see above"
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

roost, data = sys.argv[1:]
host = ["--place", "host", "--threads", "2"]
random.seed(1)
Path("a.csv").write_text("id,x\n" + "".join(f"{i % 9},{i}\n" for i in range(1000)))
Path("b.csv").write_text("id,y\n" + "".join(f"{i},{i}\n" for i in range(9)))
Path("c.xyz").write_text("".join(f"{random.random()} {random.random()} {random.random()}\n" for _ in range(500)))
Path("sky.csv").write_text("ra,dec,magnitude\n" + "".join(
    f"{random.uniform(0, 40)},{random.uniform(-20, 20)},{random.uniform(2, 7)}\n" for _ in range(2000)))
Path("field.csv").write_text("x,y\n" + "".join(f"{random.uniform(0, 640)},{random.uniform(0, 480)}\n" for _ in range(20)))
Path("picture.pgm").write_bytes(b"P5\n64 48\n255\n" + bytes(
    (x // 7 * 37 + y // 5 * 91 + x // 7 * (y // 5) * 53) % 256 for y in range(48) for x in range(64)))
Path("mesh.obj").write_bytes(Path(data, "cube.obj").read_bytes())
Path("out").mkdir()
subprocess.run([roost, "stars", "build", "sky.csv", "--out", "sky", *host], check=True, stdout=subprocess.DEVNULL)

# What each command does in no time, with no answer (3) at most; what it writes besides; and what takes long.
match = ["match", "picture.pgm", "picture.pgm", *host]
solids = ["voxels", "mesh.obj", "sphere", *host]
stars = ["stars", "solve", "sky", "field.csv", "--size", "640x480", *host]
quick = [
    ["--help"], ["--version"], ["--generate", "man"], ["info"],
    ["bench", "--log2n", "10", "--table", "frozen_map", "--reps", "1", *host],
    ["reproduce", "--only", "two-kernel", "--share", "0.001", "--reps", "1", *host],
    ["join", "a.csv", "b.csv", "--on", "id", *host], ["unique", "a.csv", *host],
    ["stars", "build", "sky.csv", "--out", "sky2", *host], stars, match,
    [*solids, "--grid", "16", "--reps", "1", "--no-picture"],
    ["voxels", "mesh.obj", "--grid", "16", "--reps", "1", "--no-picture", *host],
    ["lidar", "c.xyz", "--reps", "1", *host], ["stress", "--seconds", "0.1", *host],
]
into_files = [
    ["join", "a.csv", "b.csv", "--on", "id", "-o", "fresh", *host], ["unique", "a.csv", "-o", "fresh", *host],
    ["stars", "build", "sky.csv", "--out", "fresh", *host], [*match, "--out", "fresh"],
    [*solids, "--grid", "64", "--reps", "1", "--out", "fresh"],
    ["voxels", "mesh.obj", "--grid", "64", "--reps", "1", "--out", "fresh", *host],
    ["lidar", "c.xyz", "--reps", "1", "--picture", "fresh.png", *host],
]
os.mkfifo("slow")
slow = [
    ["bench", "--log2n", "24", "--reps", "1000", *host], ["reproduce", *host],
    ["join", "slow", "b.csv", "--on", "id", *host], ["unique", "slow", *host],
    ["stars", "build", "slow", "--out", "sky3", *host], [*match, "--reps", "1000", "--m", "1000000"],
    [*solids, "--grid", "4096", "--reps", "1000", "--out", "out"],
    ["voxels", "mesh.obj", "--grid", "1024", "--reps", "1000", "--out", "out", *host],
    ["lidar", "--generate", "100", "--reps", "1000", *host], ["stress", "--seconds", "1000", *host],
]
bad = 0


def expect(good, what, command, run):
    global bad
    if not good:
        bad += 1
        print(f"FAILED: {what}, {' '.join(command)}: exit code {run.returncode}, stderr {run.stderr!r}")


def is_line(text, start=b"roost: "):
    return text.startswith(start) and text.count(b"\n") == 1


for command in quick:
    run = subprocess.run([roost, *command], capture_output=True, timeout=120, check=False)
    expect(run.returncode in (0, 3) and run.stdout and not run.stderr, "as it is", command, run)
    with open("/dev/full", "wb") as full:
        run = subprocess.run([roost, *command], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    expect(run.returncode == 1 and is_line(run.stderr, b"roost: standard output: cannot be written"), "/dev/full", command, run)
    gone, pipe = os.pipe()
    os.close(gone)
    run = subprocess.run([roost, *command], stdout=pipe, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(pipe)
    expect(run.returncode == -signal.SIGPIPE and not run.stderr, "a broken pipe", command, run)


# A wrong command line, and words of its only line.
for words, command in (
    (b"roost: unique: --top: -1 is negative; give a number without a minus (see roost unique --help)", ["unique", "-n", "-1", "a.csv"]),
    (b"roost: unique: --top: 0 lines; give 1 or more", ["unique", "-n", "0", "a.csv"]),
    (b"roost: unique: --top: give a value", ["unique", "a.csv", "-n"]),
    (b"roost: unique: --first --second: no such option or argument", ["unique", "--first", "a.csv", "--second"]),
    (b"roost: stars solve: --odd --even: no such", ["stars", "solve", "sky", "field.csv", "--odd", "--even"]),
    (b"roost: join: --odd: no such", ["join", "--odd"]),
    (b"roost: join: B is required", ["join", "a.csv"]),
    (b"roost: --odd: no such option or argument (see roost --help)", ["--odd"]),
    (b"roost: stars: a command is missing; commands: build, solve (see roost stars --help)", ["stars"]),
    (b"roost: '' is not a command; commands: info", [""]),
    (b"roost: bench: --reps: Value 0 not in range", ["bench", "--reps", "0"]),
    (b"roost: bench: --tabel x: no such option or argument; did you mean --table? (see", ["bench", "--tabel", "x"]),
    (b"roost: stars: 'slove' is not a command; commands: build, solve; did you mean solve? (see", ["stars", "slove"]),
    (b"roost: join: --kind: full not in {anti,inner,left,outer,right,semi}; did you mean outer? (see",
     ["join", "--kind", "full", "a.csv", "b.csv"]),
    (b"roost: join: --kind: iner not in {anti,inner,left,outer,right,semi}; did you mean inner? (see",
     ["join", "--kind", "iner", "a.csv", "b.csv"]),
):
    run = subprocess.run([roost, *command], capture_output=True, timeout=120, check=False)
    expect(run.returncode == 64 and is_line(run.stderr, words) and not run.stdout, "a wrong command line", command, run)


def small_disk():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails as it does on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


for command in into_files:
    run = subprocess.run([roost, *command], capture_output=True, timeout=120, preexec_fn=small_disk, check=False)
    expect(run.returncode == 1 and is_line(run.stderr), "a full disk", command, run)
    left = [path for path in Path(".").rglob("*") if path.name.startswith("fresh") and path.is_file()]
    expect(not left, f"a full disk left {left}", command, run)

for command in slow:
    run = subprocess.Popen([roost, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    writer = os.open("slow", os.O_RDWR)  # never ends
    time.sleep(0.3)
    ended = run.poll() is not None
    run.send_signal(signal.SIGINT)
    try:
        run.stderr, run.returncode = run.communicate(timeout=30)[1], run.returncode
    except subprocess.TimeoutExpired:
        run.kill()
        run.stderr = b"it went on"
    os.close(writer)
    expect(not ended and run.returncode == -signal.SIGINT and not run.stderr, "Ctrl-C", command, run)
sys.exit(bad != 0)
PY

finish
