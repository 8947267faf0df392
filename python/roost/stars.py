"""Where pictures of stars point.

    >>> import numpy as np, roost.stars
    >>> draw = np.random.default_rng(1)
    >>> ra, height = draw.uniform(0, 360, 5000), draw.uniform(-1, 1, 5000)
    >>> dec = np.degrees(np.arcsin(height))
    >>> sky = roost.stars.Database(
    ...     ra=ra, dec=dec, magnitude=draw.uniform(1, 6, 5000), fov=(15, 25))
    >>> len(sky)
    5000
    >>> sky.solve(np.empty((0, 2)), (1024, 768)).reason
    'no solution (0 centroids)'

A Database is what `roost stars build` writes, or is built from arrays of stars. `solve` takes what was seen
in pictures, one or many, and finds out where each points, as `roost stars solve` does; `solve_image` finds
what is seen in an array of pixels first. docs/matching.md says how it works. All of it runs on the CPU, on as
many threads as roost.set_threads says, without the GIL; Ctrl-C ends a call between two fields.
"""

import math

import numpy as np

from . import _apps, _host
from ._arrays.exact import expect_shades, has_unit, real_number, real_numbers, shown
from ._options import path_of, whole_number

__all__ = ["Database", "Solution", "find_stars"]

_ROW = np.dtype(
    [(name, "f8") for name in ("ra", "dec", "roll", "fov", "scale")]
    + [("axes", "f8", (3, 3)), ("focal", "f8"), ("rms", "f8"), ("log10_chance", "f8")]
    + [(name, "i8") for name in ("solved", "mirrored", "hinted", "limited", "matched")]
)
_HINT = np.dtype([("kind", "f8"), ("numbers", "f8", 10)])  # kind 1: ra, dec, roll; 2: axes and focal length


def _pair(x, what, low, high, advice, unit=None):
    """Two numbers, both from `low` to `high`."""
    numbers = real_numbers(x, what, unit=unit)
    if numbers.shape != (2,) or not ((numbers >= low) & (numbers <= high)).all():
        raise ValueError(f"{what}: {shown(x)}; {advice}")
    return numbers


def _fov(fov, what):
    advice = "give the least and the greatest width of pictures in degrees, 0.2 to 90, such as (8, 20)"
    least, most = map(float, _pair(fov, f"{what}: fov", 0.2, 90, advice, "deg"))
    if least > most:
        raise ValueError(f"{what}: fov: {shown(fov)}; {advice}")
    return least, most


def _use_threads():
    """As many as roost has."""
    threads = _host.threads()
    if _apps.threads() != threads:
        _apps.set_threads(threads)


def _together(what, unit, **each):
    """Two arrays of numbers, or an array and a number."""
    arrays = [real_numbers(x, f"{what}: {name}", unit=unit) for name, x in each.items()]
    try:
        np.broadcast(*arrays)
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise ValueError(f"{what}: {' and '.join(each)} of shapes {shapes}; give as many of both") from None
    return arrays


_UNITS = {"degrees": (1, 1), "hours": (15, 1), "radians": (180 / math.pi, 180 / math.pi)}


def _expect_degrees(ra, dec, what):
    """Refuses positions that the command refuses, too, if nobody says their unit."""
    if ra.min() < 0 and ra.max() > 180.0001:
        look = "are more than a turn; correct them"
    elif look := _apps.look_of(np.stack([ra, dec], axis=1)):
        look = f"look like {look}; give units='degrees', 'hours' or 'radians'"
    if look:
        ranges = f"ra from {ra.min():g} to {ra.max():g} and dec from {dec.min():g} to {dec.max():g}"
        raise ValueError(f"{what}: {ranges}, which {look}")


def _directions(ra, dec):
    ra, dec = np.radians(ra), np.radians(dec)
    return np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)


class Solution:
    """Where a picture points, or why that is not known.

    Attributes
    ----------
    solved : bool
        Whether there is an answer. If not, floats are NaN.
    reason : str
        Why there is none; empty if there is one.
    ra, dec : float
        Right ascension and declination (ICRS) of the picture's middle, in degrees.
    roll : float
        The angle from up in the picture to north, counter-clockwise, in degrees.
    fov, scale : float
        The width of the picture in degrees, and seconds of arc a pixel in its middle.
    mirrored : bool
        East is to the right when north is up, which no camera sees without a mirror.
    matched : int
        How many centroids are stars; of the brightest 128.
    rms : float
        How far these are from their stars, in pixels.
    log10_chance : float
        The decimal logarithm of the probability that so many fit by chance.
    stars : numpy.ndarray
        For each centroid its star, as int64: the place in `ra`, `dec`, `magnitude` and `names` of the
        database; -1 for none.
    hinted : bool
        The field points where `near` said. False where all of the sky was searched.
    limited : bool
        The search was given up at its limit.
    size : tuple
        Width and height of the picture in pixels.
    """

    @classmethod
    def _of(cls, row, stars, size, reason):
        self = cls()
        self.solved, self.reason, self.stars, self.size = bool(row["solved"]), reason, stars, size
        self.mirrored, self.hinted, self.limited = (
            bool(row[name]) for name in ("mirrored", "hinted", "limited")
        )
        self.matched = int(row["matched"])
        for name in ("ra", "dec", "roll", "fov", "scale", "rms", "log10_chance"):
            setattr(self, name, float(row[name]) if self.solved else math.nan)
        self._axes, self._focal = row["axes"], float(row["focal"])
        return self

    def __repr__(self):
        if not self.solved:
            return f"Solution({self.reason})"
        return (
            f"Solution(ra={self.ra:.4f}, dec={self.dec:.4f}, roll={self.roll:.3f}, fov={self.fov:.4f}, "
            f"mirrored={self.mirrored}, matched={self.matched}, rms={self.rms:.2f}, "
            f"log10_chance={self.log10_chance:.0f})"
        )

    def _expect_solved(self, what):
        if not self.solved:
            raise ValueError(f"roost.stars.Solution.{what}: {self.reason}")

    def wcs(self):
        """The world coordinates as FITS keywords: a dict that astropy.wcs.WCS takes.

        The projection is gnomonic. Pixel (1, 1) of FITS is the first one of the array: its middle is at x =
        y = 0.5 here, and at 0, 0 in astropy's pixel_to_world. ValueError if there is no solution.
        """
        self._expect_solved("wcs")
        x, y, z = self._axes
        ra = math.radians(self.ra)
        east = np.array([-math.sin(ra), math.cos(ra), 0.0])  # also next to a pole it belongs to CRVAL1
        north = np.cross(z, east)
        scale = math.degrees(1 / self._focal)
        header = {"WCSAXES": 2, "CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CUNIT1": "deg", "CUNIT2": "deg"}
        # LONPOLE: at a pole the default is another.
        header |= {"RADESYS": "ICRS", "CRVAL1": self.ra, "CRVAL2": self.dec, "LONPOLE": 180.0}
        header |= {"CRPIX1": self.size[0] / 2 + 0.5, "CRPIX2": self.size[1] / 2 + 0.5}
        header |= {"CD1_1": float(x @ east) * scale, "CD1_2": float(y @ east) * scale}
        header |= {"CD2_1": float(x @ north) * scale, "CD2_2": float(y @ north) * scale}
        return header

    def sky(self, x, y):
        """Right ascension and declination in degrees for pixels x, y from the upper left corner:
        numbers or arrays, also outside of the picture. ValueError if there is no solution."""
        self._expect_solved("sky")
        x, y = _together("roost.stars.Solution.sky", "pix", x=x, y=y)
        x, y = x - self.size[0] / 2, y - self.size[1] / 2
        (a, b, c), (d, e, f), (g, h, i) = self._axes
        u, v, w = (x * p + y * q + self._focal * r for p, q, r in ((a, d, g), (b, e, h), (c, f, i)))
        return np.degrees(np.arctan2(v, u)) % 360, np.degrees(np.arctan2(w, np.hypot(u, v)))

    def pixel(self, ra, dec):
        """The pixels x, y from the upper left corner that right ascension and declination in degrees are at:
        numbers or arrays, also outside of the picture; NaN for what is behind the camera. ValueError if
        there is no solution, and for declinations beyond -90 and 90."""
        self._expect_solved("pixel")
        what = "roost.stars.Solution.pixel"
        ra, dec = _together(what, "deg", ra=ra, dec=dec)
        beyond = dec[np.abs(dec) > 90]
        if len(beyond):
            raise ValueError(f"{what}: dec: {beyond[0]:g}; give -90 to 90")
        u, v, w = _directions(ra, dec)
        x, y, away = (p * u + q * v + r * w for p, q, r in self._axes)
        part = self._focal / np.where(away > 0, away, np.nan)
        return x * part + self.size[0] / 2, y * part + self.size[1] / 2


class Database:
    """Stars and the patterns of them that pictures show: loaded from a file, or built from arrays.

    Parameters
    ----------
    file : str or path
        What `roost stars build` or `save` has written. Nothing else may be given then.
    ra, dec : array
        Positions of stars in degrees: -180 to 360, and -90 to 90. Columns and quantities of astropy are
        converted to degrees by their units.
    magnitude : array
        Their magnitudes, from -20 to 50.
    names : sequence of str, optional
        Their names, each one line, empty for none.
    fov : tuple, optional
        The least and the greatest width of the pictures to solve, in degrees, from 0.2 to 90; (8, 20) by
        default. The wider this range, the larger the database.
    magnitude_most : float, optional
        Stars that are fainter are left out.
    units : str, optional
        What numbers in `ra` and `dec` are: "degrees", "hours" (of `ra`; `dec` in degrees) or "radians".
        Without it and units of astropy, numbers that look like hours or radians are refused.

    Notes
    -----
    Stars lie in the order of their brightness, the brightest first; of many faint ones those that no picture
    needs are left out. `patterns` says how many patterns there are, of some 100 bytes of memory each. A
    database does not change; threads may share it. A file that cannot be read raises OSError; arrays that do
    not fit together, or hold what is no star, ValueError.
    """

    def __init__(
        self,
        file=None,
        *,
        ra=None,
        dec=None,
        magnitude=None,
        names=None,
        fov=None,
        magnitude_most=None,
        units=None,
    ):
        what = "roost.stars.Database"
        arrays = {"ra": ra, "dec": dec, "magnitude": magnitude}
        given = [name for name, array in arrays.items() if array is not None]
        _use_threads()
        if file is not None:
            if given or any(x is not None for x in (names, magnitude_most, fov, units)):
                raise TypeError(f"{what}: a file and arrays or options of one; give either")
            self._sky = _apps.load_sky(path_of(file, what))
        else:
            if len(given) < 3:
                raise TypeError(f"{what}: give a file, or ra, dec and magnitude")
            own = [has_unit(x) for x in (ra, dec)]
            if units is not None and (units not in _UNITS or any(own)):
                advice = "which numbers with a unit have already" if any(own) else f"give {list(_UNITS)}"
                raise ValueError(f"{what}: units: {shown(units)}; {advice}")
            columns = [
                real_numbers(array, f"{what}: {name}", unit=unit)
                for (name, array), unit in zip(arrays.items(), ("deg", "deg", None))
            ]
            names = self._names(names, columns[0].shape, what)
            if columns[0].ndim != 1 or len({column.shape for column in columns}) > 1:
                shapes = ", ".join(str(column.shape) for column in columns)
                raise ValueError(f"{what}: ra, dec and magnitude of shapes {shapes}; give one number a star")
            columns[:2] = (x * factor for x, factor in zip(columns, _UNITS[units or "degrees"]))
            for (name, low, high), column in zip(
                (("ra", -180, 360), ("dec", -90, 90), ("magnitude", -20, 50)), columns
            ):
                wrong = (column < low - 1e-4) | (column > high + 1e-4)  # rounded
                if wrong.any():
                    star = int(wrong.argmax())
                    raise ValueError(
                        f"{what}: {name}[{star}] is {column[star]}; those of stars are {low} to {high}"
                    )
            if units is None and not any(own) and len(columns[0]):
                _expect_degrees(*columns[:2], what)
            columns[1] = np.clip(columns[1], -90, 90)
            faintest = 50.0
            if magnitude_most is not None:
                advice = "give that of the faintest stars"
                faintest = real_number(magnitude_most, f"{what}: magnitude_most", -20, 50, advice)
            stars = np.ascontiguousarray(np.stack(columns, axis=1))
            self._sky = _apps.build_sky(stars, names, *_fov((8, 20) if fov is None else fov, what), faintest)
        self._stars = self._sky.stars().reshape(3, -1)
        self._stars.flags.writeable = False

    @staticmethod
    def _names(names, shape, what):
        if names is None:
            return []
        names = list(names)
        for name in names:
            if not isinstance(name, str) or "\n" in name or "\0" in name:
                raise TypeError(f"{what}: names: {shown(name)}; give strings of one line")
            if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
                raise ValueError(f"{what}: names: {shown(name)}; half a character is none")
        if (len(names),) != shape:
            raise ValueError(f"{what}: {len(names)} names of other stars than ra has: shape {shape}")
        return [str(name) for name in names]

    def save(self, file):
        """Writes the database to a file, whole or not at all, for this class and for `roost stars solve`.
        Raises OSError where that cannot be written."""
        self._sky.save(path_of(file, "roost.stars.Database.save"))

    def __len__(self):
        """How many stars it has."""
        return self._sky.size

    def __repr__(self):
        least, most = self.fov
        wide = f"pictures {least} to {most} degrees wide"
        return f"Database of {len(self)} stars, {self.patterns} patterns, {wide}"

    @property
    def ra(self):
        """Right ascension of each star in degrees, as kept in single precision; read-only."""
        return self._stars[0]

    @property
    def dec(self):
        """Declination of each star in degrees, as kept in single precision; read-only."""
        return self._stars[1]

    @property
    def magnitude(self):
        """Magnitude of each star, ascending; read-only."""
        return self._stars[2]

    @property
    def names(self):
        """The name of each star as a list of str, empty for none; made anew each time."""
        return self._sky.names

    @property
    def fov(self):
        """The least and the greatest width of the pictures that it is for, in degrees."""
        return self._sky.limits[:2]

    @property
    def patterns(self):
        """How many patterns it has."""
        return self._sky.patterns

    def solve(
        self,
        centroids,
        size,
        *,
        brightness=None,
        fov=None,
        near=None,
        radius=1.0,
        limit=_apps.patterns_most,
        chance=1e-6,
    ):
        """Finds out where pictures point.

        Parameters
        ----------
        centroids : array of shape (n, 2), or a list of such arrays
            What is seen in a picture: x and y in pixels from the left and the upper edge, where the middle
            of the first pixel is at 0.5; the brightest first. A list has a field for each picture. Positions
            are taken in single precision.
        size : tuple
            Width and height of the pictures in pixels, 16 to 100000.
        brightness : array of shape (n,), or a list of such arrays, optional
            Of the centroids, which may have any order then; equal ones keep theirs.
        fov : tuple, optional
            The least and the greatest width in degrees, if it is known better than by the database: faster.
        near : tuple or Solution, or a list with one of these or None for each field, optional
            Roughly where the picture points: (ra, dec, roll) in degrees, or an earlier Solution of the same
            camera, whose width and mirroring are used, too; one without an answer is ignored. The hint is
            compared with the centroids first, which takes about 0.1 ms for an earlier Solution. If it does
            not fit, the whole sky is searched; `hinted` of the result says which.
        radius : float
            How many degrees away from `near` the picture may point, 10 at most; its roll may differ by 2
            degrees.
        limit : int
            A search ends after it has compared this many patterns with a field; it checks after every 64
            quads of centroids. That takes about 50 ms; most fields need less than a thousandth of it. 0: only
            `near` is tried.
        chance : float
            The highest probability of chance for a solution: above 0, at most 1.

        Returns
        -------
        Solution, or a list of them if centroids is a list
            A field without an answer has a Solution with solved False and a reason.

        Raises ValueError or TypeError, with the number of its field, for invalid centroids and those outside
        of the picture. Fields are solved in parallel; each takes 0.1 to 0.5 ms of processor time.
        """
        what = "roost.stars.Database.solve"
        many = isinstance(centroids, (list, tuple)) and all(_is_field(field) for field in centroids)
        fields = list(centroids) if many else [centroids]
        advice = "give the width and the height of the pictures in pixels, 16 to 100000"
        size = _pair(size, f"{what}: size", 16, 100000, advice)
        lights = brightness if many and brightness is not None else [brightness] * len(fields)
        if len(lights) != len(fields):
            raise ValueError(f"{what}: brightness of {len(lights)} fields, but there are {len(fields)}")
        names = [f"{what}: field {i}" for i in range(len(fields))] if many else [what]
        taken = [_field(*each, size) for each in zip(fields, lights, names)]
        if isinstance(near, list):
            if not many or len(near) != len(fields):
                raise ValueError(f"{what}: near: a list of {len(near)} for {len(fields)} fields")
        else:
            near = [near] * len(fields)
        least, most = (0.0, 0.0) if fov is None else _fov(fov, what)
        if fov is not None and (most < self.fov[0] or least > self.fov[1]):
            raise ValueError(f"{what}: fov: {shown(fov)}; the database is for {self.fov[0]} to {self.fov[1]}")
        radius = real_number(radius, f"{what}: radius", 0, 10, "give degrees above 0, 10 at most", "deg")
        chance = real_number(chance, f"{what}: chance", 0, 1, "give a probability above 0, 1 at most")
        limit = whole_number(limit, what, "limit")
        first = np.zeros(len(fields) + 1, np.uint32)
        np.cumsum([len(at) for at, _ in taken], out=first[1:])
        hints = np.array([_hint(each, what) for each in near], _HINT)
        if not hints["kind"].any():
            hints = hints[:0]
        _use_threads()
        rows, stars, reasons = self._sky.solve(
            np.concatenate([np.empty((0, 2), np.float32), *(at for at, _ in taken)]),
            first,
            np.tile(size.astype(np.float32), (len(fields), 1)),
            hints.view(np.float64).reshape(-1, 11),
            *(least, most, chance, radius, limit),
        )
        rows, stars = rows.view(_ROW), np.split(stars, first[1:-1])
        size, solutions = tuple(size.tolist()), []
        for row, its_stars, reason, (_, order) in zip(rows, stars, reasons, taken):
            if order is not None:
                its_stars[order] = its_stars.copy()
            solutions.append(Solution._of(row, its_stars, size, reason))
        return solutions if many else solutions[0]

    def solve_image(self, image, **options):
        """Finds the stars of a picture, and where it points.

        `image`: as find_stars takes it. `options`: those of `solve`, but for brightness. The centroids of the
        Solution's `stars` are those that find_stars returns.
        """
        what = "roost.stars.Database.solve_image"
        if "brightness" in options:
            raise TypeError(f"{what}: brightness of centroids, which are found here; call solve with them")
        image = _image(image, what)
        return self.solve(find_stars(image), image.shape[::-1], **options)


def _is_field(field):
    """Whether an element of a list of centroids is one field of several."""
    return np.ndim(field) == 2 or (np.ndim(field) == 1 and len(field) == 0)


def _field(centroids, brightness, what, size):
    """Centroids from the middle of the picture, the brightest first, and that order if it is another one."""
    at = real_numbers(centroids, f"{what}: centroids", unit="pix")
    if at.shape == (0,):
        at = at.reshape(0, 2)
    if at.ndim != 2 or at.shape[1] != 2:
        raise ValueError(f"{what}: centroids of shape {at.shape}; give x and y of each: shape (n, 2)")
    outside = ((at < 0) | (at > size)).any(axis=1)
    if outside.any():
        i = int(outside.argmax())
        (x, y), (width, height) = at[i], size
        raise ValueError(
            f"{what}: centroid {i} is at {x:g}, {y:g}, outside of a picture of {width:g} x {height:g} pixels"
        )
    order = None
    if brightness is not None:
        light = real_numbers(brightness, f"{what}: brightness")
        if light.shape != at.shape[:1]:
            raise ValueError(f"{what}: brightness of shape {light.shape} for {len(at)} centroids")
        order = np.argsort(-light, kind="stable")
        at = at[order]
    return (at - size / 2).astype(np.float32), order


def _hint(near, what):
    """What `near` says as a row of _HINT."""
    if near is None or (isinstance(near, Solution) and not near.solved):
        return 0.0, np.zeros(10)
    numbers = np.zeros(10)
    if isinstance(near, Solution):
        numbers[:9], numbers[9] = near._axes.ravel(), near._focal / near.size[0]
        return 2.0, numbers
    angles = real_numbers(near, f"{what}: near", unit="deg")
    if angles.shape != (3,) or (np.abs(angles) > (360, 90, 360)).any():
        raise ValueError(f"{what}: near: {shown(near)}; give (ra, dec, roll) in degrees, or a Solution")
    numbers[:3] = angles
    return 1.0, numbers


def _image(image, what):
    expect_shades(image, what)
    image = real_numbers(image, f"{what}: image")
    if image.ndim != 2 or min(image.shape) < 16 or max(image.shape) > 100000:
        raise ValueError(
            f"{what}: an image of shape {image.shape}; give rows of pixels, 16 x 16 at least; "
            "of colours their mean: image.mean(axis=2)"
        )
    return image


def find_stars(image):
    """Finds the stars of a picture, as `roost stars solve` does. Needs the PyPI package sep.

    Parameters
    ----------
    image : array of shape (height, width)
        Brightness of pixels, of any numbers; the first row is the upper one. (Rows of FITS files begin with
        the lowest: pass image[::-1] to see the sky as a viewer does.)

    Returns
    -------
    numpy.ndarray of shape (n, 2)
        x and y from the left and the upper edge in pixels, the brightest first. Single bright pixels and what
        is much longer than all others, as satellites are, are left out.
    """
    what = "roost.stars.find_stars"
    image = _image(image, what)
    try:
        import sep
    except ImportError:
        raise ImportError(f"{what}: finding stars in images needs sep; pip install sep") from None
    least, most = image.min(), image.max()
    if not least < most:
        return np.empty((0, 2))
    # Steps and numbers of apps/stars/centroids.cpp.
    flat = np.ascontiguousarray((image - least) / (most - least) * 255, np.float32)
    background = sep.Background(flat, bw=64, bh=64, fw=3, fh=3, fthresh=0)
    background.subfrom(flat)
    noise = max(background.globalrms, (flat.max() - flat.min()) * 1e-4)
    _apps.repair_hot_pixels(flat, noise)
    sep.set_extract_pixstack(max(flat.size, 300000))
    sep.set_sub_object_limit(1 << 14)
    smooth = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.float32)
    found = sep.extract(flat, 4 * noise, minarea=3, filter_kernel=smooth, filter_type="conv")
    if not len(found):
        return np.empty((0, 2))
    usual = np.sort(found["a"])[len(found) // 2]
    streak = (found["a"] > 4 * usual) & (found["a"] > 4 * found["b"])
    found = found[~streak & (found["tnpix"] >= 2) & (found["flux"] > 0)]
    found = found[np.argsort(-found["flux"], kind="stable")]
    return np.stack([found["x"], found["y"]], axis=1) + 0.5
