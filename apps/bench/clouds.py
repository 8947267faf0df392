"""Measures `roost lidar` and roost in Python beside Open3D: fewer points of a cloud.

    python apps/bench/clouds.py ROOST [FILE.ply ...] [--points 10000000] [--runs 3]

ROOST is the command, as `cmake --preset tool` builds it; Open3D and the package roost are measured if Python
has them. The clouds are one that is made here, a rough plane of 1 km with walls, and FILEs. Each run is a
process of its own, from a PLY file of doubles to a PLY file of means, and to the voxel of each point (.npy)
where labels are asked for; the programs take turns. The least of all runs is printed: seconds of the
processors, in brackets from begin to end, and the most memory that the process had. `in memory` is without
files: from an array of points to arrays. What Python and its packages take to start is left out.

All must find the same voxels as numpy, and labels that put the same points together. Means must be the same
to 10^-9 of the largest coordinate, or to 10^-6 where a program adds them up as floats; `error` is the most
that one differs. Open3D's older interface begins its voxels half a voxel below the least
coordinates: each cloud gets a point there from which that is a multiple of the side, a power of two.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

SCRIPT = os.path.realpath(__file__)
SIZES = {"made": 1.0, "file": 0.125}  # sides of voxels


# ---- clouds


def made(count):
    """A plane of 1 km by 1 km, rough by 2 m, and walls on it of up to 20 m, far from (0, 0, 0)."""
    draw = np.random.default_rng(1)
    at = draw.uniform(0, 1000, size=(count, 3))
    at[:, 2] = 100 + np.sin(at[:, 0] / 40) * 10 + draw.normal(scale=0.5, size=count)
    walls = slice(0, count // 4)
    at[walls, 0] = np.floor(at[walls, 0] / 50) * 50 + draw.normal(scale=0.02, size=count // 4)
    at[walls, 2] += draw.uniform(0, 20, size=count // 4)
    return at


def with_corner(points, size):
    """A point more: half a side above multiples of the side, and below all others."""
    return np.vstack([np.floor(points.min(axis=0) / size) * size - size / 2, points])


def write_ply(name, points):
    with open(name, "wb") as file:
        head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(points)}"]
        head += [f"property double {axis}" for axis in "xyz"]
        file.write("\n".join([*head, "end_header\n"]).encode())
        file.write(np.ascontiguousarray(points, "<f8").tobytes())


TYPES = {"double": "<f8", "float": "<f4", "uint": "<u4", "int": "<i4", "uchar": "|u1"}


def read_ply(name):
    """x, y, z of a binary PLY file as doubles, by nothing that is measured here."""
    with open(name, "rb") as file:
        fields, count = [], None
        while (line := file.readline().split()) != [b"end_header"]:
            if line[0] == b"element":
                count = count if count is not None else int(line[2])
            if line[0] == b"property" and line[1] != b"list":
                fields.append((line[2].decode(), TYPES[line[1].decode()]))
        rows = np.frombuffer(file.read(np.dtype(fields).itemsize * count), fields)
    return np.column_stack([rows[axis].astype(float) for axis in "xyz"])


class Voxels:
    """What numpy finds: the voxel of each point, and the mean of each voxel."""

    def __init__(self, points, size):
        self.size, self.low = size, points.min(axis=0)
        self.corner = np.floor(self.low / size).astype(np.int64)
        self.sides = np.floor(points.max(axis=0) / size).astype(np.int64) - self.corner + 3
        self.keys, self.labels, counts = np.unique(
            self.key_of(np.floor(points / size)), return_inverse=True, return_counts=True
        )
        sums = [np.bincount(self.labels, points[:, a] - self.low[a]) for a in range(3)]
        self.means = self.low + np.column_stack(sums) / counts[:, None]

    def key_of(self, at):
        x, y, z = (at.astype(np.int64) - self.corner + 1).T
        return (x * self.sides[1] + y) * self.sides[2] + z

    def rows_of(self, means):
        """The voxel of each mean, and how far it is from ours. Rounded means may lie in a voxel beside."""
        rows, apart = np.zeros(len(means), np.int64), np.full(len(means), np.inf)
        for step in np.array(np.meshgrid(*[[0, 1, -1]] * 3, indexing="ij")).reshape(3, -1).T:
            left = np.flatnonzero(apart > 1e-3 * self.size)
            keys = self.key_of(np.floor(means[left] / self.size) + step)
            found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            far = np.abs(means[left] - self.means[found]).max(axis=1)
            far[self.keys[found] != keys] = np.inf
            better = far < apart[left]
            rows[left[better]], apart[left[better]] = found[better], far[better]
        return rows, apart.max()


def check(name, means, labels, points, truth):
    """How far a mean is from that of numpy; ends the program if voxels, means or labels differ."""
    if len(means) != len(truth.means):
        sys.exit(f"{name}: {len(means)} voxels, and numpy finds {len(truth.means)}")
    rows, most = truth.rows_of(means)
    if not most <= (1e-6 if name in ADDS_FLOATS else 1e-9) * np.abs(points).max():
        sys.exit(f"{name}: a mean differs by {most}")
    if len(np.unique(rows)) != len(rows):
        sys.exit(f"{name}: a voxel comes twice")
    if labels is not None and not np.array_equal(rows[labels], truth.labels):
        sys.exit(f"{name}: labels differ")
    return most


# ---- programs: each yields after its start, after reading, and before writing


def with_roost_package(source, size, labelled):
    import roost

    roost.set_threads(int(os.environ["OMP_NUM_THREADS"]))
    yield
    points = read_ply(source)
    yield
    labels, voxels = roost.factorize(np.floor(points / size).astype(np.int64))
    by_voxel = roost.group_by(labels)
    means = np.empty((len(voxels), 3))
    for axis in range(3):
        means[by_voxel.keys, axis] = by_voxel.mean(points[:, axis])
    yield
    write_ply("out.ply", means)
    if labelled:
        np.save("labels.npy", labels)


def with_open3d(source, size, labelled):
    import open3d

    yield
    cloud = open3d.io.read_point_cloud(source)
    yield
    if labelled:
        low = np.floor(cloud.get_min_bound() / size) * size
        fewer, _, rows = cloud.voxel_down_sample_and_trace(size, low, cloud.get_max_bound() + size)
        labels = np.empty(len(cloud.points), np.int64)
        for voxel, inside in enumerate(rows):
            labels[np.asarray(inside)] = voxel
    else:
        fewer = cloud.voxel_down_sample(size)
    yield
    open3d.io.write_point_cloud("out.ply", fewer)
    if labelled:
        np.save("labels.npy", labels)


def with_open3d_tensor(source, size, labelled):
    import open3d

    yield
    cloud = open3d.t.io.read_point_cloud(source)
    yield
    fewer = cloud.voxel_down_sample(size)
    yield
    open3d.t.io.write_point_cloud("out.ply", fewer)


PROGRAMS = {
    "roost in Python": with_roost_package,
    "Open3D": with_open3d,
    "Open3D, tensors": with_open3d_tensor,
}
NO_LABELS = ADDS_FLOATS = ("Open3D, tensors",)


def megabytes(usage):
    return usage.ru_maxrss / 1000


def run_package(name, source, size, labelled):
    """In a process of its own: CPU and elapsed seconds from file to file, the same in memory, MB."""
    steps = PROGRAMS[name](source, size, labelled)
    marks = []
    for _ in range(4):
        next(steps, None)
        marks.append((time.process_time(), time.perf_counter()))
    seconds = [marks[b][k] - marks[a][k] for a, b in ((0, 3), (1, 2)) for k in (0, 1)]
    print(json.dumps([*seconds, megabytes(resource.getrusage(resource.RUSAGE_SELF))]))


def run_command(roost, threads, source, size, labelled):
    command = [roost, "lidar", source, "--size", str(size), "--reps", "0", "--output", "out.ply"]
    command += ["--place", "host", "--threads", str(threads)]
    command += ["--labels", "labels.npy"] if labelled else []
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{roost}: failed")
    elapsed = time.perf_counter() - begin
    return [used.ru_utime + used.ru_stime, elapsed, None, None, megabytes(used)]


def measure(name, options, source, size, labelled):
    if name == "roost lidar":
        return run_command(options.roost, options.threads, source, size, labelled)
    command = [sys.executable, SCRIPT, "--package", name, source, str(size), str(int(labelled))]
    around = os.environ | {"OMP_NUM_THREADS": str(options.threads)}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=around).stdout)


def compare(title, points, size, options, names, small):
    points = with_corner(points, size)
    write_ply("in.ply", points)
    truth = Voxels(points, size)
    print(f"\n{title}: {len(points)} points, {len(truth.means)} voxels of side {size}")
    print("| | from file to file | in memory | MB | error |\n|---|---|---|---|---|")
    for labelled in (False, True):
        programs = [name for name in names if not labelled or name not in NO_LABELS]
        runs = {name: [] for name in programs}
        for _ in range(options.runs):
            for name in programs:
                for old in ("out.ply", "labels.npy"):
                    if os.path.exists(old):
                        os.remove(old)
                found = small.apply(measure, (name, options, "in.ply", size, labelled))
                labels = np.load("labels.npy") if labelled else None
                runs[name].append([*found, check(name, read_ply("out.ply"), labels, points, truth)])
        for name, found in runs.items():
            cpu, elapsed, cpu_memory, elapsed_memory, most, error = (
                None if column[0] is None else min(column) for column in zip(*found)
            )
            inside = "" if cpu_memory is None else f"{cpu_memory:.2f} ({elapsed_memory:.2f})"
            what = f"{name}, labels" if labelled else name
            print(f"| {what} | {cpu:.2f} ({elapsed:.2f}) | {inside} | {most:.0f} | {error:.0e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("roost", metavar="ROOST", nargs="?")
    parser.add_argument("files", metavar="FILE", nargs="*")
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--package", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.package:
        name, source, size, labelled = options.package
        return run_package(name, source, float(size), labelled == "1")
    if options.roost is None:
        parser.error("name the command roost")
    options.roost = os.path.realpath(options.roost)
    version = subprocess.run([options.roost, "-V"], check=True, capture_output=True, text=True).stdout
    version = "roost lidar " + version.strip()
    names = ["roost lidar"]
    for name in PROGRAMS:
        package = "open3d" if name.startswith("Open3D") else "roost"
        if importlib.util.find_spec(package):
            names.append(name)
            version += f", {name} {importlib.metadata.version(package)}"
    print("seconds of the processors (from begin to end);", version)
    clouds = [(os.path.basename(file), read_ply(file), SIZES["file"]) for file in options.files]
    # A process that stays small starts the others: a new one begins with the memory of its parent.
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as temporary, spawn.Pool(1, os.chdir, (temporary,)) as small:
        os.chdir(temporary)
        for cloud in clouds:
            compare(*cloud, options, names, small)
        compare("made", made(options.points), SIZES["made"], options, names, small)


if __name__ == "__main__":
    main()
