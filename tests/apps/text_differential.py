#!/usr/bin/env python3
"""roost join and roost unique on random files, against Python's csv module and dicts.

    text_differential.py PATH_OF_ROOST [--seconds 60] [--seed 1] [--only CASE] [--large]

Prints the seed, and for a failure the command, its case and the folder with its files. `--only` runs one case
again. `--large` also takes files as large as what is in memory at once.
"""

import argparse
import collections
import csv
import gzip
import io
import itertools
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

csv.field_size_limit(1 << 30)
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "apps")
BOM = b"\xef\xbb\xbf"
ZSTD, PZSTD = shutil.which("zstd"), shutil.which("pzstd")
LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def threshold(file, name):
    """A constant of the readers, such as `name = std::size_t{2} << 20` or `name = 8192`."""
    with open(os.path.join(SOURCES, file)) as source:
        found = re.search(rf"\b{name} =\s*(?:std::size_t\{{(\d+)\}} << (\d+)|(\d+))[;,]", source.read())
    return int(found[3]) if found[3] else int(found[1]) << int(found[2])


HEAD = threshold("shared/text_file.cpp", "head_bytes")
STORED = threshold("shared/text_file.cpp", "stored_bytes")
PIECE = threshold("shared/csv.hpp", "text_piece_bytes")
WRITTEN = threshold("shared/output_file.hpp", "piece")
ROWS = threshold("text/write_rows.hpp", "most_rows")
PAIRS = threshold("text/fields.hpp", "matches_at_once")
LEFT = threshold("text/join.cpp", "streamed_bytes")
COUNTED = threshold("text/unique.cpp", "bytes_at_once")
ORDERED = threshold("text/unique.cpp", "ordered_bytes")
SIZES = [HEAD, STORED, WRITTEN, PIECE, PIECE, 2 * PIECE]  # bytes


def quoted(field, delimiter):
    if not re.search(rb'["\r\n' + re.escape(delimiter) + b"]", field):
        return field
    return b'"' + field.replace(b'"', b'""') + b'"'


def line_of(row, delimiter):
    return b'""' if list(row) == [b""] else delimiter.join(quoted(field, delimiter) for field in row)


class Table:
    """Rows of fields, the first with the names, and the bytes of a file that has them."""

    def __init__(self, rng, rows, delimiter):
        self.rows, self.delimiter = rows, delimiter
        end = rng.choice([b"\n", b"\n", b"\r\n", b"\r\n", b"\r", None])  # None: of all kinds
        quotes = rng.choice([0, 0, 0.3, 1])
        empty = rng.choice([0, 0, 0, 0.1])
        some_end = (lambda: end) if end else (lambda: rng.choice([b"\n", b"\r\n", b"\r"]))
        one_column = len(rows[0]) == 1
        parts = []
        self.starts = []  # of rows, as numbers of parts
        for row in rows:
            while empty and rng.random() < empty:
                parts.append(some_end())
            fields = [
                b'"' + field.replace(b'"', b'""') + b'"'
                if (quotes and rng.random() < quotes) or (one_column and not field)
                else quoted(field, delimiter)
                for field in row
            ]
            self.starts.append(len(parts))
            parts.append(delimiter.join(fields))
            parts.append(some_end())
        self.ends = parts[self.starts[0] + 1]
        if rng.random() < 0.3 and len(rows) > 1:
            parts.pop()  # the last line has no end
        bom = BOM if rng.random() < 0.3 or parts[0].startswith(BOM) else b""
        self.bytes = bom + b"".join(parts)
        self.crlf = self.ends == b"\r\n" or (
            self.ends == b"\r"
            and len(parts) > self.starts[0] + 2
            and parts[self.starts[0] + 2].startswith(b"\n")
        )
        if len(self.bytes) < 3 * PIECE:
            text = io.StringIO(self.bytes[len(bom) :].decode("latin-1"), newline="")
            read = [row for row in csv.reader(text, delimiter=delimiter.decode(), strict=True) if row]
            assert read == [[field.decode("latin-1") for field in row] for row in rows], (
                "the test's own writer"
            )


def some_text(rng, delimiter):
    pieces = [
        b"a",
        b"b",
        b"x",
        b" ",
        b"0",
        b"7",
        b"-",
        b"\xc3\xa9",
        b"e\xcc\x81",
        b"\xff",
        b"\0",
        BOM,
        b'"',
        b",",
        b";",
        delimiter,
        b"\n",
        b"\r",
        b"\r\n",
        b"\xe2\x80\xa8",
        b"\t",
        b"=",
        b"'",
    ]
    return b"".join(rng.choice(pieces) for _ in range(rng.choice([0, 1, 1, 2, 3, 5])))


def keys(rng, delimiter):
    """Keys to draw from: numbers, texts that look like numbers, and any texts."""
    kind = rng.randrange(6)
    if kind == 0:
        return [b"%d" % rng.randrange(-50, 50) for _ in range(rng.choice([1, 5, 60]))]
    if kind == 1:
        wide = rng.choice([2**31, 2**32, 2**63, 2**64])
        return [b"%d" % (sign * wide + near) for near in range(-2, 3) for sign in (1, -1)]
    if kind == 2:
        return [
            b"0",
            b"-0",
            b"00",
            b"+0",
            b"7",
            b"07",
            b"7.0",
            b" 7",
            b"7 ",
            b"1e3",
            b"1_000",
            b"-7",
            b"\xd9\xa7",
            b"",
            b"-",
        ]
    if kind == 3:
        return [b"%05d" % rng.randrange(200) for _ in range(30)] + [b"k%d" % i for i in range(30)]
    some = [some_text(rng, delimiter) for _ in range(rng.choice([1, 3, 20]))]
    if kind == 4:
        return some
    return some + [b"%d" % i for i in range(9)] + [b""]


def names(rng, columns, delimiter):
    result = [b"c%d" % i for i in range(columns)]
    if rng.random() < 0.3:
        result[rng.randrange(columns)] = b""
    if rng.random() < 0.3:
        result[rng.randrange(columns)] = some_text(rng, delimiter).replace(b"\0", b"") + b"n"
    if rng.random() < 0.1 and columns > 2:
        result[-1] = result[-2]
    rng.shuffle(result)
    if result[0].startswith(BOM):
        result[0] = b"mark" + result[0]  # a file that begins with two would be another one when it is written
    return result


def body(rng, columns, pool, delimiter, rows, key_columns):
    others = [b"", b"v", b"1", b"%d" % rng.randrange(1000), some_text(rng, delimiter)]
    return [
        [rng.choice(pool) if c in key_columns else rng.choice(others) for c in range(columns)]
        for _ in range(rows)
    ]


def to_size(rng, rows, size, key_columns, delimiter):
    """Puts rows before these so that they begin near the byte `size` of a plain file, give or take a few."""
    columns = len(rows[0])
    wide = b"f" * rng.choice([9000, 9000, 9000, 500, 20])
    filler = [[b"%d" % i if c in key_columns else wide for c in range(columns)] for i in range(7)]
    if len(key_columns) == columns:
        filler = [[wide] * columns]
    bytes_of_some = sum(len(line_of(row, delimiter)) + 1 for row in filler)
    before = sum(len(line_of(row, delimiter)) + 1 for row in rows[:1])
    times = max(0, size - before) // bytes_of_some
    taken = filler * times
    left = size + rng.randrange(-6, 7) - before - times * bytes_of_some
    pad = [b""] * columns
    overhead = columns
    free = [c for c in range(columns) if c not in key_columns]
    where = rng.choice(free) if free else 0
    pad[where] = b"p" * max(1, left - overhead)
    return rows[:1] + taken + [pad] + rows[1:]


def random_rows(rng, large):
    if rng.random() < 0.95:
        return rng.choice([0, 0, 1, 2, 3, 7, 40, 300])
    return rng.choice([ROWS - 1, ROWS, ROWS + 1])


def random_table(rng, delimiter, pool, large, columns=None, key_columns=None):
    columns = columns or rng.choice([1, 1, 2, 3, 3, 5, 5, rng.randrange(1, 300)])
    key_columns = key_columns or sorted(rng.sample(range(columns), min(columns, rng.choice([1, 1, 1, 2, 3]))))
    rng.shuffle(key_columns)
    header = names(rng, columns, delimiter)
    for c in key_columns:  # must be found by their names
        header[c] = b"key%d" % c if header.count(header[c]) > 1 else header[c]
    rows = [header] + body(
        rng, columns, pool, delimiter, random_rows(rng, large) if columns < 20 else 5, key_columns
    )
    r = rng.random()
    if r < 0.1 and columns < 20:
        size = LEFT if large and r < 0.01 else rng.choice(SIZES)
        rows = to_size(rng, rows, size, key_columns, delimiter)
    return Table(rng, rows, delimiter), key_columns


def pieces(rng, data):
    """The data in a few pieces, of which some may be empty."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice([0, 1, 1, 3])))
    return [data[a:b] for a, b in zip([0] + cuts, cuts + [len(data)])]


def packed(rng, data):
    """The data as a file has them: as they are, or compressed in one of many ways."""

    def skippable():
        return (
            bytes([0x50 + rng.randrange(16), 0x2A, 0x4D, 0x18]) + b"\3\0\0\0abc"
            if rng.random() < 0.3
            else b""
        )

    def zstd(piece, *options):
        return subprocess.run(
            [ZSTD, "-q", "-c", "-1", *options], input=piece, stdout=subprocess.PIPE, check=True
        ).stdout

    r = rng.random()
    if r < 0.6:
        return data
    if r < 0.8 or not ZSTD:
        result = b"".join(gzip.compress(piece, 1) for piece in pieces(rng, data))
        return result + rng.choice([b"", b"", b"\0" * rng.choice([1, 512, 10000]), gzip.compress(b"")])
    if r < 0.85 and PZSTD:
        return subprocess.run(
            [PZSTD, "-q", "-c", "-1"], input=data, stdout=subprocess.PIPE, check=True
        ).stdout
    options = rng.choice(
        [[], [], ["--long=31"], ["--no-check"], ["--ultra", "-20"] if len(data) < 10000 else []]
    )
    return skippable() + b"".join(zstd(piece, *options) + skippable() for piece in pieces(rng, data))


def given(rng, folder, name, data, stdin):
    """Puts the data into a file, a FIFO or standard input. Returns the argument, what to write to stdin and a
    thread that writes a FIFO."""
    r = rng.random()
    if r < 0.15 and not stdin:
        return "-", data, None
    path = os.path.join(folder, name)
    if r > 0.95:
        with open(path + ".kept", "wb") as file:
            file.write(data)
        os.mkfifo(path)

        def feed():
            try:
                with open(path, "wb") as file:
                    file.write(data)
            except BrokenPipeError:
                pass

        return path, None, threading.Thread(target=feed, daemon=True)
    with open(path, "wb") as file:
        file.write(data)
    return path, None, None


class Failed(Exception):
    pass


def run(command, stdin, feeds):
    for feed in feeds:
        if feed:
            feed.start()
    done = subprocess.run(
        command, input=stdin if stdin is not None else b"", capture_output=True, check=False, timeout=300
    )
    return done.returncode, done.stdout, done.stderr


def expect(command, got, output):
    code, stdout, stderr = got
    if code != 0 or stderr:
        raise Failed(f"exit code {code}: {stderr[:300]!r}\n{shlex.join(command)}")
    if stdout != output:
        at = next(
            (i for i, (a, b) in enumerate(zip(stdout, output)) if a != b), min(len(stdout), len(output))
        )
        around = slice(max(0, at - 60), at + 60)
        raise Failed(
            f"differs at byte {at} of {len(output)} ({len(stdout)} came): got {stdout[around]!r}, "
            f"expected {output[around]!r}\n{shlex.join(command)}"
        )


def refused(command, got, *words):
    code, stdout, stderr = got
    if code == 0 or stdout or stderr.count(b"\n") != 1 or any(word not in stderr for word in words):
        raise Failed(
            f"not refused with {words}: code {code}, {stderr[:300]!r}, {stdout[:99]!r}\n{shlex.join(command)}"
        )


def free_name(name, taken, suffix):
    """As joined files name the columns of the second one."""
    for i in range(5):
        if name + i * suffix not in taken:
            return name + i * suffix
    return next(n for n in (name + 4 * suffix + b"%d" % i for i in itertools.count(1)) if n not in taken)


def join_case(rng, folder, large):
    delimiter = rng.choice([b",", b",", b",", b";", b"\t", b"|", b" ", b":", b"x"])
    pool = keys(rng, delimiter)
    a, a_keys = random_table(rng, delimiter, pool, large)
    columns = max(len(a_keys), rng.choice([1, 2, 3, 4, 4, rng.randrange(1, 300)]))
    b_keys = rng.sample(range(columns), len(a_keys))
    b, b_keys = random_table(
        rng, delimiter, rng.choice([pool, pool, keys(rng, delimiter)]), large, columns, b_keys
    )
    kind = rng.choice(["inner", "left", "right", "outer", "semi", "anti"])
    never = rng.random() < 0.3
    suffix = rng.choice([b"_right", b"_right", b"_b", b"x"])
    key_of = lambda row, columns: tuple(row[c] for c in columns)
    matches = lambda key: not never or b"" not in key
    there = collections.defaultdict(list)
    for i, row in enumerate(b.rows[1:]):
        if matches(key := key_of(row, b_keys)):
            there[key].append(i)
    found = lambda row: there.get(key, []) if matches(key := key_of(row, a_keys)) else []
    if sum(len(found(row)) for row in a.rows[1:]) > 2 * PAIRS:
        kind = rng.choice(["semi", "anti"])
    header, rest = list(a.rows[0]), [c for c in range(columns) if c not in b_keys]
    if kind not in ("semi", "anti"):
        taken = set(header)
        for c in rest:
            header.append(free_name(b.rows[0][c], taken, suffix))
            taken.add(header[-1])
    rows, seen = [header], set()
    alone = lambda row: [dict(zip(a_keys, key_of(row, b_keys))).get(c, b"") for c in range(len(a.rows[0]))]
    for row in a.rows[1:] if kind != "right" else []:
        pairs = found(row)
        if kind == "semi" or kind == "anti":
            rows += [row] if bool(pairs) == (kind == "semi") else []
            continue
        rows += [row + [b.rows[1 + i][c] for c in rest] for i in pairs]
        if not pairs and kind != "inner":
            rows.append(row + [b""] * len(rest))
        seen.update(pairs)
    if kind == "outer":
        rows += [alone(row) + [row[c] for c in rest] for i, row in enumerate(b.rows[1:]) if i not in seen]
    if kind == "right":
        of_a = collections.defaultdict(list)
        for row in a.rows[1:]:
            if matches(key := key_of(row, a_keys)):
                of_a[key].append(row)
        for row in b.rows[1:]:
            partners = of_a.get(key := key_of(row, b_keys), []) if matches(key_of(row, b_keys)) else []
            rows += [left + [row[c] for c in rest] for left in partners or [alone(row)]]
    chosen = [c for c, name in enumerate(header) if header.count(name) == 1 and rng.random() < 0.5]
    if rng.random() < 0.7 or not chosen:
        chosen = []
    else:
        rows = [[row[c] for c in chosen] for row in rows]
    end = b"\r\n" if a.crlf else b"\n"
    output = b"".join(line_of(row, delimiter) + end for row in rows)

    left, stdin, feed_a = given(rng, folder, "a", packed(rng, a.bytes), False)
    right, other, feed_b = given(rng, folder, "b", packed(rng, b.bytes), stdin is not None)
    command = [
        ARGS.roost,
        "join",
        left,
        right,
        "--kind",
        kind,
        "--suffix",
        suffix.decode(),
        "--place",
        "host",
        "--delimiter",
        delimiter.decode(),
        "--threads",
        str(rng.choice([1, 2, 3])),
    ]
    for ka, kb in zip(a_keys, b_keys):
        name_a, name_b = a.rows[0][ka], b.rows[0][kb]
        if b"=" in name_a and name_a != name_b:
            return  # cannot be named
        command += ["--on", name_a if name_a == name_b else name_a + b"=" + name_b]
    if never:
        command += ["--empty-keys", "never"]
    for c in rng.sample(chosen, len(chosen)):
        command += ["--column", header[c]]
    command = [os.fsdecode(part) for part in command]
    expect(command, run(command, stdin if stdin is not None else other, [feed_a, feed_b]), output)


def counted(rng, texts, command):
    """The lines of `roost unique` for these texts, which get options."""
    counts = collections.Counter(texts)
    order = list(counts)
    if rng.random() < 0.3:
        command += ["--sort", "count"]
        order.sort(key=lambda text: -counts[text])
    if rng.random() < 0.3:
        top = rng.choice([1, 2, 5, ROWS, ROWS + 1, 2**64 - 1])
        command += ["--top", str(top)]
        order = order[:top]
    return [(text, counts[text]) for text in order]


NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)", re.A)


def random_number(rng):
    return rng.choice(
        [
            b"",
            b"0",
            b"-0",
            b"007",
            b"+5",
            b"1.",
            b".5",
            b"-.25",
            b"0.000000000000000001",
            b"99999999999999999999",
        ]
        + [b"%d" % rng.randrange(-1000, 1000), b"%d.%02d" % (rng.randrange(1000), rng.randrange(100))] * 5
    )


def sum_of(values):
    """Of the numbers of a key, in units of 10^-18; None without any."""
    scaled = []
    for value in values:
        whole, _, part = value.lstrip(b"+-").partition(b".")
        number = int(whole + part.ljust(18, b"0") or b"0")
        scaled.append(-number if value.startswith(b"-") else number)
    return sum(scaled) if scaled else None


def printed(scaled, places):
    if scaled is None:
        return b""
    digits = b"%019d" % abs(scaled)
    return (b"-" if scaled < 0 else b"") + digits[:-18] + (b"." + digits[-18:][:places] if places else b"")


def summary_case(rng, folder, large):
    """Sums and different values by key."""
    delimiter = rng.choice([b",", b";", b"\t"])
    table, columns = random_table(rng, delimiter, keys(rng, delimiter), large)
    free = [c for c, name in enumerate(table.rows[0]) if table.rows[0].count(name) == 1]
    sums = rng.sample(free, min(len(free), rng.choice([0, 1, 1, 2])))
    distinct = rng.sample(free, min(len(free), rng.choice([0, 1, 2])))
    bad = rng.random() < 0.1
    rows = [list(row) for row in table.rows]
    for row in rows[1:]:
        for c in sums:
            row[c] = random_number(rng)
            if bad and rng.random() < 0.1:
                row[c] = rng.choice(
                    [b"x", b"1e3", b"-", b".", b"1.2.3", b"0.0000000000000000001", b"9" * 21, b" 1"]
                )
    table = Table(rng, rows, delimiter)
    name, stdin, feed = given(rng, folder, "a", packed(rng, table.bytes), False)
    command = [ARGS.roost, "unique", name, "--place", "host", "--delimiter", delimiter.decode()]
    for option, chosen in (("--column", columns), ("--sum", sums), ("--count-distinct", distinct)):
        for c in chosen:
            command += [option, os.fsdecode(table.rows[0][c])]
    if not sums and not distinct:
        command += ["--format", "csv"]
    header = [table.rows[0][c] for c in columns]
    for new in (
        [b"count"] + [b"sum_" + rows[0][c] for c in sums] + [b"distinct_" + rows[0][c] for c in distinct]
    ):
        while new in header:
            new += b"_of_rows"
        header.append(new)
    of_key = collections.defaultdict(list)
    for row in rows[1:]:
        of_key[tuple(row[c] for c in columns)].append(row)
    fits = lambda value: NUMBER.fullmatch(value) and len(value.partition(b".")[2]) <= 18
    values = {c: [row[c] for row in rows[1:] if row[c]] for c in sums}
    wrong = any(not fits(value) or abs(sum_of([value])) >= 2**127 for c in sums for value in values[c])
    if wrong:  # or a sum of what comes before is beyond
        return refused(command, run(command, stdin, [feed]), b"column '", b"10^20")
    places = {c: max([len(value.partition(b".")[2]) for value in values[c]], default=0) for c in sums}
    lines, beyond = [header], False
    for key, some in of_key.items():
        line = [*key, b"%d" % len(some)]
        for c in sums:
            here = [row[c] for row in some if row[c]]
            partial = list(itertools.accumulate([sum_of([value]) for value in here]))
            beyond = beyond or any(not -(2**127) <= part < 2**127 for part in partial)
            line.append(printed(partial[-1] if partial else None, places[c]))
        for c in distinct:
            line.append(b"%d" % len({row[c] for row in some} - {b""}))
        lines.append(line)
    if beyond:
        return refused(command, run(command, stdin, [feed]), b"goes beyond")
    end = b"\r\n" if table.crlf else b"\n"
    output = b"".join(delimiter.join([quoted(field, delimiter) for field in line]) + end for line in lines)
    expect(command, run(command, stdin, [feed]), output)


def column_case(rng, folder, large):
    delimiter = rng.choice([b",", b",", b";", b"\t", b"|", b" "])
    table, columns = random_table(rng, delimiter, keys(rng, delimiter), large)
    name, stdin, feed = given(rng, folder, "a", packed(rng, table.bytes), False)
    command = [ARGS.roost, "unique", name, "--place", "host", "--delimiter", delimiter.decode()]
    for c in columns:
        command += ["--column", os.fsdecode(table.rows[0][c])]
    found = counted(rng, [tuple(row[c] for c in columns) for row in table.rows[1:]], command)
    one = delimiter.join
    if rng.random() < 0.5:
        command += ["--format", "csv"]
        header = [table.rows[0][c] for c in columns]
        count = b"count"
        while count in header:
            count += b"_of_rows"
        lines = [header + [count]] + [[*text, b"%d" % n] for text, n in found]
        end = b"\r\n" if table.crlf else b"\n"
        output = b"".join(one([quoted(field, delimiter) for field in line]) + end for line in lines)
    else:
        output = b"".join(
            b"%7d " % n + one([quoted(field, delimiter) for field in text]) + b"\n" for text, n in found
        )
    expect(command, run(command, stdin, [feed]), output)


def lines_case(rng, folder, large):
    end = rng.choice(
        [
            [b"\n"],
            [b"\n"],
            [b"\r\n"],
            [b"\r\n"],
            [b"\r"],
            [b"\n", b"\r\n"],
            [b"\n", b"\r\n", b"\r", b"\r\r\n"],
        ]
    )
    pool = keys(rng, b",") + [b"line %d" % i for i in range(rng.choice([1, 50, 3000]))]
    lines = [rng.choice(pool) for _ in range(random_rows(rng, large))]
    if rng.random() < 0.5:  # lines in order, which need no table up to where they are not
        lines.sort(key=rng.choice([bytes, lambda line: (len(line), line)]), reverse=rng.random() < 0.3)
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(pool))
    data = b"".join(line + rng.choice(end) for line in lines)
    if rng.random() < 0.2:
        size = rng.choice([COUNTED, ORDERED] if large and rng.random() < 0.05 else SIZES)
        some = b"".join(b"filler %d" % (i % 83) * rng.choice([1, 1000]) + end[0] for i in range(1000))
        left = max(0, size - len(data) + rng.randrange(-6, 7))
        data = some * (left // len(some)) + some[: left % len(some)] + data
    if rng.random() < 0.3:
        data = data[: -rng.randrange(1, 4)]
    if rng.random() < 0.1 and data.endswith(b"\n"):
        data += b"last\r"
    text = data[3:] if data.startswith(BOM) else data
    if text.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return
    split = text.split(b"\n" if b"\n" in text else b"\r")
    if split[-1] == b"":
        split.pop()
    texts = [line[:-1] if line.endswith(b"\r") else line for line in split]
    if not data.startswith(BOM) and rng.random() < 0.3:
        data = BOM + data
    name, stdin, feed = given(rng, folder, "a", packed(rng, data), False)
    command = [ARGS.roost, "unique", name, "--place", "host"]
    found = counted(rng, texts, command)
    if rng.random() < 0.3:
        command += ["--format", "csv"]
        output = b"line,count\n" + b"".join(quoted(text, b",") + b",%d\n" % n for text, n in found)
    else:
        output = b"".join(b"%7d " % n + text + b"\n" for text, n in found)
    expect(command, run(command, stdin, [feed]), output)


def parse(data, columns, delimiter):
    """Rows and bad lines (from 0, and what is wrong), as the guide has it, of text behind its header."""
    lines = LINES.findall(data)
    rows, bad = [], []

    def parse_row(i):
        if b'"' not in lines[i]:
            return lines[i].rstrip(b"\r\n").split(delimiter), i + 1, None
        fields, field, state = [], bytearray(), "begin"
        for j in range(i, len(lines)):
            text = lines[j]
            stop = len(text.rstrip(b"\r\n"))
            for at in range(len(text)):
                c = text[at : at + 1]
                if state == "quoted":
                    state = "quote" if c == b'"' else state
                    field += b"" if c == b'"' else c
                elif c == b'"' and state == "quote":
                    field += c
                    state = "quoted"
                elif c == b'"' and state == "plain":
                    return None, i, b"has a quote inside a field"
                elif c == b'"':
                    state = "quoted"
                elif c == delimiter or at >= stop:
                    fields.append(bytes(field))
                    field, state = bytearray(), "begin"
                    if at >= stop:
                        return fields, j + 1, None
                elif state == "quote":
                    return None, i, b"has text behind a closing quote"
                else:
                    field += c
                    state = "plain"
        if state == "quoted":
            return None, i, b"has a quote that is never closed"
        return fields + [bytes(field)], len(lines), None

    i = 0
    while i < len(lines):
        if not lines[i].strip(b"\r\n"):
            i += 1
            continue
        row, after, wrong = parse_row(i)
        if wrong is None and len(row) != columns:
            wrong = b"has %d field%s and the header %d" % (len(row), b"" if len(row) == 1 else b"s", columns)
        if wrong is None:
            rows.append(row)
        else:
            bad.append((i, wrong))
        i = after if row is not None else i + 1
    return rows, bad


def malformed_case(rng, folder, large):
    columns = rng.choice([1, 2, 2, 3])
    header = b",".join(b"c%d" % c for c in range(columns)) + rng.choice([b"\n", b"\r\n", b"\r"])
    alphabet = [
        b"a",
        b"b",
        b",",
        b'"',
        b'""',
        b"\n",
        b"\r",
        b"\r\n",
        b'",',
        b',"',
        b'"\n',
        b"1,2\n",
        b'"x\ny",2\n',
    ]
    data = b"".join(rng.choice(alphabet) for _ in range(rng.choice([3, 10, 30, 200])))
    if rng.random() < 0.05:
        good = (b",".join([b"good" * rng.choice([1, 1000])] * columns) + b"\n") * 1000
        left = rng.choice([PIECE, 2 * PIECE]) - len(header) + rng.randrange(-20, 20) - len(data) // 2
        data = good * (left // len(good)) + b"g" * (left % len(good)) + data
    data = data.lstrip(b"\n") if header.endswith(b"\r") else data
    rows, bad = parse(data, columns, b",")
    name, stdin, feed = given(rng, folder, "a", packed(rng, header + data), False)
    column = rng.randrange(columns)
    command = [ARGS.roost, "unique", name, "--place", "host", "--column", f"c{column}"]
    if bad and rng.random() < 0.3:
        return refused(command, run(command, stdin, [feed]), b"line %d %s" % (bad[0][0] + 2, bad[0][1]))
    command += ["--bad-lines", "skip"]
    found = counted(rng, [row[column] for row in rows], command)
    output = b"".join(b"%7d " % n + quoted(text, b",") + b"\n" for text, n in found)
    code, stdout, stderr = run(command, stdin, [feed])
    said = b"left out %d bad line" % len(bad) if bad else b""
    first = b"line %d %s" % (bad[0][0] + 2, bad[0][1]) if bad else b""
    if said not in stderr or first not in stderr or (stderr and not bad):
        raise Failed(f"expected {said!r}, {first!r}; said {stderr[:300]!r}\n{shlex.join(command)}")
    expect(command, (code, stdout, b""), output)


def damaged_case(rng, folder, large):
    """Compressed files that are cut off are refused, wherever that is."""
    data = b"".join(b"line %d\n" % rng.randrange(100) for _ in range(rng.choice([1, 10, 1000, 40000])))
    if rng.random() < 0.5 or not ZSTD:
        members = [gzip.compress(piece) for piece in pieces(rng, data)]
    else:
        members = [
            subprocess.run([ZSTD, "-q", "-c"], input=piece, stdout=subprocess.PIPE, check=True).stdout
            for piece in pieces(rng, data)
        ]
    whole = b"".join(members)
    cuts = {0, *itertools.accumulate(len(member) for member in members)}
    cut = rng.randrange(4, len(whole))
    if cut in cuts:
        return
    name, stdin, feed = given(rng, folder, "a", whole[:cut], False)
    command = [ARGS.roost, "unique", name, "--place", "host"]
    refused(command, run(command, stdin, [feed]), b"is cut off")


CASES = [
    (join_case, 10),
    (summary_case, 5),
    (column_case, 5),
    (lines_case, 5),
    (malformed_case, 5),
    (damaged_case, 1),
]


def main():
    counts, began = collections.Counter(), time.monotonic()
    print(f"seed {ARGS.seed}", flush=True)
    for i in itertools.count():
        if ARGS.only is None and time.monotonic() - began >= ARGS.seconds:
            break
        i = i if ARGS.only is None else ARGS.only
        rng = random.Random(f"{ARGS.seed}, {i}")
        case = rng.choices([case for case, _ in CASES], [weight for _, weight in CASES])[0]
        folder = tempfile.mkdtemp(prefix="roost_text_")
        try:
            case(rng, folder, ARGS.large)
        except (Failed, subprocess.TimeoutExpired) as failure:
            print(f"FAILED: seed {ARGS.seed}, --only {i}, {case.__name__}, files in {folder}: {failure}")
            return 1
        counts[case.__name__] += 1
        if ARGS.only is not None:
            print(f"files in {folder}")
            return 0
        shutil.rmtree(folder)
    print(f"ok: {sum(counts.values())} cases: {dict(counts)}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("roost")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="CASE")
    parser.add_argument("--large", action="store_true")
    ARGS = parser.parse_args()
    sys.exit(main())
