"""What `roost voxels --serve` answers, and what it survives. Usage: ask_server.py PATH_OF_ROOST"""

import http.client
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.parse

roost = sys.argv[1]


def start(*arguments):
    """The server, its port, and what it printed before its address."""
    process = subprocess.Popen(
        [roost, "voxels", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    printed = []
    for line in process.stdout:
        printed.append(line)
        if match := re.match(r"http://127\.0\.0\.1:(\d+)/ ", line):
            return process, int(match[1]), printed
    sys.exit(f"{arguments}: no address: {printed} {process.stderr.read()}")


def get(port, path, host="127.0.0.1", **query):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(
        "GET", path + ("?" + urllib.parse.urlencode(query) if query else ""), headers={"Host": host}
    )
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def told_raw(port, data, patience=20):
    """All that comes back for these bytes, until the server closes or says no more for a second."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        try:
            connection.sendall(data)
        except OSError:
            pass  # it has ended the connection
        came = b""
        try:
            while part := connection.recv(1 << 16):
                came += part
                connection.settimeout(1)
        except OSError:
            pass
        return came


def status_of(port, *lines):
    """The status of a request: GET /scene with these lines."""
    head = "\r\n".join(("GET /scene HTTP/1.1", *lines, "Connection: close", "", ""))
    return int(told_raw(port, head.encode()).split()[1])


def memory_of(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmRSS"))


def voxels(port, **query):
    """What is told of voxels, their classes by position, and what is around them."""
    status, body = get(port, "/voxels", **query)
    assert status == 200, (query, status, body)
    (length,) = struct.unpack_from("<I", body)
    told = json.loads(body[4 : 4 + length])
    n = told["voxels"]
    assert length % 4 == 0 and len(body) == 4 + length + 8 * n, (query, told, len(body))
    words = struct.unpack_from(f"<{n}I", body, 4 + length)
    around = struct.unpack_from(f"<{n}I", body, 4 + length + 4 * n)
    at = {position(w): w >> 30 for w in words}
    assert len(at) == n and [list(at.values()).count(k) for k in range(3)] == told["classes"], told
    return told, at, dict(zip(at, around))


def changes(port, since, **query):
    """What is told, and the positions that go and the voxels that change, if it tells them alone."""
    status, body = get(port, "/voxels", since=since, **query)
    assert status == 200, (query, status, body)
    (length,) = struct.unpack_from("<I", body)
    told = json.loads(body[4 : 4 + length])
    if "since" not in told:
        assert len(body) == 4 + length + 8 * told["voxels"], told
        return told, None, None
    gone, new = told["removed"], told["changed"]
    assert told["since"] == since and len(body) == 4 + length + 4 * gone + 8 * new, told
    numbers = struct.unpack_from(f"<{gone + 2 * new}I", body, 4 + length)
    assert list(numbers[:gone]) == sorted(set(numbers[:gone]))
    return told, numbers[:gone], dict(zip(numbers[gone : gone + new], numbers[gone + new :]))


def position(word):
    return word >> 20 & 1023, word >> 10 & 1023, word & 1023


def one_command(*arguments):
    command = [roost, "voxels", *arguments, "--place", "host", "--format", "json", "--no-picture"]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout)


meshes = ("box", "sphere")
there = ("--place-b", "scale 0.9 move 0.05 0 0.02")
server, port, printed = start(*meshes, *there, "--place", "host", "--grid", "40", "--serve", "0")
try:
    # The page is all there is, and it asks nobody else.
    status, page = get(port, "/")
    assert status == 200 and b"<canvas" in page and b"://" not in page, page[:200]
    scene = json.loads(get(port, "/scene")[1])
    assert [m["name"] for m in scene["meshes"]] == list(meshes) and scene["grid"] == 40, scene

    # Those who are slow keep nobody waiting, and are left after five seconds, however they are slow.
    begin = time.monotonic()
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(80)]
    for i, one in enumerate(slow):
        head = b"GET /scene HTTP/1.1\r\nHost: localhost\r\n"
        one.sendall((b"G", head, head + b"Content-Length: 9\r\n\r\n1")[i % 3])
    assert get(port, "/scene")[0] == 200 and time.monotonic() - begin < 3, "slow ones keep others waiting"
    slow_since = time.monotonic()

    # The same as on the command line; neighbours are right. A grid of 70 has rows of three words of bits.
    for op in ("union", "intersection", "difference", "xor", "surfaces"):
        for grid in (40,) if op != "difference" else (1, 40, 70):
            told, at, around = voxels(port, op=op, grid=grid)
            if op == "intersection":  # the command's grid encloses what both share; the page's the first mesh
                rest = voxels(port, op="difference", grid=grid)[0]["volume_voxels"]
                assert told["volume_voxels"] + rest == grid**3 and told["scale"] == 1, told
                continue
            known = one_command(*meshes, *there, "--op", op, "--grid", str(grid))
            exposed = (
                sum(known["classes"].values()) if op == "surfaces" else known["result"]["exposed_voxels"]
            )
            assert told["voxels"] == exposed and told["grid"] == grid and told["scale"] == 1, (
                op,
                told,
                known,
            )
            if op != "surfaces":
                assert told["volume_voxels"] == known["result"]["volume_voxels"], (op, told, known)
            for voxel, bits in list(around.items())[::17]:
                for k in range(27):
                    beside = tuple(p + k // 3 ** (2 - i) % 3 - 1 for i, p in enumerate(voxel))
                    if beside in at or op == "surfaces":
                        assert (beside in at) == bool(bits >> k & 1), (op, grid, voxel, k)
                sides = sum(bits >> k & 1 for k in (4, 10, 12, 14, 16, 22))
                assert sides < 6 or op == "surfaces", (op, grid, voxel)

    # Moves come after those of the command line; a mesh that goes far makes the cube grow.
    first = voxels(port, op="difference")
    assert voxels(port, op="difference", **{"place-b": "move 0.1 0 0"})[1] != first[1]
    far = voxels(port, op="union", **{"place-b": "move 3 0 0"})[0]
    assert far["scale"] == 8 and far["notes"] == [], far
    notes = voxels(port, op="union", grid=64, **{"place-b": "move 1e30 0 0"})[0]["notes"]
    assert len(notes) == 2 and all("e+30 times" in note and "nearer" in note for note in notes), notes
    assert voxels(port, op="difference")[1:] == first[1:]
    assert voxels(port, op="difference", inside="vote")[1:] == first[1:]

    # Only what has changed since an answer that the page has: nothing, something, and all where that is less.
    start_of = {"op": "difference", "place-b": "move -0.05 0 0"}
    step = {"op": "difference", "place-b": "move -0.055 0 0"}
    base, at, around = voxels(port, **start_of)
    told, gone, new = changes(port, base["id"], **start_of)
    assert gone == () and new == {} and told["id"] > base["id"], (told, gone, new)
    told, gone, new = changes(port, base["id"], **step)
    assert 0 < len(gone) < base["voxels"] / 2 and 0 < len(new) < told["voxels"] / 2, told
    for p in gone:
        del at[position(p)], around[position(p)]
    for w, bits in new.items():
        at[position(w)], around[position(w)] = w >> 30, bits
    fresh = voxels(port, **step)
    assert (at, around) == fresh[1:] and told["voxels"] == len(at) and told["classes"] == fresh[0]["classes"]
    assert changes(port, fresh[0]["id"], op="intersection")[1] is None, "most has changed"
    assert changes(port, fresh[0]["id"], op="difference", grid=41)[1] is None, "another grid"
    assert changes(port, fresh[0]["id"], op="union", **{"place-b": "move 3 0 0"})[1] is None, "another cube"
    assert changes(port, fresh[0]["id"] + 1000, **step)[1] is None, "an answer that was not given"
    for _ in range(4):
        voxels(port, op="xor")
    assert changes(port, fresh[0]["id"], **step)[1] is None, "an answer that is long ago"

    # What cannot be.
    for words, query in (
        ("no such operation", {"op": "sum"}),
        ("no number", {"grid": "4x"}),
        ("no number of an answer", {"since": "-1"}),
        ("1 to 1024", {"grid": 1025}),
        ("no such rule", {"inside": "fill"}),
        ("'turn'", {"place-b": "turn 3"}),
        ("scale 0", {"place-a": "scale 0"}),
        ("place-c", {"place-c": "scale 2"}),
        ("too far", {"place-b": "scale 1e200 scale 1e200"}),
    ):
        status, body = get(port, "/voxels", **query)
        assert status == 400 and words in body.decode() and body.count(b"\n") == 1, (
            query,
            status,
            body[:200],
        )
    assert get(port, "/nothing")[0] == 404
    for target in ("/voxels?op=xor&op=union", "/voxels?op=%zz", "/voxels?op=%4"):
        assert get(port, target)[0] == 400, target
    assert get(port, "/voxels?o%70=xor&grid=8")[1] != get(port, "/voxels?grid=8")[1]

    # One Host, which is exactly this server's.
    assert get(port, "/scene", host="evil.example:80")[0] == 403
    for host in ("localhost", "127.0.0.1", f"localhost:{port}", f"127.0.0.1:{port}"):
        assert status_of(port, f"Host: {host}") == 200, host
    for host in (
        "",
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1:{port + 1}",
        "127.0.0.1:",
        "localhost:80:80",
        f"localhost:{port}:80",
        f"user@127.0.0.1:{port}",
        f"127.0.0.1:{port}@evil.example",
        "127.0.0.1:evil",
        f"127.0.0.1.evil.example:{port}",
        "127.0.0.1, evil.example",
        f"0.0.0.0:{port}",
        f"127.1:{port}",
    ):
        assert status_of(port, f"Host: {host}") == 403, host
    assert status_of(port) == 403, "no Host"
    assert status_of(port, "Host: localhost", "Host: localhost") == 403, "two"
    assert status_of(port, "Host: localhost", "host: evil.example") == 403, "two"

    # Bodies are of no use: large ones are refused before they come, and are kept nowhere.
    before = memory_of(server)
    for method in ("GET", "POST"):
        head = f"{method} /scene HTTP/1.1\r\nHost: localhost\r\n"
        begin = time.monotonic()
        assert told_raw(port, f"{head}Content-Length: 1000000000\r\n\r\n".encode()).split()[1] == b"413", (
            method
        )
        assert told_raw(port, f"{head}Content-Length: 65537\r\n\r\n".encode()).split()[1] == b"413", method
        assert time.monotonic() - begin < 4, "waits for the body"
        chunks = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        assert (
            told_raw(port, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + 9 * chunks).split()[1]
            == b"413"
        )
        told_raw(port, f"{head}Content-Length: 300000000\r\n\r\n".encode() + bytes(300000000))
    assert status_of(port, "Host: localhost", "Content-Length: 0") == 200
    close = b"Host: localhost\r\nConnection: close\r\n"
    small = b"GET /scene HTTP/1.1\r\n" + close + b"Content-Length: 65536\r\n\r\n" + bytes(65536)
    assert told_raw(port, small).split()[1] == b"200"
    assert told_raw(port, b"GET /" + b"x" * (1 << 22)).split()[1] == b"431"
    assert told_raw(port, b"GET / HTTP/1.1\r\nA: " + b"x" * (1 << 22)).split()[1] == b"431"
    assert told_raw(port, b"hello\r\n\r\n").split()[1] == b"400"
    assert told_raw(port, b"POST / HTTP/1.1\r\n" + close + b"\r\n").split()[1] == b"405"
    head = told_raw(port, b"HEAD / HTTP/1.1\r\n" + close + b"\r\n")
    assert head.endswith(b"\r\n\r\n") and f"Content-Length: {len(page)}".encode() in head, head
    assert memory_of(server) < before + 40, (before, memory_of(server))

    # A byte now and then does not help; and by now the server has left those that were slow.
    with socket.create_connection(("127.0.0.1", port)) as drip:
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 9:
                drip.sendall(b"G")
                time.sleep(0.25)
            assert False, "a request may take long if something comes now and then"
        except OSError:
            assert 4 < time.monotonic() - begin < 8, time.monotonic() - begin
    assert time.monotonic() - slow_since > 5
    for one in slow:
        one.settimeout(1)
        try:
            assert one.recv(1) == b"", "a slow one got an answer"
        except ConnectionError:
            pass
        one.close()

    # Those who go away before or in the middle of an answer, those who say nothing or nonsense.
    line = b"GET /voxels?grid=256&op=union HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    for i in range(12):
        with socket.create_connection(("127.0.0.1", port)) as gone:
            gone.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # a reset, not an end
            gone.sendall(line if i % 3 else b"\x00nonsense\r\n\r\n")
            if i % 2:
                gone.settimeout(60)
                gone.recv(100)
    assert voxels(port, op="difference")[1:] == first[1:]
    for one in silent:
        one.close()
    assert server.poll() is None

    # The port is taken, and nothing else is told.
    second = subprocess.run(
        [roost, "voxels", *meshes, "--serve", str(port)], capture_output=True, text=True, timeout=60
    )
    assert second.returncode == 1 and second.stderr.count("\n") == 1 and f"port {port}" in second.stderr, (
        second
    )

    # Ctrl-C in the middle of an answer.
    with socket.create_connection(("127.0.0.1", port)) as busy:
        busy.sendall(b"GET /voxels?grid=1024&op=union HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        time.sleep(0.2)
        begin = time.monotonic()
        server.send_signal(signal.SIGINT)
        server.wait(10)
        assert time.monotonic() - begin < 2, "Ctrl-C took long"
    assert server.stderr.read() == "", "something on stderr"
finally:
    server.kill()
    server.wait()

# One mesh; three, one of which is open; the port can be had again at once.
with open("open.obj", "w") as file:
    file.write("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\n")
for arguments, count in ((("sphere",), 1), (("sphere", "open.obj", "torus"), 3)):
    server, port, printed = start(*arguments, "--place", "host", "--grid", "20", "--serve", str(port))
    try:
        scene = json.loads(get(port, "/scene")[1])
        assert len(scene["meshes"]) == count, scene
        assert (len(scene["notes"]) == 1 and "open.obj: 3 edges are open" in "".join(printed)) == (
            count == 3
        ), (scene, printed)
        assert voxels(port)[0]["voxels"] > 0
        assert get(port, "/voxels", op="surfaces")[0] == 400
        assert voxels(port, **{"place-" + chr(96 + count): "move 0.5 0 0"})[0]["voxels"] > 0
    finally:
        server.kill()
        server.wait()
