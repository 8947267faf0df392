#!/usr/bin/env python3
"""Random skies as pictures, FITS files and lists of centroids of many kinds: all must have the same answers.

    differ_stars.py ROOST [--seconds N] [--seed S]

Each round draws a field of a random sky, mirrored or not, writes it as PGM, as FITS of each number type, row
order and container, and as CSV files of several dialects, and builds the database from a catalogue of some
dialect. Where each file points must be where the field was drawn, the same in all of them, in CSV and in
JSON; world coordinates must hold for the rows of the file itself. Needs Python alone. Fails at the first
difference, and prints the seed of its round.
"""

import argparse
import array
import csv
import gzip
import io
import json
import math
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STARS = 20000


def catalogue(seed):
    draw = random.Random(seed)
    return [
        (
            360 * draw.random(),
            math.degrees(math.asin(2 * draw.random() - 1)),
            9 + 0.9 * math.log(draw.random() + 1e-6),
        )
        for _ in range(STARS)
    ]


def write_catalogue(path, stars, draw):
    """In some dialect; returns options for `roost stars build`."""
    separator = draw.choice([",", ";", "\t"])
    comma = separator == ";" and draw.random() < 0.5
    unit = draw.choice(["degrees", "hours", "radians", "west"])
    names, options = {
        "degrees": (("ra", "dec"), []),
        "west": (("RA [deg]", "DE_deg"), []),
        "hours": draw.choice([(("ra_hours", "dec"), []), (("RA", "Dec"), ["--units", "hours"])]),
        "radians": draw.choice([(("rarad", "decrad"), []), (("ra", "dec"), ["--units", "radians"])]),
    }[unit]
    columns = [*names, draw.choice(["mag", "Vmag", "magnitude"]), "note"]
    order = random.sample(range(4), 4) if draw.random() < 0.5 else range(4)
    lines = [separator.join(columns[i] for i in order)]
    for ra, dec, magnitude in stars:
        if unit == "hours":
            ra /= 15
        if unit == "west" and ra > 180:
            ra -= 360
        if unit == "radians":
            ra, dec = math.radians(ra), math.radians(dec)
        fields = [f"{ra:.9f}", f"{dec:+.9f}", f"{magnitude:.4f}", '"a, ""b"""']
        if comma:
            fields[:3] = [field.replace(".", ",") for field in fields[:3]]
        lines.append(separator.join(fields[i] for i in order))
    end = draw.choice(["\n", "\r\n"])
    text = draw.choice(["", "\ufeff"]) + end.join(lines) + end
    path.write_bytes(text.encode())
    return options


def field(stars, ra, dec, roll, fov, width, height, mirrored):
    """x, y and magnitude, the brightest first; pixels from the upper left corner."""
    d = math.pi / 180
    focal = width / 2 / math.tan(fov * d / 2)
    found = []
    for a, b, magnitude in stars:
        turned = (a - ra) * d
        away = math.sin(dec * d) * math.sin(b * d) + math.cos(dec * d) * math.cos(b * d) * math.cos(turned)
        if away < 0.9:
            continue
        east = math.cos(b * d) * math.sin(turned) / away
        north = math.cos(dec * d) * math.sin(b * d) - math.sin(dec * d) * math.cos(b * d) * math.cos(turned)
        north /= away
        x = focal * (-east * math.cos(roll * d) - north * math.sin(roll * d))
        y = height / 2 + focal * (east * math.sin(roll * d) - north * math.cos(roll * d))
        x = width / 2 + (-x if mirrored else x)
        if 1 < x < width - 1 and 1 < y < height - 1:
            found.append((x, y, magnitude, a, b))
        if len(found) == 30:
            break
    return found


def picture(found, width, height, draw):
    """Rows from the top, of whole numbers to 255."""
    noise = [draw.gauss(20, 1.5) for _ in range(4099)]
    rows = [[noise[(y * 977 + x * 7) % 4099] for x in range(width)] for y in range(height)]
    for x, y, magnitude, *_ in found:
        light = 60 * math.log(2 + 10 ** (-0.4 * magnitude) * 1e4)
        for j in range(max(int(y) - 5, 0), min(int(y) + 6, height)):
            for i in range(max(int(x) - 5, 0), min(int(x) + 6, width)):
                rows[j][i] += light * math.exp(-((i + 0.5 - x) ** 2 + (j + 0.5 - y) ** 2) / 2.88)
    return [[min(max(round(v), 0), 255) for v in row] for row in rows]


def pgm(rows, most):
    code = "B" if most < 256 else ">H"
    scale = 1 if most < 256 else 250  # whose two bytes are not the same
    head = f"P5\n{len(rows[0])} {len(rows)}\n{most}\n".encode()
    size = len(rows[0])
    return head + b"".join(
        struct.pack(f"{code[:-1]}{size}{code[-1]}", *(v * scale for v in row)) for row in rows
    )


def fits(rows, bits, *, scale=1.0, zero=0.0, planes=1, extension=False, top_down=False, blank=None, cut=0):
    """`blank`: the value of an undefined pixel, which a frame of three pixels has."""
    width, height = len(rows[0]), len(rows)

    def header(cards):
        text = "".join(card.ljust(80) for card in cards) + "END".ljust(80)
        return text.ljust(-(-len(text) // 2880) * 2880).encode()

    def card(key, value):
        return f"{key:<8}= {value!s:>20}"

    code = {8: "B", 16: "h", 32: "i", 64: "q", -32: "f", -64: "d"}[bits]
    cards = [card("BITPIX", bits), card("NAXIS", 3 if planes > 1 else 2), card("NAXIS1", width)]
    cards.append(card("NAXIS2", height))
    if planes > 1:
        cards.append(card("NAXIS3", planes))
    if extension:
        cards += [card("PCOUNT", 0), card("GCOUNT", 1)]
    if zero or scale != 1:
        cards += [card("BZERO", zero), card("BSCALE", scale)]
    if blank is not None and bits > 0:
        cards.append(card("BLANK", blank))
    if top_down:
        cards.append("ROWORDER= 'TOP-DOWN'")
    data = array.array(code)
    for y, row in enumerate(rows if top_down else reversed(rows)):
        values = [(v - zero) / scale for v in row] if bits < 0 else [round((v - zero) / scale) for v in row]
        if blank is not None:
            values = [
                blank if x < 3 or x >= width - 3 or y < 3 or y >= height - 3 else v
                for x, v in enumerate(values)
            ]
        data.extend(values)
    if sys.byteorder == "little":
        data.byteswap()
    body = data.tobytes() * planes
    body += b"\0" * (-len(body) % 2880)
    if extension:
        first = [card("SIMPLE", "T"), card("BITPIX", 8), card("NAXIS", 0), card("EXTEND", "T")]
        return header(first) + header(["XTENSION= 'IMAGE   '", *cards]) + body[: len(body) - cut]
    return header([card("SIMPLE", "T"), *cards]) + body[: len(body) - cut]


def centroids(found, draw):
    """A list of centroids in some dialect."""
    separator = draw.choice([",", ";", "\t"])
    comma = separator == ";" and draw.random() < 0.5
    bright = draw.choice(["brightness", "Flux", "mag", None])
    columns = draw.choice([["x", "y"], ["X", "Y"], [" x [px]"[:2], "y "]]) + ([bright] if bright else [])
    order = list(range(len(columns)))
    rows = list(found)
    if bright:
        draw.shuffle(order)
        draw.shuffle(rows)

    def number(value, digits):
        form = draw.choice(["{:.{}f}", "+{:.{}f}", " {:.{}f} ", "{:.{}e}", '"{:.{}f}"'])
        text = form.format(value, digits + 4 * ("e" in form))
        return text.replace(".", ",") if comma else text

    lines = [separator.join(columns[i] for i in order)]
    for x, y, magnitude, *_ in rows:
        light = magnitude if bright == "mag" else 10 ** (-0.4 * magnitude) * 1e6
        fields = [number(x, 6), number(y, 6), number(light, 6)]
        lines.append(separator.join(fields[i] for i in order))
    spoiled = draw.randrange(3)
    for _ in range(spoiled):
        bad = draw.choice([["nan"] * len(order), ["-0.4", "5", "1"], ["x"] * len(order), ["5", "", "7"]])
        at = draw.randrange(1, len(lines) + 1)
        fields = [bad[i] for i in order]
        lines.insert(at, separator.join(f.replace(".", ",") if comma else f for f in fields))
    end = draw.choice(["\n", "\r\n"])
    return (draw.choice(["", "\ufeff"]) + end.join(lines) + draw.choice(["", end])).encode(), spoiled


def apart(one, other):
    return abs((one - other + 180) % 360 - 180)


def sky_of(path, x, y):
    """Where the pixel (x, y) of the file is, from 1 on, by the header."""
    text = path.read_bytes().decode("ascii")
    cards = (text[i : i + 80] for i in range(0, len(text), 80))
    head = {c[:8].strip(): c[10:].split("/")[0].strip(" '") for c in cards if c[8:10] == "= "}
    a, b, c, d, x0, y0, ra, dec = (
        float(head[key])
        for key in ("CD1_1", "CD1_2", "CD2_1", "CD2_2", "CRPIX1", "CRPIX2", "CRVAL1", "CRVAL2")
    )
    xi, eta = math.radians(a * (x - x0) + b * (y - y0)), math.radians(c * (x - x0) + d * (y - y0))
    middle = math.radians(dec)
    away = math.cos(middle) - eta * math.sin(middle)
    return ra + math.degrees(math.atan2(xi, away)), math.degrees(
        math.atan2(math.sin(middle) + eta * math.cos(middle), math.hypot(xi, away))
    )


class round_of:
    def __init__(self, roost, folder, stars, database, seed):
        self.draw = draw = random.Random(seed)
        self.files = {}  # name: bytes, and how far its answers may be from those of the others
        self.roost, self.folder, self.database = roost, folder, database
        self.width, self.height = draw.choice([(360, 270), (301, 400), (400, 200)])
        self.mirrored = seed % 2 == 0
        self.truth = (
            360 * draw.random(),
            math.degrees(math.asin(draw.uniform(-0.98, 0.98))),
            360 * draw.random(),
            draw.uniform(10.5, 15.5),
        )
        self.found = field(stars, *self.truth, self.width, self.height, self.mirrored)

    def write(self):
        draw, files = self.draw, {}
        rows = picture(self.found, self.width, self.height, draw)
        kinds = {
            "u8.fits": {"bits": 8},
            "less8.fits": {"bits": 8, "zero": 5.0},
            "i16.fits": {"bits": 16},
            "u16.fits": {"bits": 16, "zero": 32768.0},
            "i32.fits": {"bits": 32},
            "u32.fits": {"bits": 32, "zero": 2147483648.0},
            "i64.fits": {"bits": 64},
            "f32.fits": {"bits": -32},
            "f64.fits": {"bits": -64},
            "scaled.fits": {"bits": 16, "scale": 0.25, "zero": 7.0},
            "planes.fits": {"bits": 16, "planes": 3},
            "cube.fits": {"bits": -32, "planes": 2},
            "extension.fits": {"bits": 16, "extension": True},
            "top[1].fits": {"bits": 16, "top_down": True},
        }
        files["plain.pgm"] = pgm(rows, 255)
        files["wide.pgm"] = pgm(rows, 65535)
        for name in sorted({"top[1].fits", *draw.sample(sorted(kinds), 5)}):
            files[name] = fits(rows, **kinds[name])
        name = draw.choice(sorted(kinds))
        files[f"packed {name}.gz"] = gzip.compress(fits(rows, **kinds[name]), 1)
        offset = draw.choice([2**31, 2**40, 1e9, -5e8])
        far = [[v + offset for v in row] for row in rows]
        files["far[2].fits"] = fits(far, draw.choice([64, -64]))
        files["!tiny+1.fits"] = fits([[v * 1e-40 for v in row] for row in rows], -64)
        files["(nan).fits"] = fits(rows, -32, blank=float("nan"))
        files["mem:blank.fits"] = fits(rows, 16, blank=-32768)
        self.pictures = files
        self.lists = {f"list{i}.csv": centroids(self.found, draw) for i in range(4)}
        for name, content in [*files.items(), *((n, c[0]) for n, c in self.lists.items())]:
            (self.folder / name).write_bytes(content)
        (self.folder / "cut.fits").write_bytes(fits(rows, 16, cut=2880 * 3))

    def solve(self, names, *options):
        run = subprocess.run(
            [self.roost, "stars", "solve", self.database, *names, "--place", "host", "--threads", "2"]
            + ["--size", f"{self.width}x{self.height}", *options],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.folder,
            check=False,
        )
        return run

    def check(self):
        names = [*self.pictures, *self.lists]
        out = self.folder / "out"
        run = self.solve(names, "--format", "csv", "--out", str(out))
        assert run.returncode == 0, f"exit code {run.returncode}: {run.stderr}{run.stdout}"
        left_out = sum(1 for _, spoiled in self.lists.values() if spoiled)
        assert run.stderr.count("\n") == left_out == run.stderr.count(": left out "), run.stderr
        answers = list(csv.DictReader(io.StringIO(run.stdout)))
        assert [a["name"] for a in answers] == [Path(name).stem for name in names]
        ra, dec, roll, fov = self.truth
        if self.mirrored:
            roll = -roll  # counter-clockwise in the picture
        near = 1 / math.cos(math.radians(dec))
        pixel = fov / self.width  # degrees
        plain = answers[0]
        for name, answer in zip(names, answers, strict=True):
            got = {key: float(answer[f"{key}_deg"]) for key in ("ra", "dec", "roll", "fov")}
            what = f"{name}: {answer}, drawn at {self.truth}, mirrored {self.mirrored}"
            assert answer["mirrored"] == ("true" if self.mirrored else "false"), what
            assert apart(got["ra"], ra) < pixel * near and apart(got["dec"], dec) < pixel, what
            assert apart(got["roll"], roll) < 0.3 * near and abs(got["fov"] / fov - 1) < 0.005, what
            if name in self.lists:
                continue
            # Of the same pixels, but for what a frame without numbers covers.
            loose = 0.5 * pixel if name in ("(nan).fits", "mem:blank.fits") else 2e-4 * near
            for key in ("ra_deg", "dec_deg", "roll_deg", "scale_arcsec_px"):
                away = loose * (20 if key == "roll_deg" or key == "scale_arcsec_px" else near)
                assert apart(float(answer[key]), float(plain[key])) <= away, f"{key} of {what}; {plain}"
            lowest_first = "fits" in name and not (self.folder / name).read_bytes()[:2880].count(b"TOP-DOWN")
            if name.endswith("gz"):
                lowest_first = b"TOP-DOWN" not in gzip.decompress((self.folder / name).read_bytes())[:2880]
            for x, y, _, star_ra, star_dec in self.found[:8]:
                at = sky_of(
                    out / (Path(name).stem + ".wcs"), x + 0.5, (self.height - y if lowest_first else y) + 0.5
                )
                off = math.hypot(apart(at[0], star_ra) * math.cos(math.radians(star_dec)), at[1] - star_dec)
                assert off < 0.4 * pixel, f"{off / pixel} pixels off by the header of {what}"
        lists = [a for n, a in zip(names, answers, strict=True) if n in self.lists]
        for other in lists[1:]:
            for key in ("ra_deg", "dec_deg", "roll_deg", "scale_arcsec_px"):
                off = apart(float(lists[0][key]), float(other[key]))
                assert off < 2.5 * (1e-5 if key[0] in "rd" and key != "roll_deg" else 1e-4) * near, (
                    f"{key}: {lists[0]} and {other}"
                )

        run = self.solve([*names, "cut.fits", "none.fits"], "--format", "json")
        assert run.returncode == 1 and "cut off" in run.stderr, f"{run.returncode}: {run.stderr}"
        told = json.loads(run.stdout)["fields"]
        assert [one["name"] for one in told] == [*(a["name"] for a in answers), "cut", "none"]
        assert all("error" in one for one in told[-2:])
        for one, answer in zip(told, answers, strict=False):
            assert json.dumps(one["mirrored"]) == answer["mirrored"], (one, answer)
            for key in ("ra_deg", "dec_deg", "roll_deg", "fov_deg", "scale_arcsec_px"):
                assert abs(one[key] - float(answer[key])) < 1e-4, (one, answer)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roost")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    rounds = 0
    seed = arguments.seed
    stars = sorted(catalogue(1), key=lambda star: star[2])
    while rounds < 2 or time.monotonic() < end:  # one of the two is mirrored
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            try:
                if rounds % 8 == 0:
                    draw = random.Random(seed)
                    options = write_catalogue(folder / "catalogue.csv", stars, draw)
                    database = Path(tempfile.gettempdir(), f"differ_stars_{seed}.sky")
                    run = subprocess.run(
                        [arguments.roost, "stars", "build", folder / "catalogue.csv", "--out", database]
                        + ["--fov", "10:16", "--place", "host", "--threads", "2", *options],
                        capture_output=True,
                        text=True,
                        timeout=120,
                        check=False,
                    )
                    assert run.returncode == 0 and not run.stderr, f"{options}: {run.stderr}"
                    sky = database.read_bytes()
                    database.unlink()
                (folder / "sky").write_bytes(sky)
                one = round_of(arguments.roost, folder, stars, folder / "sky", seed)
                one.write()
                one.check()
            except AssertionError as difference:
                print(f"FAILED: --seed {seed}: {difference}")
                return 1
        rounds += 1
        seed += 1
    print(f"ok: {rounds} rounds from --seed {arguments.seed} on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
