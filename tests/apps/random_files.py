"""Random clouds and meshes in random dialects of their formats: what roost finds against what was written.

    python3 random_files.py ROOST --seconds 6 --seed 1

Files are written here by nothing but Python, and counted by its dictionaries. A difference ends the program
with the seed of the case and the file. Files that are damaged have to be refused with one line."""

import argparse, base64, gzip, io, json, math, os, random, struct, subprocess, sys, tempfile, time, zipfile

NAN, INF = math.nan, math.inf


def single(x):
    """The nearest float of 32 bits."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Case:
    """One file: its name, its bytes, what is to be found, or why it has to be refused."""

    def __init__(self, name, data, points=None, refused=None, options=()):
        self.name, self.data, self.points, self.refused, self.options = (
            name,
            data,
            points,
            refused,
            list(options),
        )


# ---- clouds


def cloud_points(r):
    n = r.choice((1, 2, 3, 5, 16, 17, 60, 200))
    kind = r.choice(("box", "plane", "grid", "survey", "line", "wide"))
    far = [r.uniform(1e5, 9e5), r.uniform(4e6, 6e6), r.uniform(0, 500)] if kind == "survey" else [0, 0, 0]
    spread = {"wide": 1e4, "survey": 20}.get(kind, r.choice((1, 30)))
    out = []
    for _ in range(n):
        p = [c + r.uniform(-spread, spread) for c in far]
        if kind == "plane":
            p[2] = 1.5
        if kind == "grid":
            p = [float(round(c)) for c in p]
        if kind == "line":
            p = [p[0], p[0] / 2, -p[0]]
        out.append(p)
    for _ in range(r.choice((0, 0, 0, 1, 3))):
        out.insert(
            r.randrange(len(out) + 1),
            [r.choice((NAN, INF, -INF)) if r.random() < 0.5 else 1.0 for _ in "xyz"],
        )
    return out


def spelled(r, x, comma, plain=False):
    """A number as a program may write it, and the double that this is."""
    if not math.isfinite(x):
        if math.isnan(x):
            return r.choice(("nan", "NaN", "-nan", "NAN", "1.#QNAN", "-1.#IND", "nan(ind)")), NAN
        return ("-" if x < 0 else "") + r.choice(("inf", "Infinity", "INF", "1.#INF")), NAN
    way = r.randrange(2 if plain else 7)
    text = (
        repr(x)
        if way == 0
        else "%.4f" % x
        if way == 1
        else "%.6e" % x
        if way == 2
        else "%.9g" % x
        if way == 3
        else "+" * (x >= 0) + "%.5f" % x
        if way == 4
        else ("%.12E" % x).replace("E", "D")
        if way == 5
        else "%.3g" % x
    )
    value = float(text.replace("D", "e"))
    if comma:
        text = text.replace(".", ",")
    return text, value


def text_cloud(r):
    points = cloud_points(r)
    by = r.choice((" ", "\t", "   ", ",", ";", ", ", " ; ", ",\t"))
    comma = "," not in by and r.random() < 0.3
    ways = r.random() < 0.5
    names = ["x", "y", "z"] + ["c%d" % i for i in range(r.choice((0, 0, 1, 4)))]
    header = r.choice(("none", "none", "names", "quoted", "upper", "comment", "slashes", "units"))
    if header != "none":
        r.shuffle(names)
    others = ["7", "0", "255", "-1e3" if not comma else "12"]
    if header != "none" and r.random() < 0.5:  # with names, other columns are any text
        others += ["A", "12:30:01", "n/a", "x"]
        if by.strip():
            others += ["two words", "12 Main Street", "", "5' wide"]
    rows, found = [], []
    for p in points:
        row = []
        cells = [spelled(r, c, comma, ways) for c in p]
        for name in names:
            row.append(cells["xyz".index(name)][0] if name in "xyz" else r.choice(others))
        found.append([c[1] for c in cells])
        rows.append(row)
    end = r.choice(("\n", "\r\n", "\n", "\r"))
    lines = []
    shown = [
        n.upper()
        if header == "upper"
        else '"%s"' % n
        if header == "quoted"
        else n + "[m]"
        if header == "units" and n in "xyz"
        else n
        for n in names
    ]
    if r.random() < 0.2:
        lines.append("# a title, made by a program")
    if r.random() < 0.15 and header == "none":
        lines.append(str(len(rows)))
    if header in ("comment", "slashes"):
        lines.append({"comment": "# ", "slashes": "//"}[header] + by.join(shown).strip())
    elif header != "none":
        lines.append(by.join(shown))
    trailing = by.strip() in (",", ";") and by.strip() != "" and r.random() < 0.1
    quoted = by.strip() != "" and r.random() < 0.1
    body = [
        by.join('"%s"' % c if quoted else c for c in row) + (by.strip() if trailing else "") for row in rows
    ]
    if comma and not any(
        "," in c and len(c.lstrip("+-").split(",")[1]) != 3
        for row, p in zip(rows, points)
        for c in (row[names.index(a)] for a in "xyz")
    ):
        comma = None  # nothing says that commas are decimal ones
    if r.random() < 0.2:
        body.insert(r.randrange(len(body) + 1), r.choice(("", "   ")))
    if r.random() < 0.1:
        body.insert(r.randrange(len(body) + 1), "# between")
    text = end.join(lines + body) + (end if r.random() < 0.8 else "")
    refused = None
    damage = r.random()
    if damage < 0.05:
        bad = rows[0][:]
        bad[names.index(r.choice("xyz"))] = r.choice(
            ("two", "1.2.3", "1e", "--1", "1,2,3" if by.strip() != "," else "0x", "1:2", "NA")
        )
        refused, text = "a word", end.join(lines + body + [by.join(bad)])
    elif damage < 0.1:
        refused, text = "a column more", end.join(lines + body + [by.join(rows[0] + ["5", "6"])])
    elif damage < 0.15:
        refused, text = "a column less", end.join(lines + body + [by.join(rows[0][:2])])
    data = text.encode()
    if r.random() < 0.1:
        data = b"\xef\xbb\xbf" + data
    if r.random() < 0.03 and not refused:
        data, refused = text.encode("utf-16"), "UTF-16"
    return Case(
        "cloud" + r.choice((".txt", ".xyz", ".csv", ".pts", ".asc")),
        data,
        found,
        refused or ("?" if comma is None else None),
    )


CODES = {
    "char": "b",
    "uchar": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "uint": "I",
    "float": "f",
    "double": "d",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "float32": "f",
    "float64": "d",
}


def ply_value(r, code, ascii_, big, x=None):
    """Bytes of a value of this type, and the double that is read."""
    if x is None:
        x = r.randrange(100)
    if code not in "fd":
        x = int(x)
    if ascii_:
        text = (
            repr(x)
            if code not in "fd" or math.isfinite(x)
            else r.choice(("nan", "NaN", "1.#QNAN"))
            if math.isnan(x)
            else "inf"
        )
        return text.encode() + b" ", float(x)
    return struct.pack((">" if big else "<") + code, x), float(
        x if code != "f" else single(x) if math.isfinite(x) else x
    )


def ply_cloud(r):
    points = cloud_points(r)
    ascii_, big = r.random() < 0.4, r.random() < 0.5
    head = [
        "ply",
        "format %s 1.0" % ("ascii" if ascii_ else "binary_big_endian" if big else "binary_little_endian"),
        "comment made at random",
    ]
    whole = r.random() < 0.2
    kind = r.choice(("int", "int32", "short") if whole else ("float", "double", "float32", "float64"))
    if whole:
        points = [[max(-9000, min(9000, round(c))) if math.isfinite(c) else 3 for c in p] for p in points]
    lists = [("list uchar int", "id")] if r.random() < 0.3 else []
    fields = (
        [(kind, a) for a in ("XYZ" if r.random() < 0.2 else "xyz")]
        + [(r.choice(list(CODES)), "f%d" % i) for i in range(r.choice((0, 0, 1, 3)))]
        + lists
    )
    r.shuffle(fields)
    others = [("before", r.choice((0, 1, 3))), ("after", r.choice((0, 2)))]
    found, chunks = [], []
    vertex = b""
    for p in points:
        row, at = b"", [0, 0, 0]
        for type_, name in fields:
            if type_.startswith("list"):
                n = r.randrange(4)
                row += ply_value(r, "B", ascii_, big, n)[0] + b"".join(
                    ply_value(r, "i", ascii_, big)[0] for _ in range(n)
                )
            elif name in "xyzXYZ":
                data, value = ply_value(r, CODES[type_], ascii_, big, p["xyz".index(name.lower())])
                row += data
                at["xyz".index(name.lower())] = value
            else:
                row += ply_value(r, CODES[type_], ascii_, big)[0]
        vertex += row + (b"\n" if ascii_ else b"")
        found.append(at)
    body = b""
    for element, count in [others[0], ("vertex", len(points)), others[1]]:
        head.append("element %s %d" % (element, count))
        if element == "vertex":
            head += ["property %s %s" % f for f in fields]
            body += vertex
        else:
            head += ["property list ushort double x", "property uchar y"]
            for _ in range(count):
                n = r.randrange(3)
                body += (
                    ply_value(r, "H", ascii_, big, n)[0]
                    + b"".join(ply_value(r, "d", ascii_, big)[0] for _ in range(n))
                    + ply_value(r, "B", ascii_, big)[0]
                    + (b"\n" if ascii_ else b"")
                )
    end = r.choice(("\n", "\r\n"))
    refused = None
    damage = r.random()
    if damage < 0.05:
        body, refused = body.rstrip().rpartition(b" ")[0] if ascii_ else body[:-1], "cut short"
    elif damage < 0.1:
        body, refused = body + (b"1 2 3\n" if ascii_ else b"x1234"), "longer"
    elif damage < 0.13:
        at = head.index("element vertex %d" % len(points))
        head[at] = "element vertex %d" % (len(points) + 1000)
        refused = "too many announced"
    return Case("cloud.ply", (end.join(head + ["end_header"]) + end).encode() + body, found, refused)


def pcd_cloud(r):
    points = cloud_points(r)
    ascii_ = r.random() < 0.4
    end = r.choice(("\n", "\r\n"))
    code, size = r.choice((("F", 4), ("F", 8), ("F", 8), ("I", 4), ("I", 2)))
    if code == "I":
        points = [[max(-9000, min(9000, round(c))) if math.isfinite(c) else 3 for c in p] for p in points]
    fields = [(a, code, size, 1) for a in "xyz"]
    for i in range(r.choice((0, 0, 1, 3))):
        fields.append(
            r.choice((("_", "U", 1, r.choice((0, 1, 3))), ("i%d" % i, "U", 2, 1), ("n%d" % i, "F", 4, 2)))
        )
    r.shuffle(fields)
    form = lambda c, s: (
        "<"
        + (
            {4: "f", 8: "d"}[s]
            if c == "F"
            else {1: "b", 2: "h", 4: "i"}[s]
            if c == "I"
            else {1: "B", 2: "H", 4: "I"}[s]
        )
    )
    body, found = b"", []
    for p in points:
        at, row = [0, 0, 0], []
        for name, c, s, n in fields:
            if name in "xyz":
                x = p["xyz".index(name)]
                if ascii_:
                    row.append((spelled(r, x, False, True)[0] if c == "F" else str(x)).encode())
                else:
                    row.append(struct.pack(form(c, s), x))
                at["xyz".index(name)] = (
                    float(row[-1])
                    if ascii_ and math.isfinite(x)
                    else NAN
                    if not math.isfinite(x)
                    else struct.unpack(form(c, s), row[-1])[0]
                )
            else:
                row += [b"7" if ascii_ else struct.pack(form(c, s), 7)] * n
        body += b" ".join(row) + end.encode() if ascii_ else b"".join(row)
        found.append(at)
    width, height = (len(points), 1) if r.random() < 0.7 or len(points) % 2 else (len(points) // 2, 2)
    head = [
        "# .PCD v0.7",
        "VERSION 0.7",
        "FIELDS " + " ".join(f[0] for f in fields),
        "SIZE " + " ".join(str(f[2]) for f in fields),
        "TYPE " + " ".join(f[1] for f in fields),
    ]
    if any(f[3] != 1 for f in fields) or r.random() < 0.7:
        head.append("COUNT " + " ".join(str(f[3]) for f in fields))
    head += ["WIDTH %d" % width, "HEIGHT %d" % height, "VIEWPOINT 0 0 0 1 0 0 0"]
    refused, damage = None, r.random()
    count = len(points)
    if damage < 0.05:
        body, refused = body[: -1 if not ascii_ else body[:-2].rfind(b"\n") + 1], "cut short"
    elif damage < 0.1:
        body, refused = body + b"1 2 3 4 5 6\n", "longer"
    elif damage < 0.15:
        count, refused = count + 1, "POINTS is not WIDTH * HEIGHT"
    if r.random() < 0.8 or refused:
        head.append("POINTS %d" % count)
    if r.random() < 0.2:
        head.insert(0, "# by a program")
    head.append("DATA " + ("ascii" if ascii_ else "binary"))
    return Case("cloud.pcd", (end.join(head) + end).encode() + body, found, refused)


def npy_cloud(r):
    points = cloud_points(r)
    order = r.choice("<>")
    code = r.choice("ffddhilq")
    name = {"f": "f4", "d": "f8", "h": "i2", "i": "i4", "l": "u4", "q": "i8"}[code]
    form = {"l": "I"}.get(code, code)
    if code not in "fd":
        points = [
            [abs(max(-9000, min(9000, round(c)))) if math.isfinite(c) else 3 for c in p] for p in points
        ]
    found = [[float(single(c)) if code == "f" and math.isfinite(c) else float(c) for c in p] for p in points]
    pack = lambda x: struct.pack(order + form, x)
    n, kind = len(points), r.choice(("rows", "columns", "fields"))
    if kind == "fields":
        fields = ["x", "y", "z"] + ["a"] * r.randrange(2)
        r.shuffle(fields)
        orders = {f: r.choice("<>") if r.random() < 0.3 else order for f in fields}
        texts = (
            ("('a', '|u1', (3,))", 3),
            ("('t', '<M8[ns]')", 8),
            ("""("it's[s]", '<m8[10us]')""", 8),
            ("""('a"\\\\', '>U2', (2, 1))""", 16),
            ("(('x', 'id'), [('x', '<f4'), ('y', '|S3', (2,))])", 10),
        )
        text, size = r.choice(texts)
        descr = ", ".join(text if f == "a" else "('%s', '%s')" % (f, orders[f] + name) for f in fields)
        descr = "[%s]" % descr
        body = b"".join(
            b"z" * size if f == "a" else struct.pack(orders[f] + form, p["xyz".index(f)])
            for p in points
            for f in fields
        )
        shape = "(%d,)" % n
    else:
        more = r.randrange(3)
        descr, shape = "'%s%s'" % (order, name), "(%d, %d)" % (n, 3 + more)
        rows = [p + [1] * more for p in points]
        body = b"".join(
            pack(x)
            for x in (sum(rows, []) if kind == "rows" else [row[k] for k in range(3 + more) for row in rows])
        )
    refused = "?" if kind != "fields" and n in (3, 4) else None
    damage = r.random()
    if damage < 0.05:
        body, refused = body[:-1], "cut short"
    elif damage < 0.1:
        body, refused = body + b"\x01" * 16, "longer"
    elif damage < 0.15:
        shape, refused = "(%d,)" % (n * 3) if kind != "fields" else "(%d, 1)" % n, "another shape"
    head = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, kind == "columns", shape)
    version = r.choice((1, 2, 3))
    head += " " * 16 + "\n"
    return Case(
        "cloud.npy",
        b"\x93NUMPY"
        + bytes((version, 0))
        + struct.pack("<H" if version == 1 else "<I", len(head))
        + head.encode()
        + body,
        found,
        refused,
    )


def bin_cloud(r):
    points = [[single(c) for c in p] for p in cloud_points(r)]
    record = r.choice((4, 4, 4, 3, 5, 6))
    given = r.random() < 0.5 or len(points) * record < 100  # a few numbers tell nothing
    body = b"".join(
        struct.pack("<%df" % record, *p, *(r.random() for _ in range(record - 3))) for p in points
    )
    refused = None
    if not given:
        refused = "?" if record == 4 else "other records"
    if r.random() < 0.1:
        body, refused = body + b"x", "not whole"
    return Case("cloud.bin", body, points, refused, ["--record", str(record)] if given else [])


def check_arrays(archive, case, size, shift):
    """What is wrong with the arrays of --output, if anything."""
    arrays = {}
    for name, kind in (("xyz", "d"), ("counts", "I"), ("labels", "q"), ("shift", "d"), ("size", "d")):
        body = zipfile.ZipFile(archive).read(name + ".npy").split(b"\n", 1)[1]
        arrays[name] = [x for (x,) in struct.iter_unpack("<" + kind, body)]
    inside = {}
    for point, label in zip(case.points, arrays["labels"]):
        if (label == -1) == all(map(math.isfinite, point)):
            return "point %s has the label %d" % (point, label)
        if label != -1:
            inside.setdefault(label, []).append(point)
    voxels = {label: {tuple(math.floor(c / size) for c in p) for p in of} for label, of in inside.items()}
    counts = [len(inside.get(i, ())) for i in range(len(inside))]
    if len(arrays["labels"]) != len(case.points) or arrays["counts"] != counts:
        return "labels or counts"
    if any(len(v) != 1 for v in voxels.values()) or len(set.union(*voxels.values())) != len(voxels):
        return "labels put points of two voxels together"
    for i, of in inside.items():
        for a in range(3):
            mean = math.fsum(p[a] for p in of) / len(of) + shift[a]
            most = max(abs(p[a]) for p in of) + abs(shift[a])
            if abs(arrays["xyz"][3 * i + a] - mean) > 1e-15 * (most + size) * 4:
                return "the mean %r, and %r was expected" % (arrays["xyz"][3 * i : 3 * i + 3], mean)
    return None if arrays["shift"] == shift and arrays["size"] == [size] else "shift or size"


def check_cloud(roost, folder, r, case):
    if r.random() < 0.1 and not case.name.endswith(".bin"):
        case.name += ".gz"
        case.data = gzip.compress(case.data)
    file = os.path.join(folder, case.name)
    with open(file, "wb") as out:
        out.write(case.data)
    finite = [p for p in case.points if all(map(math.isfinite, p))]
    size = r.choice((0.1, 0.25, 1.0, 3.7))
    shift = r.choice(([0.0] * 3, [r.uniform(-1e6, 1e6) for _ in "xyz"]))
    archive = os.path.join(folder, "out.npz")
    run = subprocess.run(
        [
            roost,
            "lidar",
            "--place",
            "host",
            "--threads",
            "1",
            "--reps",
            "0",
            "--format",
            "json",
            "--size",
            repr(size),
            "--output",
            archive,
            "--shift",
            ",".join(map(repr, shift)),
            *case.options,
            file,
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if run.returncode != 0 and not finite and case.refused is None:
        case.refused = "no points"
    if run.returncode != 0:
        one_line = (
            run.stderr.count("\n") == 1
            and run.stderr.startswith("roost: ")
            and run.returncode == 1
            and run.stdout == ""
        )
        return None if case.refused and one_line else "refused: exit %d, %s" % (run.returncode, run.stderr)
    if case.refused and case.refused != "?":
        return "not refused: %s" % case.refused
    out = json.loads(run.stdout)
    want = {
        "points": len(case.points),
        "not_finite": len(case.points) - len(finite),
        "voxels": len({tuple(math.floor(c / size) for c in p) for p in finite}),
        "least": [min(p[a] for p in finite) for a in range(3)],
        "greatest": [max(p[a] for p in finite) for a in range(3)],
        "corner": [min(math.floor(p[a] / size) for p in finite) * size for a in range(3)],
        "box": [
            max(math.floor(p[a] / size) for p in finite) - min(math.floor(p[a] / size) for p in finite) + 1
            for a in range(3)
        ],
    }
    wrong = {k: (out[k], v) for k, v in want.items() if out[k] != v}
    if wrong:
        return "size %r: got, wanted: %s" % (size, wrong)
    wrong = check_arrays(archive, case, size, shift)
    return "size %r, shift %s: %s" % (size, shift, wrong) if wrong else None


# ---- meshes: unit cubes of a grid, as a closed surface


def stacked_cubes(r):
    """A relief of columns of unit cubes: corners, quads that look outwards, and the number of cubes."""
    side = r.choice((2, 3, 4))
    high = {(i, j): r.randrange(1, side + 1) for i in range(side) for j in range(side)}
    cubes = {(i, j, k) for (i, j), top in high.items() for k in range(top)}
    corners, quads = {}, []
    at = lambda p: corners.setdefault(p, len(corners))
    for c in sorted(cubes):
        for axis in range(3):
            for way in (0, 1):
                beside = list(c)
                beside[axis] += 1 if way else -1
                if tuple(beside) in cubes:
                    continue
                u, v = (axis + 1) % 3, (axis + 2) % 3
                quad = []
                for du, dv in ((0, 0), (1, 0), (1, 1), (0, 1)):
                    p = list(c)
                    p[axis] += way
                    p[u] += du
                    p[v] += dv
                    quad.append(at(tuple(p)))
                quads.append(quad if way else quad[::-1])
    return list(corners), quads, side, len(cubes)


def placed_in_xml(r, kind, corners, triangles):
    """3MF or AMF: the mesh in one or two objects, each moved and turned back by where it is placed. The
    bytes, and why they have to be refused."""
    split = r.randrange(1, len(triangles)) if r.random() < 0.5 else len(triangles)
    objects = [t for t in (triangles[:split], triangles[split:]) if t]
    if kind == "3mf":
        return threemf(r, corners, objects)
    apart = r.random() < 0.5  # objects of their own, and not volumes of one
    shift, turns = [r.choice((0, 4, -2.5)) for _ in "xyz"], [r.choice((0, 90, 180, 270)) for _ in "xyz"]
    for move, axis in [(shift, None), *((None, 2 - k) for k in range(3))]:  # backwards: -shift, -rz, -ry, -rx
        for i, p in enumerate(corners):
            if move:
                corners[i] = [c - m for c, m in zip(p, move)]
            for _ in range(0 if move else (4 - turns[axis] // 90) % 4):
                u, v = (axis + 1) % 3, (axis + 2) % 3
                corners[i][u], corners[i][v] = -corners[i][v], corners[i][u]
    vertices = "".join(
        "<vertex><coordinates>%s</coordinates></vertex>"
        % "".join("<%s>%r</%s>" % (a, float(c), a) for a, c in zip("xyz", p))
        for p in corners
    )
    volume = lambda ts: "<volume>%s</volume>" % "".join(
        "<triangle>%s</triangle>" % "".join("<v%d>%d</v%d>" % (k + 1, c, k + 1) for k, c in enumerate(t))
        for t in ts
    )
    mesh = lambda i, parts: (
        '<object id="%d"><mesh><vertices>%s</vertices>%s</mesh></object>'
        % (i, vertices, "".join(map(volume, parts)))
    )
    body = "".join(mesh(i, [o]) for i, o in enumerate(objects)) if apart else mesh(0, objects)
    names = ["delta" + a for a in "xyz"] + ["r" + a for a in "xyz"]
    how = "".join("<%s>%r</%s>" % (n, x, n) for n, x in zip(names, shift + turns))
    body += '<constellation id="c">%s</constellation>' % "".join(
        '<instance objectid="%d">%s</instance>' % (i, how) for i in range(len(objects) if apart else 1)
    )
    text = '<?xml version="1.0" encoding="%s"?><amf unit="inch">%s</amf>'
    coding = r.choice(("utf-8", "utf-16"))
    data = (text % (coding, body)).encode(coding)
    if r.random() < 0.3:
        data = packed([("a.AMF", data)])
    if r.random() < 0.1:
        return data[: len(data) * 2 // 3], "cut short"
    return data, None


def packed(parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts:
            archive.writestr(name, data)
    return out.getvalue()


def threemf(r, corners, objects):
    prefix = r.choice(("", "", "m:", "core:"))
    spaces = 'xmlns%s="%score/2015/02" xmlns:p="%sproduction/2015/06"' % (
        ":" + prefix[:-1] if prefix else "",
        *["http://schemas.microsoft.com/3dmanufacturing/"] * 2,
    )
    axes, signs = r.sample(range(3), 3), [r.choice((1, -1)) for _ in "xyz"]
    inner = [[signs[a] * p[axes[a]] for a in range(3)] for p in corners]
    matrix = [[signs[a] if axes[a] == k else 0 for k in range(3)] for a in range(3)] + [[0, 0, 0]]
    odd = sum(axes[a] > axes[b] for a in range(3) for b in range(a, 3)) % 2 != (math.prod(signs) < 0)

    def thing(name, content="", **attributes):
        given = "".join(' %s="%s"' % (k.replace("__", ":"), v) for k, v in attributes.items())
        return "<%s%s%s>%s</%s%s>" % (prefix, name, given, content, prefix, name)

    def mesh(i, triangles, kind="model"):
        vertices = "".join(thing("vertex", **{a: repr(float(c)) for a, c in zip("xyz", p)}) for p in inner)
        body = "".join(
            thing("triangle", **{"v%d" % (k + 1): c for k, c in enumerate(t[::-1] if odd else t)})
            for t in triangles
        )
        return thing(
            "object", thing("mesh", thing("vertices", vertices) + thing("triangles", body)), id=i, type=kind
        )

    def model(resources, build=""):
        coding = r.choice(("utf-8", "utf-16"))
        text = '<?xml version="1.0" encoding="%s"?>'
        text += '<%smodel unit="inch" %s requiredextensions="p">%s</%smodel>'
        content = thing("resources", resources) + thing("build", build)
        return (text % (coding, prefix, spaces, content, prefix)).encode(coding)

    transform = " ".join(repr(float(c)) for row in matrix for c in row)
    root, parts, build = "", [], ""
    for i, triangles in enumerate(objects, 1):
        where = {}
        if r.random() < 0.5:
            parts.append(("3D/Objects/o_%d.model" % i, model(mesh(1, triangles))))
            where = {"p__path": "/3D/Objects/o_%d.model" % i}
        else:
            root += mesh(i, triangles)
        of = dict(where, objectid=1 if where else i)
        if r.random() < 0.5:
            root += thing("object", thing("components", thing("component", **of)), id=100 + i)
            of = dict(objectid=100 + i)
        build += thing("item", transform=transform, **of)
    if r.random() < 0.3:
        root += mesh(50, objects[0], r.choice(("support", "other", "solidsupport")))
        build += thing("item", objectid=50)
    name = r.choice(("3D/3dmodel.model", "3D/my model.model", "root.model"))
    start = '<Relationships><Relationship Target="/%s" Type="%s"/></Relationships>' % (
        name.replace(" ", "%20"),
        "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel",
    )
    refused = None
    if parts and r.random() < 0.1:
        parts.pop()
        refused = "a part is missing"
    data = packed([("_rels/.rels", start.encode()), *parts, (name, model(root, build))])
    if r.random() < 0.1:
        at = 30 + len("_rels/.rels") + r.randrange(100)  # among its compressed bytes
        data, refused = data[:at] + bytes((data[at] ^ 4,)) + data[at + 1 :], "damaged"
    return data, refused


GLTF_CODES = {5121: "B", 5122: "h", 5123: "H", 5125: "I", 5126: "f"}


def gltf(r, corners, triangles):
    """glTF, as text or .glb, of a part that a node places; None if its floats would be rounded. The bytes, the
    ending, and why they have to be refused."""
    refused, used, node, data, views, accessors = None, [], {}, bytearray(), [], []
    corners = [list(map(float, p)) for p in corners]
    if r.random() < 0.5:
        node["translation"] = [r.choice((0, 2.5, -8)) for _ in "xyz"]
        corners = [[c - m for c, m in zip(p, node["translation"])] for p in corners]
    if r.random() < 0.5:
        node["scale"] = [r.choice((1, 2, -0.5)) for _ in "xyz"]
        corners = [[c / s for c, s in zip(p, node["scale"])] for p in corners]
        if math.prod(node["scale"]) < 0:  # then faces look inwards unless their corners are swapped
            triangles = [t[::-1] for t in triangles]
    if r.random() < 0.3:  # a quarter turn, which comes before the others
        node["rotation"] = [0.5**0.5, 0, 0, 0.5**0.5]
        sizes = node.get("scale", [1, 1, 1])
        corners = [[c * s for c, s in zip(p, sizes)] for p in corners]
        corners = [[x / sizes[0], z / sizes[1], -y / sizes[2]] for x, y, z in corners]
    integers = all(c == int(c) and abs(c) < 2**15 for p in corners for c in p)

    def view(content, **more):
        data.extend(b"\1" * (-len(data) % 4))
        views.append({"buffer": 0, "byteOffset": len(data), "byteLength": len(content), **more})
        data.extend(content)
        return len(views) - 1

    def accessor(rows, code, kind, stride=0, **more):
        width, letter = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[kind], GLTF_CODES[code]
        size = struct.calcsize("<%d%s" % (width, letter))
        rows = b"".join(struct.pack("<%d%s" % (width, letter), *row).ljust(stride, b"\7") for row in rows)
        if kind == "VEC3" and not stride and size % 4:
            raise AssertionError("vertices have strides of 4 bytes")
        at = view(b"\3" * 4 + rows, **({"byteStride": stride} if stride else {}))
        made = {"bufferView": at, "byteOffset": 4, "componentType": code, "type": kind, **more}
        accessors.append({"count": len(rows) // max(stride, size), **made})
        return len(accessors) - 1

    code, stride = 5126, r.choice((0, 12, 20))
    if integers and r.random() < 0.5:
        low = min(c for p in corners for c in p)
        code, stride = r.choice((5122, 5122 if low < 0 else 5123)), r.choice((8, 12))
        used.append("KHR_mesh_quantization")
    as_type = (lambda p: list(map(int, p))) if code != 5126 else (lambda p: p)
    part, indexed = {"attributes": {}}, r.random() < 0.8
    if code == 5126 and indexed and r.random() < 0.2:  # moved by a target
        moves = [[r.choice((0.0, 0.5, 4.0)) for _ in "xyz"] for _ in corners]
        part["targets"] = [{}, {"POSITION": accessor(moves, 5126, "VEC3")}]
        corners = [[c - 2 * m for c, m in zip(p, by)] for p, by in zip(corners, moves)]
        node["weights"] = [7.5, 2.0]
    if not all(struct.unpack("<f", struct.pack("<f", c))[0] == c for p in corners for c in p):
        return None
    listed = corners if indexed else [corners[i] for t in triangles for i in t]
    replaced = sorted(r.sample(range(len(listed)), len(listed) // 3)) if r.random() < 0.2 else []
    rows = [as_type([0.0] * 3 if i in replaced else p) for i, p in enumerate(listed)]
    part["attributes"]["POSITION"] = accessor(rows, code, "VEC3", stride)
    if replaced:
        values = b"".join(struct.pack("<3" + GLTF_CODES[code], *as_type(listed[i])) for i in replaced)
        accessors[-1]["sparse"] = {
            "count": len(replaced),
            "indices": {"bufferView": view(struct.pack("<%dI" % len(replaced), *replaced)), "componentType": 5125},
            "values": {"bufferView": view(values)},
        }
    if indexed:
        of_index = r.choice((5121, 5123, 5125) if len(corners) < 256 else (5123, 5125))
        part["indices"] = accessor([(i,) for t in triangles for i in t], of_index, "SCALAR")
    if r.random() < 0.2 and "targets" not in part:
        joints = accessor([(0, 0, 0, 0)] * len(listed), 5121, "VEC4")
        part["attributes"] |= {"JOINTS_0": joints, "WEIGHTS_0": accessor([(0.25, 0.75, 0, 0)] * len(listed), 5126, "VEC4")}
        node["skin"] = 0
    elif r.random() < 0.3:
        used.append("EXT_mesh_gpu_instancing")
        attributes = {"TRANSLATION": accessor([(0.0, 0.0, 0.0)], 5126, "VEC3")}
        node["extensions"] = {"EXT_mesh_gpu_instancing": {"attributes": attributes}}
    required = list(used)
    if r.random() < 0.1:
        used.append(r.choice(("KHR_draco_mesh_compression", "EXT_meshopt_compression", "EXT_curved")))
        required, refused = list(used), "an extension"
    if r.random() < 0.1 and not refused:
        views[0]["byteLength"], refused = len(data) + 1, "a view behind its buffer"
    made = {"asset": {"version": "2.0"}, "nodes": [{"mesh": 0, **node}], "meshes": [{"primitives": [part]}]}
    made |= {"bufferViews": views, "accessors": accessors, "buffers": [{"byteLength": len(data)}]}
    if "skin" in node:
        made["skins"] = [{"joints": [0, 0]}]
    if used:
        made |= {"extensionsUsed": used, "extensionsRequired": required}
    if r.random() < 0.5:
        made |= {"scenes": [{"nodes": []}, {"nodes": [0]}], "scene": 1}
    if r.random() < 0.5:
        uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
        made["buffers"][0]["uri"] = uri
        return json.dumps(made).encode(), "gltf", refused
    text = json.dumps(made).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    data.extend(b"\0" * (-len(data) % 4))
    chunks += struct.pack("<II", len(data), 0x004E4942) + data
    made = struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks
    if r.random() < 0.1 and not refused:
        made, refused = made[:-9], "cut short"
    return made, "glb", refused


def mesh_file(r):
    corners, faces, side, cubes = stacked_cubes(r)
    scale = r.choice((1, 0.5, 8))
    move = r.choice(((0, 0, 0), (-3, 5, 0.5), (4096, -512, 64)))
    corners = [[scale * c + m for c, m in zip(p, move)] for p in corners]
    if r.random() < 0.5:
        faces = [t for q in faces for t in ((q[0], q[1], q[2]), (q[0], q[2], q[3]))]
    triangles = [t for q in faces for t in [(q[0], q[i], q[i + 1]) for i in range(1, len(q) - 1)]]
    order = list(range(len(corners)))
    r.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    corners, faces = [corners[i] for i in order], [[place[i] for i in f] for f in faces]
    triangles_at = [[corners[place[i]] for i in t] for t in triangles]
    end = r.choice(("\n", "\r\n"))
    kind = r.choice(("ply", "ply", "obj", "stl", "ascii.stl", "off", "3mf", "3mf", "amf", "gltf", "gltf", "gltf"))
    number = r.choice((repr, lambda x: "%.3f" % x, lambda x: "%.6e" % x))
    refused = None
    if kind == "obj":
        lines = ["# cubes", "o cubes"] + ["v " + " ".join(number(float(c)) for c in p) for p in corners]
        relative = r.random() < 0.3
        lines += ["f " + " ".join("%d" % (i - len(corners) if relative else i + 1) for i in f) for f in faces]
        data = (end.join(lines) + end).encode()
        if r.random() < 0.2:
            data = (end.join(lines) + end).encode("utf-16")
    elif kind == "off":
        head = r.choice(("OFF", "COFF", "NOFF", "# made\nOFF"))
        more = {"COFF": " 0.5 0 0 1", "NOFF": " 0 0 1"}.get(head, "")
        counts = "%d %d 0" % (len(corners), len(faces))
        lines = [head + r.choice(("", " ", end)) + counts] + ["# corners", ""] * (r.random() < 0.3)
        lines += [" ".join(number(float(c)) for c in p) + more for p in corners]
        lines += [" ".join(map(str, (len(f), *f))) + r.choice(("", " 255 0 0")) for f in faces]
        if r.random() < 0.1:
            lines, refused = lines[:-1], "cut short"
        data = (end.join(lines) + end).encode()
    elif kind == "gltf":
        made = gltf(r, corners, [[place[i] for i in t] for t in triangles])
        if made is None:
            return mesh_file(r)
        data, kind, refused = made
    elif kind in ("3mf", "amf"):
        data, refused = placed_in_xml(r, kind, corners, [[place[i] for i in t] for t in triangles])
    elif kind == "stl":
        data = (
            b"made".ljust(80, b"\0")
            + struct.pack("<I", len(triangles_at))
            + b"".join(struct.pack("<12fH", 0, 0, 0, *sum(t, []), 0) for t in triangles_at)
        )
    elif kind == "ascii.stl":
        lines = ["solid cubes"]
        for t in triangles_at:
            lines += (
                ["facet normal 0 0 0", " outer loop"]
                + ["  vertex " + " ".join(number(float(c)) for c in p) for p in t]
                + [" endloop", "endfacet"]
            )
        data = (end.join(lines + ["endsolid cubes"]) + end).encode()
    else:
        ascii_, big = r.random() < 0.4, r.random() < 0.5
        type_ = r.choice(("float", "double") + (("short", "int") if scale != 0.5 and move[2] != 0.5 else ()))
        index, count = (
            r.choice(("int", "uint", "ushort", "short", "uint16")),
            r.choice(("uchar", "int", "ushort")),
        )
        names = "XYZ" if r.random() < 0.2 else "xyz"
        extra = r.random() < 0.3
        newline = b"\n" if ascii_ else b""
        vertex = b"".join(
            (ply_value(r, "B", ascii_, big)[0] if extra else b"")
            + b"".join(ply_value(r, CODES[type_], ascii_, big, c)[0] for c in p)
            + newline
            for p in corners
        )
        body = b"".join(
            (ply_value(r, "f", ascii_, big)[0] if extra else b"")
            + ply_value(r, CODES[count], ascii_, big, len(f))[0]
            + b"".join(ply_value(r, CODES[index], ascii_, big, i)[0] for i in f)
            + newline
            for f in faces
        )
        parts = [
            (
                ["element vertex %d" % len(corners)]
                + ["property uchar red"] * extra
                + ["property %s %s" % (type_, a) for a in names],
                vertex,
            ),
            (
                ["element face %d" % len(faces)]
                + ["property float quality"] * extra
                + ["property list %s %s %s" % (count, index, r.choice(("vertex_indices", "vertex_index")))],
                body,
            ),
        ]
        if r.random() < 0.3:
            parts.reverse()
        head = (
            [
                "ply",
                "format %s 1.0"
                % ("ascii" if ascii_ else "binary_big_endian" if big else "binary_little_endian"),
            ]
            + parts[0][0]
            + parts[1][0]
            + ["end_header"]
        )
        data = (end.join(head) + end).encode() + parts[0][1] + parts[1][1]
        if r.random() < 0.1:
            data, refused = data[:-9], "cut short"
    name = "mesh." + kind.split(".")[-1]
    if kind not in ("3mf", "amf", "glb", "gltf") and r.random() < 0.1:
        name, data = name + ".gz", gzip.compress(data)
    case = Case(name, data, None, refused)
    case.side, case.cubes = side, cubes
    return case


def check_mesh(roost, folder, r, case):
    file = os.path.join(folder, case.name)
    with open(file, "wb") as out:
        out.write(case.data)
    times = r.choice((1, 2, 5))
    run = subprocess.run(
        [
            roost,
            "voxels",
            file,
            "--grid",
            str(case.side * times),
            "--place",
            "host",
            "--threads",
            "1",
            "--no-picture",
            "--format",
            "json",
            "--out",
            folder,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if run.returncode != 0:
        return (
            None
            if case.refused and run.returncode == 1 and "\nroost" not in run.stderr
            else "refused: exit %d, %s" % (run.returncode, run.stderr)
        )
    if case.refused:
        return "not refused: %s" % case.refused
    got, want = json.loads(run.stdout)["result"]["volume_voxels"], case.cubes * times**3
    return "grid %d: %d voxels, wanted %d" % (case.side * times, got, want) if got != want else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roost")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("clouds", "meshes"))
    parser.add_argument("--one", help="the one case of this seed")
    options = parser.parse_args()
    makers = [text_cloud, text_cloud, text_cloud, ply_cloud, pcd_cloud, npy_cloud, bin_cloud]
    end = time.monotonic() + options.seconds
    cases = refused = 0
    print("seed %d" % options.seed, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            seed = options.one or "%d.%d" % (options.seed, cases)
            r = random.Random(seed)
            mesh = options.only == "meshes" or (options.only is None and r.random() < 0.25)
            case = mesh_file(r) if mesh else r.choice(makers)(r)
            wrong = (check_mesh if mesh else check_cloud)(options.roost, folder, r, case)
            cases += 1
            refused += case.refused is not None
            if wrong:
                kept = os.path.join(tempfile.gettempdir(), "roost_random_%s_%s" % (seed, case.name))
                with open(kept, "wb") as out:
                    out.write(case.data)
                sys.exit("case %s: %s\n%s\n(repeat it: --one %s)" % (seed, kept, wrong, seed))
            if options.one:
                break
    print("%d files, %d of them to be refused, perhaps: no difference" % (cases, refused))


if __name__ == "__main__":
    main()
