"""roost.match: images that are made of others by known maps, and what is no image."""

import numpy as np
import pytest
import roost.match

FEW = 60  # points, where more would only take longer


def picture(seed, side=384):
    """Blocks and blurs, with edges and corners of all sizes."""
    draw = np.random.default_rng(seed)
    image = np.zeros((side, side))
    for cells in (4, 8, 16, 32):
        coarse = draw.random((cells, cells))
        image += np.kron(coarse, np.ones((side // cells, side // cells))) / cells**0.5
    image -= image.min()
    return image / image.max()


def sampled(image, matrix, shape):
    """The image that `matrix` lays onto this one, by linear interpolation."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    moved = np.stack([x, y, np.ones_like(x)], -1) @ np.asarray(matrix).T
    x, y = moved[..., 0] / moved[..., 2], moved[..., 1] / moved[..., 2]
    x, y = np.clip(x, 0, image.shape[1] - 1.001), np.clip(y, 0, image.shape[0] - 1.001)
    i, j = y.astype(int), x.astype(int)
    v, u = y - i, x - j
    return (image[i, j] * (1 - u) + image[i, j + 1] * u) * (1 - v) + (
        image[i + 1, j] * (1 - u) + image[i + 1, j + 1] * u
    ) * v


def corners(shape):
    height, width = shape
    return np.array([[0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]], float)


def expect_map(found, matrix, shape, off):
    at = corners(shape)
    wanted = np.column_stack([at, np.ones(4)]) @ np.asarray(matrix).T
    wanted = wanted[:, :2] / wanted[:, 2:]
    assert found.matched, found
    assert np.abs(found.to_reference(at) - wanted).max() < off
    np.testing.assert_allclose(found.to_query(found.to_reference(at)), at, atol=1e-3)


@pytest.mark.parametrize("turn", [0, 20, 90, 200])
def test_turns_and_scales(turn):
    image, shape = picture(1), (260, 280)
    for scale in (0.8, 1, 1.2):
        c, s = scale * np.cos(np.radians(turn)), scale * np.sin(np.radians(turn))
        middle = np.array([192, 192]) - np.array([[c, -s], [s, c]]) @ [140, 130]
        matrix = [[c, -s, middle[0]], [s, c, middle[1]], [0, 0, 1]]
        found = roost.match.Reference(image, points=FEW).match(sampled(image, matrix, shape))
        expect_map(found, matrix, shape, 4)
        assert found.reason == "" and found.log10_chance < -6 and found.inliers > 10


def test_types_of_numbers_give_one_answer():
    image = picture(2)
    byte = (image * 255).round().astype(np.uint8)
    found = [
        roost.match.Reference(of, points=FEW).match(of[30:330, 50:350])
        for of in (
            byte,
            byte.astype(np.uint16) * 257,
            byte.astype(np.uint64) * 0x0101010101010101,
            byte / 255.0,
            byte.astype(np.int32),
            np.stack([byte] * 3, -1),
            np.asfortranarray(byte),
        )
    ]
    for each in found:
        expect_map(each, [[1, 0, 50], [0, 1, 30], [0, 0, 1]], (300, 300), 1)
        np.testing.assert_allclose(each.matrix, found[0].matrix, atol=1e-2)
    same = roost.match.Reference(byte.astype(float), white=255, points=FEW).match(byte[30:330, 50:350])
    np.testing.assert_array_equal(same.matrix, found[0].matrix)


def test_what_lies_nowhere_does_not_match():
    reference = roost.match.Reference(picture(3), points=FEW)
    for seed in range(10, 13):
        found = reference.match(picture(seed))
        assert not found.matched and found.kind is None and found.matrix is None and found.reason
        with pytest.raises(ValueError, match="did not match"):
            found.to_reference([[0, 0]])
    assert "the query has no edges" in reference.match(np.zeros((64, 64))).reason
    empty = roost.match.Reference(np.zeros((64, 64), np.uint8))
    assert "the reference has no edges" in empty.match(picture(3)).reason


def test_one_kind_of_map_can_be_chosen():
    image = picture(4)
    for kind in ("similarity", "affine", "perspective"):
        found = roost.match.Reference(image, map=kind, points=FEW).match(image)
        assert found.matched and found.kind == kind
        np.testing.assert_allclose(found.to_reference(corners(image.shape)), corners(image.shape), atol=2)


@pytest.mark.parametrize(
    ("image", "options", "error", "says"),
    [
        (np.zeros(100), {}, ValueError, "shape"),
        (np.zeros((8, 100)), {}, ValueError, "shape"),
        (np.zeros((20, 20, 2)), {}, ValueError, "shape"),
        (np.full((20, 20), 2.0), {}, ValueError, "white"),
        (np.full((20, 20), -1.0), {}, ValueError, "shades"),
        (np.full((20, 20), np.nan), {}, ValueError, "shades"),
        (np.full((20, 20), "a"), {}, TypeError, "numbers"),
        (np.zeros((20, 20), complex), {}, TypeError, "numbers"),
        (np.zeros((20, 20)), {"white": 0}, ValueError, "white: 0; give the number of the lightest shade"),
        (np.zeros((20, 20)), {"white": [1]}, ValueError, "lightest shade"),
        (np.zeros((20, 20)), {"white": "a"}, TypeError, "white: <U1 where numbers"),
        (np.zeros((20, 20)), {"white": True}, TypeError, "white: bool where numbers"),
        (np.zeros((20, 20)), {"white": 1j}, TypeError, "white: complex128 where numbers"),
        (np.zeros((20, 20)), {"white": np.nan}, ValueError, "white: nan"),
        (np.zeros((20, 20)), {"white": np.datetime64("2020")}, TypeError, "white: datetime64"),
        (np.zeros((20, 20)), {"white": {}}, TypeError, "white: a dict"),
        (np.zeros((20, 20)), {"white": 10**400}, OverflowError, "white: integers"),
        (np.zeros((20, 20)), {"map": "turn"}, ValueError, "map"),
        (np.zeros((20, 20)), {"points": 3}, ValueError, "points"),
        (np.zeros((20, 20)), {"points": 2.5}, TypeError, "points"),
        (np.zeros((20, 20)), {"seed": 1 << 32}, ValueError, "seed"),
    ],
)
def test_what_cannot_be_is_refused(image, options, error, says):
    with pytest.raises(error, match=says) as refused:
        roost.match.Reference(image, **options)
    assert "\n" not in str(refused.value)


def test_noise_may_have_too_many_points():
    noise = np.random.default_rng(1).integers(0, 256, (1000, 1000)).astype(np.uint8)
    with pytest.raises(ValueError, match=r"bases are more than .* take fewer points \(in Python points=, "):
        roost.match.Reference(noise, points=1000)


def test_beyond_the_horizon_nothing_has_a_place():
    found = roost.match.Match()
    found.matched, found.matrix = True, np.array([[1, 0, 0], [0, 1, 0], [-0.01, 0, 1]])
    there = found.to_reference([[50, 10], [100, 10], [150, 10]])
    np.testing.assert_allclose(there, [[100, 20], [np.nan] * 2, [np.nan] * 2])
    back = found.to_query([[100, 20], [-100, 0], [-200, 0]])
    np.testing.assert_allclose(back, [[50, 10], [np.nan] * 2, [np.nan] * 2])


class OfPil(np.ndarray):
    mode = "P"


def test_places_in_a_palette_are_no_shades():
    image = np.zeros((20, 20), np.uint8).view(OfPil)
    with pytest.raises(TypeError, match=r"of mode P, .*convert\('RGB'\)$"):
        roost.match.Reference(image)
    image.mode = "L"
    assert roost.match.Reference(image).shape == (20, 20)


@pytest.fixture(scope="module")
def found():
    """A match, of all the points that there are by default."""
    image = picture(5)
    return roost.match.Reference(image).match(image)


@pytest.mark.parametrize(
    ("points", "error", "says"),
    [
        ([0, 0], ValueError, "shape"),
        ([["a", "b"]], TypeError, "points: <U1 where numbers"),
        ([[1j, 1j]], TypeError, "points: complex128 where numbers"),
        ([[np.nan, 0]], ValueError, "points: nan"),
        ([[2**53 + 1, 0]], OverflowError, "9007199254740993"),
    ],
)
def test_what_is_no_point_is_refused(found, points, error, says):
    assert found.matched
    for move in (found.to_reference, found.to_query):
        with pytest.raises(error, match=says):
            move(points)
