#!/usr/bin/python3
"""Measures what `roost match` finds, and what it finds that is not there.

    tests/apps/measure_match.py ROOST PHOTOGRAPHS WORK [SET...] [--no-sift] [--OPTION=VALUE...]

PHOTOGRAPHS is a folder; WORK gets the pictures that are made of them (needs numpy and Pillow). Right is what
lays the corners within 3 % of the reference's diagonal. `similar` to `crops` are also matched by OpenCV's SIFT
(opencv-python-headless); options go to `roost match`. The sets:

    warped     each photograph 12 times: scales of 0.5 to 2, any turn, shifts, light and noise
    similar    100 views: scales of 0.7 to 1.4, any turn, shifts, light and noise
    affine     75 views from aside, far away: the same, with one side 1.2 to 2 times shorter than the other
    perspective  25 views from aside, near: tilted by 20 to 45 degrees, from 1.6 diagonals
    crops      25 pieces, 30 % as wide and high, turned and scaled
    mirrored   each photograph mirrored, once as it is and once turned and scaled
    unrelated  600 pairs; 100 of them are text pages, tilings, grids, stripes, bricks and the like
    itself     each photograph against itself
    pages      parts of one text page that do not overlap
    once       60 pieces of photographs that are pasted into others, at the upper left
    twice      the same, with the piece once more, turned and of 0.65 to 1.5 times the size: no match

Prints a line for each set, and one for each wrong answer.
"""

import json
import math
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from PIL import Image, ImageDraw, ImageFont

VIEWS = ("similar", "affine", "perspective", "crops")
ALL = ("warped", *VIEWS, "mirrored", "unrelated", "itself", "pages", "once", "twice")
FONTS = ("DejaVuSans.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf", "DejaVuSans-Bold.ttf")


def warped(image, matrix, size, fill=128):
    """A view of a grey picture: `matrix` takes the view's points to those of the picture; means of 3 x 3."""
    fine = 3
    a = numpy.array(matrix, float)
    to_fine = numpy.array([[1 / fine, 0, 0.5 / fine - 0.5], [0, 1 / fine, 0.5 / fine - 0.5], [0, 0, 1]])
    # Pillow's points are corners of pixels, half a pixel before their middles.
    half = numpy.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    m = half @ a @ to_fine @ numpy.linalg.inv(half)
    large = image.transform(
        (size[0] * fine, size[1] * fine), Image.Transform.PERSPECTIVE, (m / m[2, 2]).ravel()[:8].tolist(),
        Image.Resampling.BICUBIC, fillcolor=fill,
    )
    return large.reduce(fine)


def lit(image, random_, noise):
    """The same in other light, with noise."""
    pixels = numpy.asarray(image, float)
    generator = numpy.random.default_rng(random_.randrange(2**32))
    pixels = pixels * random_.uniform(0.6, 1.2) + random_.uniform(-15, 15)
    pixels = pixels + generator.normal(0, noise, pixels.shape)
    return Image.fromarray(numpy.clip(pixels, 0, 255).astype("uint8"))


def around(matrix, picture, view, shift=(0, 0)):
    """2 x 2 numbers as a 3 x 3 matrix that takes the view's middle to the picture's, but for a shift."""
    m = numpy.eye(3)
    m[:2, :2] = matrix
    middle = numpy.array([(view[0] - 1) / 2, (view[1] - 1) / 2])
    m[:2, 2] = numpy.array([(picture[0] - 1) / 2, (picture[1] - 1) / 2]) + shift - m[:2, :2] @ middle
    return m


def turn(degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return numpy.array([[c, -s], [s, c]])


def any_similarity(image, random_):
    shift = [random_.uniform(-0.1, 0.1) * side for side in image.size]
    return around(2 ** random_.uniform(-1, 1) * turn(random_.uniform(0, 360)), image.size, image.size, shift)


def font(random_, size):
    return ImageFont.truetype(f"/usr/share/fonts/truetype/dejavu/{random_.choice(FONTS)}", size)


def word(random_):
    letters = "eeeeeeetttttaaaaoooiiinnnsssrrhhldcumfpgwybvk"
    return "".join(random_.choice(letters) for _ in range(random_.choice((2, 3, 3, 4, 4, 5, 6, 7, 8, 10))))


def text_page(random_, w=480, h=360):
    page = Image.new("L", (w, h), random_.choice((255, 255, 240, 225)))
    draw = ImageDraw.Draw(page)
    size = random_.randrange(9, 17)
    face, lead = font(random_, size), int(size * random_.uniform(1.2, 1.6))
    columns = random_.choice((1, 1, 2))
    for column in range(columns):
        left, right = 10 + column * w // columns, (column + 1) * w // columns - 8
        for y in range(8, h - lead, lead):
            if random_.random() < 0.06:
                continue
            line, end = "", right - (random_.randrange(w // 3) if random_.random() < 0.15 else 0)
            while True:
                longer = line + word(random_) + " "
                if left + draw.textlength(longer, font=face) > end:
                    break
                line = longer
            draw.text((left, y), line, fill=random_.choice((0, 0, 40)), font=face)
    return page


def tiling(random_, w=480, h=360):
    """Checkerboards, stripes, grids, dots, bricks, triangles, hexagons, weaves, motifs, tables of digits."""
    kinds = "checker stripes grid dots hexagonal bricks triangles weave motif table"
    kind = random_.choice(kinds.split())
    p = random_.uniform(12, 60)
    dark, light = sorted((random_.uniform(0, 110), random_.uniform(130, 255)))
    x, y = numpy.meshgrid(numpy.arange(2 * w) / 2, numpy.arange(2 * h) / 2)
    x, y = x + random_.uniform(0, p), y + random_.uniform(0, p)
    column, row = numpy.floor(x / p), numpy.floor(y / p)
    u, v, t = x / p % 1, y / p % 1, random_.uniform(0.1, 0.3)
    if kind == "checker":
        on = (column + row) % 2 == 0
    elif kind == "stripes":
        on = u < random_.uniform(0.2, 0.8)
    elif kind == "grid":
        on = (u < t) | (v < t)
    elif kind == "dots":
        on = (u - 0.5) ** 2 + (v - 0.5) ** 2 < (t + 0.1) ** 2
    elif kind == "hexagonal":
        r2 = numpy.floor(y / (p * 0.866))
        u2, v2 = (x / p + r2 % 2 / 2) % 1, (y / (p * 0.866)) % 1
        on = (u2 - 0.5) ** 2 + (0.866 * (v2 - 0.5)) ** 2 < (t + 0.1) ** 2
    elif kind == "bricks":
        on = (v < t / 2) | ((x / (2 * p) + row % 2 / 2) % 1 < t / 4)
    elif kind == "triangles":
        on = (u + v < 1)
    elif kind == "weave":
        on = numpy.where((column + row) % 2 == 0, (u > t) & (u < 1 - t), (v > t) & (v < 1 - t))
    elif kind == "motif":
        tile = Image.new("L", (64, 64), 0)
        draw = ImageDraw.Draw(tile)
        for _ in range(4):
            corners = [(random_.uniform(0, 64), random_.uniform(0, 64)) for _ in range(3)]
            draw.polygon(corners, fill=random_.choice((0, 255)))
        on = numpy.asarray(tile)[(v * 64).astype(int), (u * 64).astype(int)] > 0
    else:
        page = Image.new("L", (w, h), 255)
        draw = ImageDraw.Draw(page)
        face = font(random_, 11)
        for cy in range(0, h, int(p / 2) + 10):
            draw.line((0, cy, w, cy), fill=0)
            for cx in range(0, w, int(p) + 20):
                draw.line((cx, 0, cx, h), fill=0)
                draw.text((cx + 4, cy + 3), str(random_.randrange(1000)), fill=0, font=face)
        return page
    pixels = numpy.where(on, dark, light)
    return Image.fromarray(pixels.astype("uint8")).reduce(2)


def regular(random_):
    image = text_page(random_) if random_.random() < 0.4 else tiling(random_)
    if random_.random() < 0.4:
        scale = random_.uniform(0.7, 1)
        matrix = around(scale * turn(random_.uniform(0, 90)), image.size, (360, 300))
        image = warped(image, matrix, (360, 300))
    return lit(image, random_, random_.choice((0, 0, 2, 4)))


class sets:
    """Makes pictures: add() notes reference, query and truth (3 x 3, or None: no match)."""

    def __init__(self, photographs, work):
        self.work = work
        self.photographs = []
        for file in sorted(photographs.iterdir()):
            image = Image.open(file).convert("L")
            kept = work / f"{file.stem}.png"
            image.save(kept)
            self.photographs.append((kept, image))
        self.pairs = []

    def add(self, reference, image, name, truth):
        file = self.work / f"{name}.png"
        if image is not None:
            image.save(file)
        self.pairs.append((reference, file if image is not None else name, truth))

    def warped(self):
        for number, (file, image) in enumerate(self.photographs):
            random_ = random.Random(number)
            for i in range(12):
                truth = any_similarity(image, random_)
                self.add(file, lit(warped(image, truth, image.size), random_, random_.uniform(0, 8)),
                         f"warped-{file.stem}-{i}", truth)

    def views(self, name, count, seed, of):
        """Views of photographs by turns: `of` makes one's matrix and size."""
        random_ = random.Random(seed)
        for i in range(count):
            file, image = self.photographs[i % len(self.photographs)]
            scale, degrees = random_.uniform(0.7, 1.4), random_.uniform(0, 360)
            truth, size = of(image, scale * turn(degrees), random_)
            self.add(file, lit(warped(image, truth, size), random_, 2), f"{name}-{file.stem}-{i}", truth)

    def similar(self):
        def of(image, matrix, random_):
            shift = [random_.uniform(-0.1, 0.1) * side for side in image.size]
            return around(matrix, image.size, image.size, shift), image.size

        self.views("similar", 100, 6, of)

    def affine(self):
        def of(image, matrix, random_):
            tilt = random_.uniform(1.2, 2)
            narrower = numpy.diag([math.sqrt(tilt), 1 / math.sqrt(tilt)])
            matrix = matrix @ narrower @ turn(random_.uniform(0, 360))
            return around(matrix, image.size, image.size), image.size

        self.views("affine", 75, 1, of)

    def perspective(self):
        def of(image, matrix, random_):
            # A picture that is turned about an axis through its middle, before a camera; then its inverse.
            far, tilt = 1.6 * math.hypot(*image.size), math.radians(random_.uniform(20, 45))
            axis = turn(random_.uniform(0, 360))
            side, depth = numpy.diag([math.cos(tilt), 1]) @ axis, math.sin(tilt) / far * axis[0]
            seen = numpy.eye(3)
            seen[:2, :2], seen[2, :2] = axis.T @ side, depth
            middle = numpy.eye(3)
            middle[:2, 2] = [(pixels - 1) / 2 for pixels in image.size]
            back = middle @ numpy.linalg.inv(seen) @ numpy.linalg.inv(middle)
            truth = back @ around(matrix, image.size, image.size)
            return truth, image.size

        self.views("perspective", 25, 7, of)

    def crops(self):
        def of(image, matrix, random_):
            size = [round(0.3 * side / math.hypot(*matrix[0])) for side in image.size]
            room = [0.5 * side - 0.22 * math.hypot(*image.size) for side in image.size]
            shift = [random_.uniform(-1, 1) * max(0, part) for part in room]
            return around(matrix, image.size, size, shift), size

        self.views("crops", 25, 8, of)

    def mirrored(self):
        random_ = random.Random(2)
        for file, image in self.photographs:
            mirror = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            self.add(file, mirror, f"mirrored-{file.stem}", None)
            again = warped(mirror, any_similarity(mirror, random_), mirror.size)
            self.add(file, lit(again, random_, 3), f"mirrored-{file.stem}-warped", None)

    def unrelated(self):
        random_ = random.Random(3)
        files = [file for file, _ in self.photographs]
        everything = [(file, query) for file in files for query in files if file != query]
        for file, query in random_.sample(everything, min(len(everything), 300)):
            self.add(file, None, query, None)
        regulars = []
        for i in range(20):
            regulars.append(self.work / f"regular-{i}.png")
            regular(random_).save(regulars[-1])
        for i in range(100):
            # Each with five others.
            self.add(regulars[i % 20], None, regulars[(i % 20 + 1 + i // 20 * 3) % 20], None)
        mixed = [pair for file in files for other in regulars for pair in ((file, other), (other, file))]
        for reference, query in random_.sample(mixed, min(len(mixed), 500 - min(len(everything), 300))):
            self.add(reference, None, query, None)

    def itself(self):
        for file, image in self.photographs:
            self.add(file, None, file, numpy.eye(3))

    def pages(self):
        random_ = random.Random(4)
        for i in range(10):
            page = text_page(random_, 700, 900)
            upper = self.work / f"page-{i}.png"
            page.crop((0, 0, 700, 440)).save(upper)
            self.add(upper, page.crop((0, 450, 700, 890)), f"page-{i}-lower", None)
            part = around(turn(random_.uniform(-20, 20)), (700, 440), (500, 400))
            view = warped(page.crop((0, 0, 700, 440)), part, (500, 400), 255)
            self.add(upper, view, f"page-{i}-part", part)

    def once(self, again=False):
        random_ = random.Random(5)
        w, h = 210, 180
        for i in range(60):
            onto, image = (random_.choice(self.photographs)[1] for _ in range(2))
            if image.size[0] < 260 or image.size[1] < 230:
                image = image.resize((520, 460))
            left, top = random_.randrange(image.size[0] - w), random_.randrange(image.size[1] - h)
            piece = image.crop((left, top, left + w, top + h))
            scale, degrees = 2 ** random_.uniform(-0.6, 0.6), random_.uniform(0, 360)
            picture = onto.resize((600, 450))
            if again:
                larger = piece.resize((round(w * scale), round(h * scale)), Image.Resampling.BICUBIC)
                where = Image.new("L", larger.size, 255).rotate(degrees, expand=True)
                larger = larger.rotate(degrees, Image.Resampling.BICUBIC, expand=True)
                picture.paste(larger, (600 - larger.size[0], 450 - larger.size[1]), where)
            picture.paste(piece, (10, 10))
            reference = self.work / f"{'twice' if again else 'once'}-{i}.png"
            picture.save(reference)
            truth = None if again else around(numpy.eye(2), (w + 20, h + 20), (w, h))
            self.add(reference, piece, f"piece-{i}", truth)

    def twice(self):
        self.once(True)


def corners_off(found, truth, size):
    """The farthest corner, in pixels of the reference."""
    right, down = size[0] - 1, size[1] - 1
    corners = numpy.array([[0, 0, 1], [right, 0, 1], [0, down, 1], [right, down, 1]]).T
    own, true = numpy.array(found, float).reshape(3, 3) @ corners, truth @ corners
    return float(numpy.hypot(*(own[:2] / own[2] - true[:2] / true[2])).max())


def sift(name, pairs):
    """The same by OpenCV, which is told what kind of map to look for."""
    import cv2

    cv2.setNumThreads(1)
    detector, right, wrong, start = cv2.SIFT_create(), 0, 0, time.process_time()
    for reference, query, truth in pairs:
        own, image = (cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) for file in (reference, query))
        there, here = detector.detectAndCompute(own, None), detector.detectAndCompute(image, None)
        good = []
        if here[1] is not None and there[1] is not None and len(there[0]) > 1:
            found = cv2.BFMatcher().knnMatch(here[1], there[1], k=2)
            good = [first for first, second in found if first.distance < 0.75 * second.distance]
        if len(good) < 4:
            continue
        a = numpy.float32([here[0][match.queryIdx].pt for match in good])
        b = numpy.float32([there[0][match.trainIdx].pt for match in good])
        if name == "perspective":
            matrix, inside = cv2.findHomography(a, b, cv2.RANSAC, 3)
        else:
            fit = cv2.estimateAffine2D if name == "affine" else cv2.estimateAffinePartial2D
            matrix, inside = fit(a, b, ransacReprojThreshold=3)
            matrix = None if matrix is None else numpy.vstack([matrix, [0, 0, 1]])
        if matrix is None or inside.sum() < 10:
            continue
        off = math.inf if truth is None else corners_off(matrix, truth, image.shape[::-1])
        is_right = off < 0.03 * math.hypot(*own.shape)
        right, wrong = right + is_right, wrong + (not is_right)
    took = (time.process_time() - start) / len(pairs) * 1e3
    print(f"  SIFT: {right} right, {wrong} wrong; {took:.0f} ms", flush=True)


def measure(roost, name, pairs, options):
    """Found and right, wrong and missed ones of a set."""
    by_reference = {}
    for reference, query, truth in pairs:
        by_reference.setdefault(reference, []).append((query, truth))

    def run(item):
        reference, queries = item
        command = [roost, "match", reference, *(query for query, _ in queries)]
        command += ["--place", "host", "--threads", "1", "--format", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 1:  # no edges: nothing matches
            print(f"  {done.stderr.strip()}")
            return [(reference, query, truth, {"matched": False}) for query, truth in queries]
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{reference}: {done.returncode}: {done.stderr}")
        return [(reference, query, truth, facts)
                for (query, truth), facts in zip(queries, json.loads(done.stdout)["queries"], strict=True)]

    right, wrong, missed, off, verify, whole, kinds = 0, 0, 0, [], 0, 0, Counter()
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(run, by_reference.items()):
            for reference, query, truth, facts in result:
                verify += facts.get("milliseconds", {}).get("verify", 0)
                whole += facts.get("milliseconds", {}).get("all", 0)
                pair = f"{reference.stem} {query.stem}"
                if not facts["matched"]:
                    missed += 1
                    if truth is not None:
                        print(f"  missed: {pair}, {facts.get('placements', 0)} equally good placements")
                    continue
                kinds[facts["map"]] += 1
                size = facts["width"], facts["height"]
                by = math.inf if truth is None else corners_off(facts["matrix"], truth, size)
                words = ("map", "inliers", "covered", "alike", "compared", "rms_px", "log10_chance", "scale")
                told = {word: facts[word] for word in words if word in facts}
                if by < 0.03 * math.hypot(*Image.open(reference).size):
                    right += 1
                    off.append(by)
                else:
                    wrong += 1
                    print(f"  wrong: {pair}, corners {by:.1f} pixels off, {told}")
    middle = ""
    if off:
        middle = f"; corners {sorted(off)[len(off) // 2]:.2f} pixels off (median), {max(off):.2f} at most"
    print(f"{name}: of {len(pairs)} {right} right, {wrong} wrong, {missed} no match{middle}; "
          f"{whole / len(pairs):.0f} ms, of which verification {verify / len(pairs):.0f}; {dict(kinds)}",
          flush=True)


def main(roost, photographs, work, *chosen):
    options = [word for word in chosen if word.startswith("-") and word != "--no-sift"]
    names = [word for word in chosen if not word.startswith("-")]
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    for name in names or ALL:
        made = sets(Path(photographs), work)
        getattr(made, name)()
        measure(roost, name, made.pairs, options)
        if name in VIEWS and "--no-sift" not in chosen:
            sift(name, made.pairs)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
