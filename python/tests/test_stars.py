"""Fields of stars, against a camera of numpy."""

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import roost
import roost.stars
from roost.stars import Database, Solution

SIZE = np.array([1024, 768])


def directions(ra, dec):
    ra, dec = np.radians(ra), np.radians(dec)
    return np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], axis=-1)


def random_sky(n, seed, fov):
    draw = np.random.default_rng(seed)
    return {
        "ra": draw.uniform(0, 360, n),
        "dec": np.degrees(np.arcsin(draw.uniform(-1, 1, n))),
        "magnitude": (9 + 2 * np.log10(draw.uniform(1e-6, 1, n))).astype("f4"),  # as they are kept
        "names": [f"star {i}" for i in range(n)],
        "fov": fov,
    }


class Camera:
    """Points anywhere. What it sees is computed in another way than roost does: by a matrix of rotations."""

    def __init__(self, draw, fov, mirrored=False, dec=None):
        self.ra, self.roll = draw.uniform(0, 360, 2)
        self.dec = np.degrees(np.arcsin(draw.uniform(-1, 1))) if dec is None else dec
        self.fov, self.mirrored = fov, mirrored
        self.focal = SIZE[0] / 2 / np.tan(np.radians(fov) / 2)

    def __call__(self, ra, dec):
        """Pixels, NaN behind the camera: the gnomonic projection, turned by the roll."""
        a, d, d0 = np.radians(np.asarray(ra) - self.ra), np.radians(dec), np.radians(self.dec)
        away = np.sin(d0) * np.sin(d) + np.cos(d0) * np.cos(d) * np.cos(a)
        east = np.cos(d) * np.sin(a) / np.where(away > 0, away, np.nan)
        north = (np.cos(d0) * np.sin(d) - np.sin(d0) * np.cos(d) * np.cos(a)) / np.where(
            away > 0, away, np.nan
        )
        r = np.radians(self.roll)
        side = -1 if self.mirrored else 1  # east is left of north
        x = -side * east * np.cos(r) - north * np.sin(r)
        y = side * east * np.sin(r) - north * np.cos(r)
        return np.stack([x, y], axis=-1) * self.focal + SIZE / 2

    def sees(self, sky, draw, noise=0.3, missing=0.15, false=5, most=40):
        """Centroids, the brightest first, and the star of each in the order of brightness, or -1."""
        order = np.argsort(sky["magnitude"], kind="stable")
        at = self(sky["ra"][order], sky["dec"][order])
        with np.errstate(invalid="ignore"):
            seen = np.flatnonzero(((at > 2) & (at < SIZE - 2)).all(axis=1))
        seen = seen[draw.uniform(size=len(seen)) > missing][:most]
        at = at[seen] + draw.normal(scale=noise, size=(len(seen), 2)).clip(-2, 2)
        places = np.sort(draw.integers(0, len(seen) + 1, false))
        at = np.insert(at, places, draw.uniform((0, 0), SIZE, (false, 2)), axis=0)
        return at, np.insert(seen, places, -1)

    def away(self, solution):
        """Degrees from where the solution points."""
        both = directions(self.ra, self.dec), directions(solution.ra, solution.dec)
        return np.degrees(np.arctan2(np.linalg.norm(np.cross(*both)), both[0] @ both[1]))

    def expect(self, solution, pixels=1.0):
        assert solution.solved and solution.reason == "" and solution.mirrored == self.mirrored
        pixel = self.fov / SIZE[0]
        assert self.away(solution) < pixels * pixel
        assert solution.fov == pytest.approx(self.fov, rel=0.004)
        assert solution.scale == pytest.approx(np.degrees(3600 / self.focal), rel=0.004)
        if abs(self.dec) < 85:
            assert abs((solution.roll - self.roll + 180) % 360 - 180) < 0.3 / np.cos(np.radians(self.dec))


NARROW, WIDE = random_sky(20000, 1, (10, 16)), random_sky(4000, 2, (30, 70))
SKIES = {"narrow": NARROW, "wide": WIDE}


@pytest.fixture(scope="module", params=SKIES)
def kind(request):
    return request.param


_built = {}


def database(kind):
    if kind not in _built:
        _built[kind] = Database(**SKIES[kind])
    return _built[kind]


def fields(kind, n, seed, **how):
    draw = np.random.default_rng(seed)
    least, most = SKIES[kind]["fov"]
    cameras = [Camera(draw, draw.uniform(least + 0.3, most - 0.3), i % 3 == 0) for i in range(n)]
    seen = [camera.sees(SKIES[kind], draw, **how) for camera in cameras]
    return cameras, [at for at, _ in seen], [stars for _, stars in seen]


def shuffled(field, seed=0):
    draw = np.random.default_rng(seed)
    return np.stack([draw.permutation(field[:, 0]), draw.permutation(field[:, 1])], axis=1)


def test_fields_are_solved(kind):
    cameras, seen, stars = fields(kind, 100, 3)
    db = database(kind)
    for camera, at, star, solution in zip(cameras, seen, stars, db.solve(seen, SIZE)):
        camera.expect(solution, 2)
        assert solution.log10_chance < -6 and not solution.hinted and not solution.limited
        assert solution.stars.shape == (len(at),) and solution.matched == (solution.stars >= 0).sum()
        known = solution.stars >= 0
        assert known.sum() >= 0.9 * (star >= 0).sum()
        assert (solution.stars[known & (star >= 0)] == star[known & (star >= 0)]).mean() > 0.9
        off = at[known] - camera(db.ra[solution.stars[known]], db.dec[solution.stars[known]])
        assert solution.rms < 3 and np.median(np.hypot(*off.T)) < 2
        assert [db.names[i] for i in solution.stars[known][:2]] == [
            SKIES[kind]["names"][np.argsort(SKIES[kind]["magnitude"], kind="stable")[i]]
            for i in solution.stars[known][:2]
        ]


@pytest.mark.parametrize("dec", [90, -90, 89.9, -89.97, 0])
def test_fields_at_poles(dec):
    draw = np.random.default_rng(4)
    camera = Camera(draw, 13, dec=dec)
    at, _ = camera.sees(NARROW, draw, missing=0, false=0)
    solution = database("narrow").solve(at, SIZE)
    camera.expect(solution)
    x, y = solution.pixel(*solution.sky(at[:, 0], at[:, 1]))
    assert np.abs(np.stack([x, y], 1) - at).max() < 1e-3


@pytest.mark.parametrize("dec", [90, -90, 89.99999, -89.999999])
def test_directions_next_to_a_pole_belong_to_the_right_ascension(dec):
    db = database("narrow")
    for seed in range(4):
        draw = np.random.default_rng(seed)
        at, _ = Camera(draw, 13, dec=dec).sees(NARROW, draw, noise=0, missing=0, false=0)
        s = db.solve(at, SIZE)
        off = directions(*s.sky(*at.T)) - directions(*gnomonic(s.wcs(), *(at + 0.5).T))
        assert np.degrees(np.linalg.norm(off, axis=1)).max() < 1e-3 * s.fov / SIZE[0]
        assert s.wcs()["LONPOLE"] == 180  # FITS has another default where CRVAL2 is 90
        again = db.solve(at, SIZE, near=(s.ra, s.dec, s.roll), radius=0.1, limit=0)
        assert again.hinted and np.abs(again.pixel(s.ra, s.dec) - SIZE / 2).max() < 0.01


def test_brightness_gives_the_order():
    _, seen, _ = fields("narrow", 3, 5)
    db, draw = database("narrow"), np.random.default_rng(5)
    plain = db.solve(seen, SIZE)
    orders = [draw.permutation(len(at)) for at in seen]
    light = [-np.arange(len(at), dtype=float)[order] for at, order in zip(seen, orders)]
    mixed = [at[order] for at, order in zip(seen, orders)]
    for a, b, order in zip(plain, db.solve(mixed, SIZE, brightness=light), orders):
        assert (a.ra, a.dec, a.rms, a.matched) == (b.ra, b.dec, b.rms, b.matched)
        assert np.array_equal(a.stars[order], b.stars)
    assert np.array_equal(db.solve(mixed[0], SIZE, brightness=light[0]).stars, plain[0].stars[orders[0]])


def test_a_batch_goes_on():
    cameras, seen, _ = fields("narrow", 4, 6)
    batch = [seen[0], np.empty((0, 2)), shuffled(seen[1]), seen[1], seen[2][:3], [], seen[3].tolist()]
    solutions = database("narrow").solve(batch, SIZE.tolist())
    assert [s.solved for s in solutions] == [True, False, False, True, False, False, True]
    for camera, i in zip([cameras[0], cameras[1], cameras[3]], [0, 3, 6]):
        camera.expect(solutions[i], 2)
    assert [solutions[i].reason for i in (1, 4, 5)] == [
        "no solution (0 centroids)",
        "no solution (3 centroids)",
        "no solution (0 centroids)",
    ]
    for s, at in zip(solutions, batch):
        assert len(s.stars) == len(at)
        if not s.solved:
            assert np.isnan([s.ra, s.dec, s.roll, s.fov, s.scale, s.rms, s.log10_chance]).all()
            assert s.matched == 0 and (s.stars == -1).all() and s.reason in repr(s)
            for call in (s.wcs, lambda s=s: s.sky(1, 2), lambda s=s: s.pixel(1, 2)):
                with pytest.raises(ValueError, match="no solution"):
                    call()
    one = database("narrow").solve(seen[3].tolist(), SIZE)
    assert isinstance(one, Solution) and one.ra == solutions[6].ra
    assert database("narrow").solve([], SIZE) == []


def test_more_centroids_than_count():
    draw = np.random.default_rng(7)
    camera = Camera(draw, 13)
    at, _ = camera.sees(NARROW, draw, most=1000, false=0)
    at = np.concatenate([at, draw.uniform((0, 0), SIZE, (130, 2))])
    solution = database("narrow").solve(at, SIZE)
    camera.expect(solution, 2)
    assert (solution.stars[128:] == -1).all() and len(solution.stars) == len(at)


def test_crowded_fields():
    draw = np.random.default_rng(8)
    camera = Camera(draw, 13)
    at, star = camera.sees(NARROW, draw, missing=0, false=0)
    leaves = draw.uniform((0, 600), SIZE, (300, 2))
    solution = database("narrow").solve(np.concatenate([leaves, at]), SIZE)
    camera.expect(solution, 2)
    known = np.flatnonzero(solution.stars[300:] >= 0)
    assert len(known) > 15 and (solution.stars[300:][known] == star[known]).mean() > 0.9


def gnomonic(header, x, y):
    """Right ascension and declination by FITS keywords; x and y count from 1."""
    x, y = x - header["CRPIX1"], y - header["CRPIX2"]
    xi = np.radians(header["CD1_1"] * x + header["CD1_2"] * y)
    eta = np.radians(header["CD2_1"] * x + header["CD2_2"] * y)
    middle = np.radians(header["CRVAL2"])
    away = np.cos(middle) - eta * np.sin(middle)
    ra = header["CRVAL1"] + np.degrees(np.arctan2(xi, away))
    return ra, np.degrees(np.arctan2(np.sin(middle) + eta * np.cos(middle), np.hypot(xi, away)))


def test_world_coordinates(kind):
    cameras, seen, _ = fields(kind, 30, 9)
    for camera, at, s in zip(cameras, seen, database(kind).solve(seen, SIZE)):
        x, y = at.T
        ra, dec = s.sky(x, y)
        assert ((ra >= 0) & (ra < 360)).all()
        limit = 1e-3 * camera.fov / SIZE[0]  # thousandths of a pixel
        answers = [gnomonic(s.wcs(), x + 0.5, y + 0.5)]
        if importlib.util.find_spec("astropy"):
            from astropy.wcs import WCS

            answers.append(WCS(s.wcs()).all_pix2world(x - 0.5, y - 0.5, 0))
        for its_ra, its_dec in answers:
            off = directions(ra, dec) - directions(its_ra, its_dec)
            assert np.degrees(np.linalg.norm(off, axis=1)).max() < limit
        back = np.stack(s.pixel(ra, dec), axis=1)
        assert np.abs(back - at).max() < 1e-3  # axes are in single precision
        assert np.hypot(*(camera(ra, dec) - at).T).max() < 4
        behind = s.pixel((s.ra + 180) % 360, -s.dec)
        assert np.isnan(behind).all()
        assert np.ndim(s.sky(3, 4)[0]) == 0 and s.sky(3, [4, 5])[1].shape == (2,)
        assert s.sky(*(SIZE / 2)) == pytest.approx((s.ra, s.dec), abs=1e-4 / np.cos(np.radians(s.dec)))


def test_hints(kind):
    cameras, seen, _ = fields(kind, 60, 10)
    db = database(kind)
    plain = db.solve(seen, SIZE)
    by_solution = db.solve(seen, SIZE, near=plain, limit=0)
    off = [(c.ra, c.dec + (0.7 if c.dec < 0 else -0.7), c.roll + 0.5) for c in cameras]
    by_angles = db.solve(seen, SIZE, near=off, limit=0)
    half = [s if i % 2 else None for i, s in enumerate(plain)]
    by_half = db.solve(seen, SIZE, near=half)
    elsewhere = db.solve(seen, SIZE, near=(cameras[0].ra, -cameras[0].dec, 77))
    for i, camera in enumerate(cameras):
        for s in (by_solution[i], by_angles[i]):
            camera.expect(s, 2)
            assert s.hinted and not s.limited
        assert by_half[i].hinted == (i % 2 == 1)
        camera.expect(by_half[i], 2)
        assert elsewhere[i].ra == plain[i].ra and not elsewhere[i].hinted
    one = db.solve(seen[0], SIZE, near=plain[0])
    assert one.hinted and one.ra == by_solution[0].ra
    # What does not fit: another field, one without a solution, a radius that is too small.
    wrong = db.solve(seen[0], SIZE, near=plain[1], limit=0)
    assert not wrong.solved and wrong.limited and wrong.reason.startswith("no solution by the hint")
    assert not db.solve(seen[0], SIZE, near=wrong).hinted
    assert not db.solve(shuffled(seen[0]), SIZE, near=plain[0], limit=0).solved
    assert not db.solve(seen[0], SIZE, near=off[0], radius=0.3, limit=0).solved
    assert db.solve(seen[0], SIZE, near=off[0], radius=1.5, limit=0).hinted
    # Of a picture of another size of the same camera.
    assert db.solve(seen[0] / 2, SIZE / 2, near=plain[0], limit=0).hinted


def test_limit():
    _, seen, _ = fields("narrow", 10, 11)
    db = database("narrow")
    hopeless = [shuffled(at, i) for i, at in enumerate(seen)]
    for s in db.solve(hopeless, SIZE, limit=1000):
        assert not s.solved and s.limited and "within the limit of 1000 patterns" in s.reason
    for s in db.solve(hopeless, SIZE):
        assert not s.solved and not s.limited
    assert all(s.limited for s in db.solve(seen, SIZE, limit=0))
    assert all(s.solved or s.limited for s in db.solve(seen, SIZE, limit=1))
    assert [s.ra for s in db.solve(seen, SIZE, limit=2**63 - 1)] == [s.ra for s in db.solve(seen, SIZE)]


def test_a_guess_of_the_width():
    draw = np.random.default_rng(12)
    camera = Camera(draw, 12)
    at, _ = camera.sees(NARROW, draw, missing=0, false=0)
    db = database("narrow")
    camera.expect(db.solve(at, SIZE, fov=(11.5, 12.5)))
    assert not db.solve(at, SIZE, fov=(14, 15)).solved
    assert not db.solve(at, SIZE, fov=(14, 15), near=db.solve(at, SIZE)).solved
    assert not db.solve(at, SIZE, chance=1e-300).solved


def test_files(tmp_path):
    db = database("narrow")
    assert len(db) == 20000 and db.fov == (10, 16) and "20000 stars" in repr(db)
    order = np.argsort(NARROW["magnitude"], kind="stable")
    assert np.allclose(db.magnitude, NARROW["magnitude"][order], atol=1e-6)
    assert np.abs(db.dec - NARROW["dec"][order]).max() < 1e-4
    assert db.names == [NARROW["names"][i] for i in order]
    with pytest.raises(ValueError, match="read-only"):
        db.ra[0] = 1
    db.save(tmp_path / "sky")
    again = Database(os.fsencode(tmp_path / "sky"))
    assert (len(again), again.fov, again.patterns, again.names) == (len(db), db.fov, db.patterns, db.names)
    _, (at,), _ = fields("narrow", 1, 13)
    assert again.solve(at, SIZE).ra == Database(str(tmp_path / "sky")).solve(at, SIZE).ra
    few = Database(**NARROW | {"magnitude_most": 7.5, "names": None})
    assert len(few) == (NARROW["magnitude"] <= 7.5).sum() and few.names == [""] * len(few)
    (tmp_path / "cut").write_bytes((tmp_path / "sky").read_bytes()[:-1])
    for file, why in (("cut", "cut off"), ("none", "cannot be read")):
        with pytest.raises(OSError, match=f"{file}: .*{why}"):
            Database(tmp_path / file)
    with pytest.raises(OSError, match="none/sky"):
        db.save(tmp_path / "none" / "sky")
    with pytest.raises(TypeError):
        pickle.dumps(db)


STARS = {"ra": [1, 2, 3, 4.0], "dec": [1, 2, 1, 2.0], "magnitude": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"ra": None}, TypeError, "give a file, or ra, dec and magnitude"),
        ({"file": "x"}, TypeError, "a file and arrays"),
        ({"file": "x", "ra": None, "dec": None, "magnitude": None, "fov": (8, 20)}, TypeError, "a file and"),
        ({"file": 3, "ra": None, "dec": None, "magnitude": None}, TypeError, "of type int"),
        ({"ra": [1, 2, 3]}, ValueError, r"shapes \(3,\), \(4,\), \(4,\)"),
        ({"ra": [1, 2, 3, 361]}, ValueError, r"ra\[3\] is 361.0"),
        ({"ra": [1, 2, 3, -180.5]}, ValueError, r"ra\[3\] is -180.5"),
        ({"dec": [1, 91, 3, 4]}, ValueError, r"dec\[1\] is 91.0"),
        ({"dec": [1, np.nan, 3, 4]}, ValueError, "dec: nan"),
        ({"magnitude": [1, np.inf, 3, 4]}, ValueError, "magnitude: inf"),
        ({"magnitude": [1, -26.7, 3, 4]}, ValueError, r"magnitude\[1\] is -26.7"),
        ({"magnitude": ["1", "2", "3", "4"]}, TypeError, "magnitude: <U1 where numbers"),
        ({"magnitude": [True] * 4}, TypeError, "magnitude: bool where numbers"),
        ({"magnitude": np.ma.array([1, 2, 3, 4], mask=[0, 0, 0, 1])}, TypeError, "masked"),
        ({"ra": [1, 2, 3, 2**53 + 1]}, OverflowError, "9007199254740993"),
        ({"names": ["a", "b", "c"]}, ValueError, "3 names"),
        ({"names": ["a", "b", "c", "d\n5 e"]}, TypeError, "strings of one line"),
        ({"names": ["a", "b", "c", 4]}, TypeError, "names: 4"),
        ({"names": ["a", "b", "c", "\ud800"]}, ValueError, "half a character"),
        ({"fov": (0.1, 5)}, ValueError, "0.2 to 90"),
        ({"fov": (5, 91)}, ValueError, "0.2 to 90"),
        ({"fov": (9, 5)}, ValueError, "0.2 to 90"),
        ({"fov": 9}, ValueError, "0.2 to 90"),
        ({"magnitude_most": np.nan}, ValueError, "magnitude_most: nan"),
        ({"magnitude_most": 2}, ValueError, "2 stars to magnitude 2;"),
        ({"ra": [0, 90, 180, 270]}, ValueError, "one picture of 20 degrees;"),
    ],
)
def test_stars_that_are_refused(change, error, words):
    with pytest.raises(error, match=words) as refused:
        Database(**STARS | change)
    assert "\n" not in str(refused.value)


FEW = {name: NARROW[name][:300] for name in ("ra", "dec", "magnitude")} | {"fov": (40, 50)}


def test_units():
    """Positions in any unit are those in degrees; without a unit they are degrees, or refused."""
    ra, dec, magnitude, fov = FEW.values()
    wanted = Database(**FEW)
    given = {
        "hours": (ra / 15, dec, "hours"),
        "radians": (np.radians(ra), np.radians(dec), "radians"),
        "degrees": (ra / 15, dec, "degrees"),
    }
    u = pytest.importorskip("astropy.units")
    table, masked = (pytest.importorskip(f"astropy.{name}") for name in ("table", "utils.masked"))
    sky = pytest.importorskip("astropy.coordinates").SkyCoord(ra * u.deg, dec * u.deg)
    given |= {
        "quantities": (ra / 15 * u.hourangle, np.radians(dec) * u.rad, None),
        "minutes": (ra * 60 * u.arcmin, dec, None),
        "columns": (table.Column(ra / 15, unit="hourangle"), table.MaskedColumn(dec, unit="deg"), None),
        "masks": (masked.Masked(ra * u.deg), masked.Masked(dec), None),
        "list": ([a * u.deg for a in ra], dec.tolist(), None),
        "sky": (sky.ra, sky.dec, None),
        "narrow floats": (np.radians(ra).astype("f4") * u.rad, dec, None),
    }
    for name, (a, d, units) in given.items():
        found = Database(ra=a, dec=d, magnitude=magnitude, units=units, fov=fov)
        turn = 15 if name == "degrees" else 1
        east = ((found.ra * turn - wanted.ra + 180) % 360 - 180) * np.cos(np.radians(wanted.dec))
        off = max(np.abs(east).max(), np.abs(found.dec - wanted.dec).max())
        assert off < (1e-4 if turn == 1 else 1e-2), name
    for a, d, units, words in (
        (ra / 15, dec, None, "look like hours; give units"),
        (np.radians(ra), np.radians(dec), None, "look like radians; give units"),
        (ra, np.radians(dec), None, "declinations in radians and right ascensions in degrees"),
        (np.where(ra > 300, ra - 360, ra), dec, None, "more than a turn"),
        (ra, dec, "hours", r"ra\[\d+\] is"),
        (ra, dec, "deg", "units: 'deg'; give .'degrees', 'hours', 'radians'"),
        (ra * u.deg, dec, "degrees", "which numbers with a unit have"),
        (ra * u.hourangle, dec, None, r"ra\[\d+\] is"),
        (ra * u.km, dec, None, "ra: numbers of the unit km, which are no deg"),
        (table.Column(ra, unit="h"), dec, None, "ra: numbers of the unit h, which"),
        (table.MaskedColumn(ra, mask=ra > 300, unit="deg"), dec, None, "ra: a masked array"),
        (masked.Masked(ra * u.deg, mask=ra > 300), dec, None, "ra: a masked array"),
    ):
        with pytest.raises((TypeError, ValueError), match=words) as refused:
            Database(ra=a, dec=d, magnitude=magnitude, units=units, fov=fov)
        assert "\n" not in str(refused.value)
    least, most = (40 * u.deg, 0.9 * u.rad)
    wide = Database(**FEW | {"fov": (least, most)})
    assert np.allclose(wide.fov, (40, np.degrees(0.9)))
    camera, (at,), _ = fields("narrow", 1, 13)
    db = database("narrow")
    plain = db.solve(at, SIZE)
    near = (plain.ra / 15 * u.hourangle, np.radians(plain.dec) * u.rad, plain.roll)
    assert db.solve(at * u.pix, SIZE, near=near, radius=30 * u.arcmin, limit=0).hinted
    pixel = plain.pixel(plain.ra * u.deg, np.radians(plain.dec) * u.rad)
    assert np.allclose(pixel, np.array(SIZE) / 2, atol=1e-2)


@pytest.mark.parametrize(
    "centroids, options, error, words",
    [
        ([[1, 2, 3]], {}, ValueError, r"shape \(1, 3\)"),
        ([1, 2], {}, ValueError, r"shape \(2,\)"),
        ([[1, np.nan]], {}, ValueError, "nan"),
        ([[1, 2], [1025, 3]], {}, ValueError, "centroid 1 is at 1025, 3, outside of .* 1024 x 768"),
        ([[1, 2], [-0.1, 3]], {}, ValueError, "centroid 1 is at -0.1, 3"),
        ([[[1, 2]], [[1, 2], [3, 800]]], {}, ValueError, "field 1: centroid 1 is at 3, 800"),
        ([["a", "b"]], {}, TypeError, "numbers are expected"),
        ([[1, 2]], {"size": (15, 100)}, ValueError, "size: .*16 to 100000"),
        ([[1, 2]], {"size": (1024, 10**6)}, ValueError, "size: .*16 to 100000"),
        ([[1, 2]], {"size": 1024}, ValueError, "size: 1024"),
        ([[1, 2]], {"brightness": [1, 2]}, ValueError, "brightness of shape"),
        ([[1, 2]], {"brightness": [np.nan]}, ValueError, "brightness: nan"),
        ([[[1, 2]], [[1, 2]]], {"brightness": [[1]]}, ValueError, "brightness of 1 fields"),
        ([[1, 2]], {"fov": (1, 2)}, ValueError, "for 10.0 to 16.0"),
        ([[1, 2]], {"fov": (12, 11)}, ValueError, "fov: "),
        ([[1, 2]], {"near": (1, 2)}, ValueError, "near: "),
        ([[1, 2]], {"near": (1, 92, 3)}, ValueError, "near: "),
        ([[1, 2]], {"near": (1, np.nan, 3)}, ValueError, "near: nan"),
        ([[1, 2]], {"near": [None]}, ValueError, "near: a list"),
        ([[[1, 2]]], {"near": [None, None]}, ValueError, "near: a list of 2 for 1 fields"),
        ([[1, 2]], {"radius": 0}, ValueError, "radius: 0"),
        ([[1, 2]], {"radius": 10.5}, ValueError, "radius: 10.5"),
        ([[1, 2]], {"chance": 0}, ValueError, "chance: 0"),
        ([[1, 2]], {"chance": 1.5}, ValueError, "chance: 1.5"),
        ([[1, 2]], {"limit": -1}, ValueError, "limit=-1"),
        ([[1, 2]], {"limit": 2.5}, TypeError, "whole number"),
    ],
)
def test_fields_that_are_refused(centroids, options, error, words):
    with pytest.raises(error, match=words) as refused:
        database("narrow").solve(centroids, **{"size": SIZE} | options)
    assert "\n" not in str(refused.value)


def test_paths_and_places_that_are_refused(tmp_path):
    db, name = database("narrow"), str(tmp_path / "sky")
    db.save(name)
    for wrong in (name + "\0.new", "", b"\xff", "\ud800"):
        for call in (Database, db.save):
            with pytest.raises(ValueError, match="the path"):
                call(wrong)
    assert [file.name for file in tmp_path.iterdir()] == ["sky"]
    with pytest.raises(TypeError, match="a file of type int"):
        Database(5)
    _, seen, _ = fields("narrow", 1, 3)
    s = db.solve(seen[0], SIZE)
    for dec in (90.5, [0, -91]):
        with pytest.raises(ValueError, match="dec: -?9[0-9.]+; give -90 to 90"):
            s.pixel(0, dec)
    with pytest.raises(ValueError, match=r"x and y of shapes \(2,\) and \(3,\); give"):
        s.sky([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"ra and dec of shapes \(2,\) and \(3,\); give"):
        s.pixel([1, 2], [1, 2, 3])


def picture(camera, draw):
    at, _ = camera.sees(NARROW, draw, noise=0, missing=0, false=0, most=35)
    image = draw.normal(20, 2, SIZE[::-1])
    for i, (x, y) in enumerate(at):
        rows, columns = np.mgrid[max(int(y) - 8, 0) : int(y) + 9, max(int(x) - 8, 0) : int(x) + 9]
        rows, columns = rows[rows[:, 0] < SIZE[1]], columns[: len(rows[rows[:, 0] < SIZE[1]])]
        here = columns < SIZE[0]
        light = (300 - 7 * i) * np.exp(-((columns + 0.5 - x) ** 2 + (rows + 0.5 - y) ** 2) / 4)
        np.add.at(image, (rows[here], columns[here]), light[here])
    image[draw.integers(0, SIZE[1], 40), draw.integers(0, SIZE[0], 40)] = 5000  # hot pixels
    return at, image


def test_images():
    pytest.importorskip("sep")
    draw = np.random.default_rng(14)
    for mirrored in (False, True):
        camera = Camera(draw, 13, mirrored)
        at, image = picture(camera, draw)
        plain = database("narrow").solve_image(image)
        camera.expect(plain, 1)
        found = roost.stars.find_stars(image)
        near = np.hypot(*(found[:, None] - at[None]).T)
        assert (near.min(axis=1) < 0.5).sum() >= 30 and len(plain.stars) == len(found)
        # Of other types and ranges.
        for other in (image.clip(0, 255).astype("u1"), image * 1e-40, image * 1e5 + 1e9):
            camera.expect(database("narrow").solve_image(other), 1)
        assert database("narrow").solve_image(image, near=plain).hinted
    for nothing in (np.zeros((100, 100)), np.full((16, 16), 7)):
        solution = database("narrow").solve_image(nothing)
        assert solution.reason == "no solution (0 centroids)"
    for wrong, words in (
        (np.zeros((3, 100, 100)), r"shape \(3, 100, 100\)"),
        (np.zeros((15, 100)), "16 x 16 at least"),
        (np.full((100, 100), np.nan), "nan"),
    ):
        with pytest.raises(ValueError, match=words):
            database("narrow").solve_image(wrong)
    palette = image.view(type("OfPil", (np.ndarray,), {"mode": "P"}))
    with pytest.raises(TypeError, match="of mode P"):
        database("narrow").solve_image(palette)
    with pytest.raises(TypeError, match="brightness of centroids"):
        database("narrow").solve_image(image, brightness=range(len(found)))


def test_images_without_sep(monkeypatch):
    monkeypatch.setitem(sys.modules, "sep", None)
    with pytest.raises(ImportError, match="needs sep; pip install sep$"):
        database("narrow").solve_image(np.zeros((100, 100)))


def test_threads():
    _, seen, _ = fields("narrow", 40, 15)
    db, answers = database("narrow"), {}
    plain = db.solve(seen, SIZE)

    def ask(i):
        answers[i] = [s.ra for s in db.solve(seen, SIZE)]

    all_of_them = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    assert all(answers[i] == [s.ra for s in plain] for i in range(4))
    roost.set_threads(1)
    try:
        assert [s.ra for s in db.solve(seen, SIZE)] == [s.ra for s in plain]
        assert roost.stars._apps.threads() == 1
    finally:
        roost.set_threads(0)
    roost.trim()


def test_interrupts():
    program = (
        "import signal, numpy as np, roost.stars\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it\n"
        "draw = np.random.default_rng(1)\n"
        "n = 20000\n"
        "sky = roost.stars.Database(ra=draw.uniform(0, 360, n), dec=draw.uniform(-89, 89, n),\n"
        "                           magnitude=draw.uniform(1, 6, n), fov=(10, 16))\n"
        "fields = [draw.uniform((0, 0), (1024, 768), (40, 2)) for _ in range(20000)]\n"
        "print('begins', flush=True)\n"
        "sky.solve(fields, (1024, 768), limit=2**40)\n"
        "print('ended')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"begins\n"
        time.sleep(1.5)
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert b"KeyboardInterrupt" in err and b"ended" not in out
    assert time.monotonic() - start < 10
