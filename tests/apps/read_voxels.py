"""Reads the files that `roost voxels --export` writes, by their formats' own specifications, and checks that
all tell of one solid.

    read_voxels.py GRID VOLUME FOLDER      # FOLDER: a.binvox a.vox a.ply a.points.ply slices/, perhaps a.vdb
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np


def read_binvox(path):
    """All voxels [x, y, z], translation and scale."""
    data = path.read_bytes()
    header, _, body = data.partition(b"data\n")
    lines = header.decode().split("\n")
    assert lines[0] == "#binvox 1", lines
    fields = {line.split()[0]: line.split()[1:] for line in lines[1:] if line}
    dims = [int(n) for n in fields["dim"]]
    runs = np.frombuffer(body, np.uint8).reshape(-1, 2)
    voxels = np.repeat(runs[:, 0], runs[:, 1])
    assert voxels.size == np.prod(dims), (voxels.size, dims)
    solid = voxels.reshape(dims).transpose(0, 2, 1) != 0  # in the file: x, z, y
    return solid, np.array([float(n) for n in fields["translate"]]), float(fields["scale"][0])


def read_vox(path, grid):
    """The colour of each voxel, 0 where there is none."""
    data = path.read_bytes()
    assert data[:8] == b"VOX " + struct.pack("<i", 150)

    def chunks(begin, end):
        while begin < end:
            name, content, children = struct.unpack_from("<4sii", data, begin)
            at = begin + 12
            yield name, data[at : at + content]
            yield from chunks(at + content, at + content + children)
            begin = at + content + children
        assert begin == end

    def dictionary(content, at):
        (count,) = struct.unpack_from("<i", content, at)
        at += 4
        result = {}
        for _ in range(count):
            words = []
            for _ in range(2):
                (length,) = struct.unpack_from("<i", content, at)
                words.append(content[at + 4 : at + 4 + length].decode())
                at += 4 + length
            result[words[0]] = words[1]
        return result, at

    sizes, models, moves, shapes, group = [], [], {}, {}, []
    for name, content in chunks(8, len(data)):
        if name == b"SIZE":
            sizes.append(struct.unpack("<3i", content))
        elif name == b"XYZI":
            (count,) = struct.unpack_from("<i", content)
            models.append(np.frombuffer(content, np.uint8, offset=4).reshape(count, 4))
        elif name == b"nTRN":
            (node,) = struct.unpack_from("<i", content)
            _, at = dictionary(content, 4)
            child, reserved, layer, frames = struct.unpack_from("<4i", content, at)
            assert reserved == -1 and frames == 1
            frame, at = dictionary(content, at + 16)
            assert at == len(content)
            moves[node] = (child, [int(n) for n in frame.get("_t", "0 0 0").split()])
        elif name == b"nGRP":
            _, at = dictionary(content, 4)
            (count,) = struct.unpack_from("<i", content, at)
            group = struct.unpack_from(f"<{count}i", content, at + 4)
        elif name == b"nSHP":
            (node,) = struct.unpack_from("<i", content)
            _, at = dictionary(content, 4)
            one, model = struct.unpack_from("<2i", content, at)
            assert one == 1
            shapes[node] = model
        elif name == b"RGBA":
            assert len(content) == 1024
    assert moves[0][0] == 1 and len(group) == len(models) == len(sizes)
    colours = np.zeros((grid,) * 3, np.uint8)
    for node in group:
        child, middle = moves[node]
        model = shapes[child]
        low = np.array(middle) - np.array(sizes[model]) // 2
        assert max(sizes[model]) <= 256
        x, y, z = (models[model][:, :3].astype(int) + low).T
        assert not colours[x, y, z].any()
        colours[x, y, z] = models[model][:, 3]
    return colours


def read_ply(path):
    data = path.read_bytes()
    header, _, body = data.partition(b"end_header\n")
    lines = header.decode().split("\n")
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    types = {"float": "<f4", "uchar": "u1", "int": "<i4"}
    at, result = 0, {}
    elements = []
    for line in lines[2:]:
        word = line.split()
        if word[:1] == ["element"]:
            elements.append((word[1], int(word[2]), []))
        elif word[:2] == ["property", "list"]:
            assert word[2:4] == ["uchar", "int"]
            elements[-1][2].extend([("count", "u1"), (word[4], "<i4", 4)])
        elif word[:1] == ["property"]:
            elements[-1][2].append((word[2], types[word[1]]))
    for name, count, fields in elements:
        kind = np.dtype(fields)
        result[name] = np.frombuffer(body, kind, count, at)
        at += kind.itemsize * count
    assert at == len(body)
    return result


def read_png(path):
    """A grey picture of 8 bits."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body = 8, b""
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + length]
        assert zlib.crc32(name + content) == struct.unpack_from(">I", data, at + 8 + length)[0]
        if name == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", content)
            assert depth == 8 and colour == 0
        elif name == b"IDAT":
            body += content
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, width + 1).astype(int)
    picture = np.zeros((height, width), int)
    before = np.zeros(width, int)
    for y in range(height):
        kind, row = rows[y, 0], rows[y, 1:].copy()
        if kind == 2:
            row = row + before
        elif kind != 0:
            left = corner = 0
            for x in range(width):
                up = before[x]
                if kind == 1:
                    guess = left
                elif kind == 3:
                    guess = (left + up) // 2
                else:
                    p = left + up - corner
                    a, b, c = abs(p - left), abs(p - up), abs(p - corner)
                    guess = left if a <= b and a <= c else up if b <= c else corner
                left = row[x] = (row[x] + guess) % 256
                corner = up
        before = picture[y] = row % 256
    return picture


def main():
    grid, volume, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    solid, translate, scale = read_binvox(folder / "a.binvox")
    assert solid.shape == (grid,) * 3 and solid.sum() == volume, (solid.shape, solid.sum())

    padded = np.pad(solid, 1)
    hidden = np.ones_like(solid)
    for axis in range(3):
        for step in (-1, 1):
            hidden &= np.roll(padded, step, axis)[1:-1, 1:-1, 1:-1]
    exposed = solid & ~hidden

    colours = read_vox(folder / "a.vox", grid)
    assert ((colours != 0) == exposed).all()
    assert set(np.unique(colours)) <= {0, 1, 2, 3}, np.unique(colours)

    points = read_ply(folder / "a.points.ply")["vertex"]
    corner = np.stack([points["x"], points["y"], points["z"]], 1)
    where = (corner - translate) / scale * grid - 0.5
    cells = np.rint(where).astype(int)
    assert abs(where - cells).max(initial=0) < 0.01
    assert len(points) == exposed.sum() and exposed[tuple(cells.T)].all()
    assert (colours[tuple(cells.T)] == points["class"] + 1).all()

    mesh = read_ply(folder / "a.ply")
    vertices = np.stack([mesh["vertex"][c] for c in "xyz"], 1).astype(float)
    vertices = np.rint((vertices - translate) / scale * grid)
    assert len(np.unique(vertices, axis=0)) == len(vertices)
    quads = mesh["face"]["vertex_indices"]
    assert (mesh["face"]["count"] == 4).all()
    edges = np.concatenate([quads[:, [k, (k + 1) % 4]] for k in range(4)]).astype(np.int64)
    forth, back = edges[:, 0] << 32 | edges[:, 1], edges[:, 1] << 32 | edges[:, 0]
    assert (np.sort(forth) == np.sort(back)).all(), "the mesh is open"
    a, b, c, d = (vertices[quads[:, k]] for k in range(4))
    inside = ((a * np.cross(b, c)).sum() + (a * np.cross(c, d)).sum()) / 6
    assert round(inside) == volume, (inside, volume)

    slices = sorted((folder / "slices").iterdir())
    assert len(slices) == grid
    for z in range(0, grid, max(1, grid // 16)):  # rows are y
        assert ((read_png(slices[z]).T != 0) == solid[:, :, z]).all(), z

    told = "binvox, vox, ply, points.ply and slices agree"
    if (folder / "a.vdb").exists():
        try:
            import pyopenvdb as vdb
        except ImportError:
            told += "; python3-openvdb is not there to read a.vdb"
        else:
            fog = vdb.read(str(folder / "a.vdb"), "density")
            dense = np.zeros(solid.shape, np.float32)
            fog.copyToArray(dense)
            assert ((dense == 1) == solid).all() and fog.activeVoxelCount() == volume
            low = np.array(fog.transform.indexToWorld((0, 0, 0))) - translate
            assert abs(low - scale / grid / 2).max() < 1e-9 * scale
            told += ", and vdb"
    print(told)


if __name__ == "__main__":
    main()
