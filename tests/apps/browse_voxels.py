"""`roost voxels --serve` in a real browser. Usage: browse_voxels.py PATH_OF_ROOST [FOLDER_FOR_SCREENSHOTS]"""

import json
import re
import subprocess
import sys
import time

import numpy
from browser import Browser

roost, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
WIDTH, HEIGHT = 1000, 700
CANVAS = (365, 350)  # a point in its middle


def start(port="0"):
    process = subprocess.Popen(
        [
            roost,
            "voxels",
            "box",
            "sphere",
            "--place",
            "host",
            "--grid",
            "32",
            "--op",
            "difference",
            "--place-b",
            "scale 0.8 move 0.3 0.3 0.3",
            "--serve",
            port,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if match := re.match(r"(http://127\.0\.0\.1:(\d+)/) ", line):
            return process, match[1], match[2]
    sys.exit("no address")


def settle(tab):
    """The page has shown what was asked for last. (One that is behind others does not draw.)"""
    tab.call("Page.bringToFront")
    tab.wait(
        "document.body && typeof answer !== 'undefined' && answer && !busy && !frameWanted && "
        "!by('trouble').textContent"
    )
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shown(tab, name=None):
    """How many pixels of the canvas are of stone, blue and green, and all pixels."""
    settle(tab)
    # Without the numbers, which are never the same, and the frame of what has the focus.
    tab.evaluate("by('facts').style.visibility = 'hidden', document.activeElement.blur()")
    if folder and name:
        with open(f"{folder}/{name}.png", "wb") as file:
            file.write(tab.png())
    box = tab.evaluate("JSON.stringify(canvas.getBoundingClientRect())")
    box = json.loads(box)
    pixels = tab.pixels()[: int(box["height"]), : int(box["width"])]
    red, green, blue = (pixels[..., i] for i in range(3))
    stone = (red > green + 5) & (green > blue + 15)
    is_blue = (blue > red + 60) & (blue > green + 25)
    is_green = (green > red + 40) & (green > blue + 40)
    return [int(k.sum()) for k in (stone, is_blue, is_green)], pixels


def differ(a, b):
    return a.shape != b.shape or int((numpy.abs(a - b).max(axis=2) > 40).sum()) > 300


def press(tab, button):
    tab.evaluate(f"document.querySelector('{button}').click()")


def count(tab):
    settle(tab)
    return tab.evaluate("answer.voxels")


server, address, port = start()
try:
    with Browser() as browser:
        tab = browser.open(address)
        tab.resize(WIDTH, HEIGHT)

        # It draws: a box of stone, a bite of blue with a green edge, white around.
        (stone, blue, green), first = shown(tab, "first")
        at_first = stone + blue + green
        assert stone > 20000 and blue > 5000 and green > 300, (stone, blue, green)
        assert (first[5, 5] == 255).all() and (first[:, 0] == 255).all(), "something where nothing is"
        dark, light = numpy.percentile(first[200:500, 200:500].sum(axis=2), (2, 98))
        assert light - dark > 100, "no light and shade"

        facts = tab.evaluate("by('facts').textContent")
        assert "4,873 voxels drawn of 22,832 in 32" in facts, facts
        assert "tables of voxels: A rebuilt, B rebuilt in " in facts and "of the CPU" in facts, facts
        assert tab.evaluate("by('at').textContent") == "from: scale 0.8 move 0.3 0.3 0.3"
        assert tab.evaluate("by('heading').textContent") == "roost voxels: box, sphere"
        assert tab.evaluate("by('said').textContent") == "4873 voxels drawn"

        # Operations, by button and by key; every one has its count, and its picture.
        counts = {
            op: (press(tab, f"[value={op}]"), count(tab))[1]
            for op in ("union", "intersection", "difference", "xor")
        }
        assert len(set(counts.values())) == 4, counts
        tab.key("2")
        assert count(tab) == counts["intersection"]
        (stone, blue, green), both = shown(tab, "intersection")
        assert stone > 10000 and green > 3000 and differ(first, both), (stone, blue, green)
        tab.key("5")
        assert count(tab) == tab.evaluate("answer.classes.reduce((a, b) => a + b)")
        (_, inside, _), _ = shown(tab, "surfaces")
        press(tab, "#classes input")  # without what is outside, what is inside can be seen
        (stone, blue, _), _ = shown(tab, "inside")
        assert stone < 300 and blue > inside and blue > 3000, (stone, blue, inside)
        press(tab, "#classes input")
        tab.key("3")
        assert not differ(shown(tab)[1], first)

        # A slider by keyboard: the answer is another one, and it goes back.
        tab.evaluate("document.querySelectorAll('#sliders input')[6].focus()")
        for _ in range(20):
            tab.key("ArrowRight")
        assert tab.evaluate("state.moves[1][6]") == 1.2
        bigger = count(tab)
        assert bigger != counts["difference"]
        facts = tab.evaluate("by('facts').textContent")
        assert "tables of voxels: A kept, B rebuilt in " in facts, facts
        (_, blue_now, _), moved = shown(tab, "scaled")
        assert differ(first, moved) and blue_now > 5000

        # What has the focus keeps its own keys, and those alone.
        for control in ("#sliders input", "#grid", "#inside", "#classes input", "#play", "#mesh"):
            tab.evaluate(f"document.querySelector('{control}').focus()")
            kept = tab.evaluate("JSON.stringify([state.grid, state.inside, moving, state.moves])")
            for number, op in ((2, "intersection"), (1, "union"), (4, "xor"), (3, "difference")):
                tab.key(str(number))
                assert tab.evaluate("state.op") == op, (control, number)
            tab.key("1", modifiers=2)
            assert tab.evaluate("state.op") == "difference", "with control it is the browser's"
            tab.evaluate("camera.turn += 1; 0")
            tab.key("0")
            assert tab.evaluate("camera.turn === scene.turn * Math.PI / 180"), control
            for key in "pP":
                tab.key(key)
                assert tab.evaluate("playing !== 0"), (control, key)
                tab.key(key)
                assert tab.evaluate("playing === 0"), (control, key)
            settle(tab)
            tab.evaluate(f"state.moves[1] = JSON.parse('{kept}')[3][1]; ask(); 0")
            settle(tab)
            assert tab.evaluate("JSON.stringify([state.grid, state.inside, moving, state.moves])") == kept, (
                control
            )
        tab.evaluate("document.querySelector('#sliders input').focus()")
        for spins in (True, False):
            tab.key(" ")
            assert tab.evaluate("spinning") == spins, "space after a slider"
        tab.key("0")

        # Play stops whenever the mouse says so; then space spins, and does not press the button again.
        box = json.loads(tab.evaluate("JSON.stringify(by('play').getBoundingClientRect())"))
        button = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for k in range(10):
            for plays in (True, False):
                for kind in ("mousePressed", "mouseReleased"):
                    tab.mouse(kind, *button, button="left", clickCount=1)
                assert tab.evaluate("[playing !== 0, by('play').ariaPressed]") == [
                    plays,
                    str(plays).lower(),
                ], k
                time.sleep(0.02 * k)
            where = tab.evaluate("JSON.stringify(state.moves)")
            settle(tab)
            time.sleep(0.05)
            assert tab.evaluate("playing === 0 && JSON.stringify(state.moves)") == where, f"it plays on: {k}"
        tab.key(" ")
        assert tab.evaluate("spinning && playing === 0")
        tab.key(" ")
        tab.key("0")
        tab.evaluate("state.moves[1] = [...AT_REST]; state.moves[1][6] = 1.2; showState(); ask(); 0")
        assert count(tab) == bigger

        # Answers tell what has changed; the voxels are those of an answer that tells everything.
        tab.evaluate("document.querySelectorAll('#sliders input')[6].focus()")
        for key in ("ArrowLeft", "ArrowRight"):
            tab.key(key)
            count(tab)
            assert tab.evaluate("answer.changed > 0 && answer.bytes < 4 * answer.voxels"), key
        tab.evaluate("document.activeElement.blur()")
        tab.evaluate("window.kept = voxels, answer = null, ask(), 0")
        assert count(tab) == bigger
        assert tab.evaluate(
            "answer.since === undefined && voxels !== kept && ['words', 'around'].every("
            "k => voxels[k].length === kept[k].length && voxels[k].every((w, i) => w === kept[k][i]))"
        )

        # A reload keeps what was asked for; a second tab is on its own; the first one can go.
        time.sleep(0.4)
        tab.reload()
        time.sleep(0.2)
        assert count(tab) == bigger and not differ(shown(tab)[1], moved)
        second = browser.open(address)
        second.resize(WIDTH, HEIGHT)
        assert count(second) == counts["difference"]
        for k in range(5):  # both at once
            for t in (tab, second):
                t.evaluate(f"state.moves[1][0] = {0.05 * k}; ask(); 0")
        press(second, "[value=xor]")
        assert count(tab) != count(second)
        tab.evaluate("toggle('play'); 0")
        time.sleep(0.3)
        tab.close()
        second.evaluate("state.moves[1] = [...AT_REST]; ask(); 0")
        assert count(second) == counts["xor"]
        tab = second
        tab.key("3")

        # The camera: mouse, wheel, keys, fingers; 0 brings it back.
        def looks(what):
            now = shown(tab)[1]
            assert differ(first, now), f"{what}: nothing changed"
            tab.key("0")
            assert not differ(first, shown(tab)[1]), f"{what}: 0 does not bring the view back"

        tab.drag(CANVAS, (450, 380))
        looks("drag")
        tab.drag(CANVAS, (450, 380), modifiers=8)
        looks("shift and drag")
        tab.mouse("mouseWheel", *CANVAS, deltaX=0, deltaY=-400)
        assert sum(shown(tab)[0]) > 1.3 * at_first, "the wheel does not zoom in"
        looks("wheel")
        for key in ("ArrowLeft", "ArrowUp", "+", "-"):
            for _ in range(3):
                tab.key(key)
            looks(key)
        tab.key("ArrowRight", modifiers=8)
        tab.key("ArrowRight", modifiers=8)
        looks("shift and arrows")
        tab.resize(WIDTH, HEIGHT, mobile=True)
        first = shown(tab)[1]
        tab.touch([(300, 300)], [(330, 310)], [(380, 330)])
        looks("one finger")
        tab.touch([(330, 350), (400, 350)], [(280, 350), (450, 350)], [(230, 350), (500, 350)])
        looks("two fingers")
        tab.key(" ")
        time.sleep(0.5)
        tab.key(" ")
        looks("space")

        # A mesh follows the mouse and a finger: its middle on the screen moves as far as they do.
        tab.resize(WIDTH, HEIGHT)
        press(tab, "#reset-all")
        first = shown(tab)[1]
        at_rest = count(tab)
        middle = (
            "(b => { const v = view(), p = [0, 1, 2].map(i => (b[i] + b[i + 3]) / 2 - v.eye[i]); "
            "return ['right', 'up'].map(k => dot(p, v[k]) / -dot(p, v.out) / FIELD * "
            "Math.min(canvas.clientWidth, canvas.clientHeight)); })(answer.boxes[1])"
        )

        def follows(what, drag, far):
            before = tab.evaluate(f"JSON.stringify({middle})")
            drag()
            settle(tab)
            x, y = (
                b - a
                for a, b in zip(json.loads(before), json.loads(tab.evaluate(f"JSON.stringify({middle})")))
            )
            assert abs(x - far[0]) < 3 and abs(y + far[1]) < 3, (what, x, y, far)

        end = (CANVAS[0] + 90, CANVAS[1] - 60)
        follows("alt", lambda: tab.drag(CANVAS, end, modifiers=1), (90, -60))
        assert count(tab) != at_rest and differ(first, shown(tab)[1])
        assert tab.evaluate("camera.turn === scene.turn * Math.PI / 180 && !grabbed")
        press(tab, "#back")
        assert count(tab) == at_rest and not differ(first, shown(tab)[1])
        tab.key("m")
        assert tab.evaluate("by('grab').ariaPressed") == "true"
        outlined = shown(tab, "outline")[1]
        assert (numpy.abs(first - outlined).max(axis=2) > 40).sum() > 100, "no outline"
        follows("drag", lambda: tab.drag(CANVAS, end), (90, -60))
        far_out = (CANVAS[0] - 200, CANVAS[1] + 20)
        follows("far", lambda: tab.drag(CANVAS, far_out), (-200, 20))
        shown(tab, "far")
        tab.resize(WIDTH, HEIGHT, mobile=True)
        follows("finger", lambda: tab.touch([(300, 300)], [(330, 310)], [(380, 330)]), (80, 30))
        tab.resize(WIDTH, HEIGHT)

        # Up is another axis, which a reload keeps; and all is as it was at first.
        tab.evaluate("by('up').value = 'z', by('up').dispatchEvent(new Event('change')), 0")
        assert tab.evaluate("JSON.stringify(axes[1])") == "[0,0,1]"
        time.sleep(0.4)
        tab.reload()
        time.sleep(0.2)
        settle(tab)
        assert tab.evaluate("JSON.stringify([axes[1], by('up').value])") == '[[0,0,1],"z"]'
        press(tab, "#reset-all")
        assert count(tab) == at_rest and tab.evaluate("JSON.stringify(axes[1])") == "[0,1,0]"
        assert not differ(first, shown(tab)[1])

        # A narrow window: a picture, and nothing beside the window.
        tab.resize(320, 560, mobile=True)
        colours, pixels = shown(tab, "narrow")
        assert min(colours) > 50 and pixels.shape[0] > 200, (colours, pixels.shape)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 320
        tab.resize(WIDTH, HEIGHT)

        # A lost context comes back; an end of the server is told, and a new one is found.
        tab.evaluate("(window.lose = gl.getExtension('WEBGL_lose_context')).loseContext(); 0")
        time.sleep(0.3)
        tab.evaluate("lose.restoreContext(); 0")
        time.sleep(0.3)
        assert not differ(shown(tab)[1], first), "the context did not come back"
        server.kill()
        server.wait()
        press(tab, "[value=union]")
        tab.wait("by('trouble').textContent.startsWith('No answer')")
        browser.log.clear()
        server, _, _ = start(port)
        press(tab, "[value=difference]")
        assert count(tab) == counts["difference"]
        assert not browser.log, browser.log
finally:
    server.kill()
    server.wait()
