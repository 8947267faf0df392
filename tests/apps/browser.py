"""A headless Chromium, driven by the DevTools protocol through its pipe."""

import base64
import io
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    """A browser with any number of tabs, which ends with the `with` block."""

    def __enter__(self):
        self.home = tempfile.mkdtemp()
        ours, theirs = os.pipe(), os.pipe()  # what the browser reads as 3, what it writes as 4
        os.dup2(ours[0], 200), os.dup2(theirs[1], 201)
        command = [
            "chromium",
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.home}",
            "--window-size=1000,700",
            "about:blank",
        ]
        line = 'exec "$@" 3<&200 4>&201 200<&- 201>&-'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", line, "bash", *command],
            pass_fds=(200, 201),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (200, 201, ours[0], theirs[1]):
            os.close(end)
        self.to, self.back = ours[1], theirs[0]
        self.number, self.rest, self.log = 0, b"", []
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to), os.close(self.back)
        shutil.rmtree(self.home, ignore_errors=True)

    def call(self, method, session=None, patience=60, **parameters):
        """The result of a command; errors of the pages that come meanwhile are kept in `log`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        end = time.monotonic() + patience
        while True:
            while b"\0" in self.rest:
                line, _, self.rest = self.rest.partition(b"\0")
                answer = json.loads(line)
                if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                    self.log.append(answer["params"])
                if answer.get("id") == self.number:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return answer["result"]
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{method}: no answer from the browser within {patience} s")
            part = os.read(self.back, 1 << 20)
            if not part:
                raise RuntimeError(f"{method}: the browser has ended")
            self.rest += part

    def open(self, address):
        return Tab(self, address)


class Tab:
    def __init__(self, browser, address):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=address)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression):
        """The value of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression, patience=60):
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + patience
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise TimeoutError(
                    f"not true within {patience} s: {expression}; the page says "
                    f"{self.evaluate('document.body.innerText')!r}"
                )
            time.sleep(0.05)
        return value

    def key(self, key, modifiers=0):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                modifiers=modifiers,
                **({"text": key} if len(key) == 1 and kind == "keyDown" else {}),
            )

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, start, end, modifiers=0):
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1, modifiers=modifiers)
        for i in range(1, 6):
            self.mouse(
                "mouseMoved",
                *(a + (b - a) * i / 5 for a, b in zip(start, end)),
                button="left",
                buttons=1,
                modifiers=modifiers,
            )
        self.mouse("mouseReleased", *end, button="left", buttons=0, clickCount=1, modifiers=modifiers)

    def touch(self, *steps):
        """Fingers, which lie at the points of each step in turn, and leave."""
        for i, points in enumerate(steps):
            self.call(
                "Input.dispatchTouchEvent",
                type="touchStart" if i == 0 else "touchMove",
                touchPoints=[{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)],
            )
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def resize(self, width, height, mobile=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def png(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def pixels(self):
        """What is on the screen: rows of red, green and blue."""
        import numpy
        from PIL import Image

        return numpy.asarray(Image.open(io.BytesIO(self.png())).convert("RGB")).astype(int)

    def reload(self):
        self.call("Page.reload")

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
