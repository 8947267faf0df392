"""Where pictures of stars point: a random sky, as a camera that turns sees it.

    python examples/stars.py

With stars of a catalogue, and with what sep finds in pictures, it is the same:
`roost stars build` makes a database of one, and `solve_image` takes pixels.
"""

import numpy as np
import roost.stars


def main():
    draw = np.random.default_rng(1)
    n, width, height = 10_000, 1024, 768
    ra, dec = draw.uniform(0, 360, n), np.degrees(np.arcsin(draw.uniform(-1, 1, n)))
    magnitude = draw.uniform(0, 3, n) + draw.uniform(0, 3, n)
    sky = roost.stars.Database(ra=ra, dec=dec, magnitude=magnitude, fov=(10, 20))

    def seen(at_ra, at_dec):
        """What a camera 15 degrees wide sees there, north up, the brightest first."""
        a, d, d0 = np.radians(ra - at_ra), np.radians(dec), np.radians(at_dec)
        away = np.sin(d0) * np.sin(d) + np.cos(d0) * np.cos(d) * np.cos(a)
        east = np.cos(d) * np.sin(a) / away
        north = (np.cos(d0) * np.sin(d) - np.sin(d0) * np.cos(d) * np.cos(a)) / away
        focal = width / 2 / np.tan(np.radians(15) / 2)
        x, y = width / 2 - focal * east, height / 2 - focal * north
        there = (away > 0) & (abs(x - 512) < 512) & (abs(y - 384) < 384)
        order = np.argsort(magnitude[there], kind="stable")[:40]
        return np.stack([x[there], y[there]], axis=1)[order]

    centroids = seen(83.8, -5.4)  # x, y in pixels, the brightest first
    found = sky.solve(centroids, (width, height))
    print(found)
    print(found.sky(512, 384), found.pixel(83.8, -5.4))
    header = found.wcs()  # for astropy.wcs.WCS

    # The camera turns: where it was is tried first.
    next_one = sky.solve(seen(84.2, -5.2), (width, height), near=found)
    print(next_one.hinted, next_one.ra, next_one.dec)

    good = abs(found.ra - 83.8) < 0.01 and abs(found.dec + 5.4) < 0.01
    good &= next_one.hinted and abs(next_one.ra - 84.2) < 0.01
    return 0 if good and header["CTYPE1"] == "RA---TAN" else 1


if __name__ == "__main__":
    raise SystemExit(main())
