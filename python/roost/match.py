"""Where one image lies in another.

    >>> import numpy as np, roost.match
    >>> draw = np.random.default_rng(1)
    >>> shades = draw.integers(0, 256, (32, 32), np.uint8)
    >>> blocks = np.kron(shades, np.ones((12, 12), np.uint8))
    >>> reference = roost.match.Reference(blocks)
    >>> found = reference.match(blocks[40:340, 60:360])
    >>> found.kind, found.to_reference([[0.0, 0.0]]).round().tolist()
    ('similarity', [[60.0, 40.0]])

Points of strong, bending edges of a reference image go into a table by their coordinates in many bases;
those of a query vote there for the map that lays the query onto the reference (geometric hashing, section 6
of Alcantara et al. 2009), which is then refined and verified. `roost match` does the same with files, and
docs/matching.md says how it works and when other methods are better. All of it runs on the CPU, on as many
threads as roost.set_threads says when the Reference is made, without the GIL.
"""

import numpy as np

from . import _apps, _host
from ._arrays.exact import expect_shades, has_mask, of_python, real_number, real_numbers, shown
from ._options import whole_number

__all__ = ["Match", "Reference"]


def _shades(image, white, what):
    """An image in shades of 0 to 255, as float32."""
    expect_shades(image, what)
    array = of_python(image, what)
    if has_mask(image) or array.dtype.kind not in "uif":
        raise TypeError(f"{what}: an image of {type(image).__name__} of {array.dtype}; give numbers")
    if array.ndim == 3 and array.shape[2] in (3, 4):
        array = array[:, :, :3] @ np.array([0.299, 0.587, 0.114])  # as PNG files are read: BT.601
        kind = of_python(image, what).dtype
    else:
        kind = array.dtype
    if array.ndim != 2 or min(array.shape) < 16 or array.size > 1 << 28:
        raise ValueError(
            f"{what}: an image of shape {array.shape}; give (height, width), (height, width, 3) or "
            "(height, width, 4), 16 x 16 to 2^28 pixels"
        )
    if white is None:
        white = float(np.iinfo(kind).max) if kind.kind == "u" else 255 if kind.kind == "i" else 1.0
    white = real_number(white, f"{what}: white", 0, np.inf, "give the number of the lightest shade")
    least, most = array.min(), array.max()
    if not (least >= 0 and most <= white * (1 + 1e-6)):
        raise ValueError(
            f"{what}: shades from {least} to {most}; give 0 to white={white:g}, or another white"
        )
    return np.ascontiguousarray(array * (255 / white), np.float32)


class Match:
    """What came of a query.

    Attributes
    ----------
    matched : bool
        Whether the query lies in the reference, at one place. If not, `kind` and `matrix` are None.
    reason : str
        Why it does not; empty if it does.
    kind : str
        The simplest map that fits: "similarity" (turn, scale and shift), "affine", or "perspective".
    matrix : numpy.ndarray of shape (3, 3)
        The map in homogeneous coordinates: (x, y, 1) of the query comes to (X, Y, W) of the reference, which
        is the point X / W, Y / W. Points are in pixels from the middle of the first one, x to the right and y
        down.
    points, covered, inliers : int
        Points of the query, those that fall onto the reference, and those that lie beside a point of it.
    rms : float
        How far the inliers are from their points, in pixels of the reference.
    log10_chance : float
        The decimal logarithm of the probability that so many fit by chance.
    """

    def __repr__(self):
        if not self.matched:
            return f"Match(matched=False, reason={self.reason!r})"
        return f"Match(kind={self.kind!r}, inliers={self.inliers}, rms={self.rms:.3g})"

    def _moved(self, points, matrix, name):
        what = f"roost.match.Match.{name}"
        if not self.matched:
            raise ValueError(f"{what}: the query did not match; look at matched first")
        array = real_numbers(points, f"{what}: points")
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(f"{what}: points of shape {array.shape}; give x and y of each: shape (n, 2)")
        moved = np.column_stack([array, np.ones(len(array))]) @ matrix.T
        return moved[:, :2] / np.where(moved[:, 2:] > 0, moved[:, 2:], np.nan)

    def to_reference(self, points):
        """Where points of the query, of shape (n, 2), lie in the reference. NaN for those on or beyond the
        horizon of a perspective map, which is far outside of the query."""
        return self._moved(points, self.matrix, "to_reference")

    def to_query(self, points):
        """Where points of the reference, of shape (n, 2), lie in the query. NaN as to_reference()."""
        return self._moved(points, None if self.matrix is None else np.linalg.inv(self.matrix), "to_query")


class Reference:
    """An image in which others are searched for, with its table.

    Parameters
    ----------
    image : array of shape (height, width), or with 3 or 4 colours (height, width, 3)
        Shades from 0, black, to `white`. A fourth channel is left out.
    white : number
        The lightest shade; by default the greatest number of an unsigned type, 255 for integers with a sign,
        and 1.0 for floats.
    map : str
        The kinds of maps that are tried: "auto" (the simplest that fits), "similarity", "affine",
        "perspective".
    points : int
        Points of edges that are taken, the strongest; 4 to 1000. The table grows with their square; from
        about 780 points on, which few images have, it may be too large (ValueError).
    seed : int
        Chooses among bases where there are many. The same seed gives the same results.

    May be used by several threads. Takes some milliseconds to make.
    """

    def __init__(self, image, *, white=None, map="auto", points=200, seed=1):
        what = "roost.match.Reference"
        if map != "auto" and map not in _apps.map_kinds:
            raise ValueError(f"{what}: map={shown(map)}; give auto, {', '.join(_apps.map_kinds)}")
        count = whole_number(points, what, "points")
        if not 4 <= count <= 1000:
            raise ValueError(f"{what}: points={count}; give 4 to 1000")
        number = whole_number(seed, what, "seed")
        if number >= 1 << 32:
            raise ValueError(f"{what}: seed={number}; give less than 2^32")
        if _apps.threads() != _host.threads():
            _apps.set_threads(_host.threads())
        shades = _shades(image, white, what)
        self._table = _apps.make_image_reference(shades.ravel(), shades.shape[1], count, map, number)
        self.shape = shades.shape

    def __repr__(self):
        return f"Reference(shape={self.shape}, points={self._table.points})"

    def match(self, query, *, white=None):
        """Looks for an image in this one, as it is, then coarser and finer. Returns a Match.

        `query`, `white`: as of the Reference; of any size. Takes some 10 to 100 milliseconds of a core.
        """
        shades = _shades(query, white, "roost.match.Reference.match")
        matched, kind, points, covered, inliers, compared, alike, placements, rms, chance, matrix = (
            self._table.match(shades.ravel(), shades.shape[1])
        )
        found = Match()
        found.matched, found.points, found.covered, found.inliers = matched, points, covered, inliers
        found.rms, found.log10_chance = (rms, chance) if matched else (np.nan, chance)
        found.kind = kind if matched else None
        found.matrix = matrix.reshape(3, 3) if matched else None
        found.reason = ""
        if not matched:
            found.reason = (
                f"the {'query' if points == 0 else 'reference'} has no edges whose points could be compared"
                if points == 0 or self._table.points == 0
                else f"it fits equally well at {placements} places"
                if placements > 1
                else f"{inliers} of {covered} points fit, {alike} of {compared} surroundings are alike"
            )
        return found
