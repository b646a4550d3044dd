"""Run notebooks in a real browser, as a learner does, on a copy of the course.

Starts JupyterLab as `make lab` does, opens each notebook in headless Chromium, chooses Run All
Cells and looks for what a learner would stumble over: errors, cells that did not run, pictures
that are missing, pop-ups, requests to other hosts. A picture of every notebook is saved.
"""

import argparse
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import psutil

from tools.notebooks import ROOT, code_cells, read, tags
from tools.processes import running

PAGE_SCRIPT = Path(__file__).with_suffix(".js")
PLAYWRIGHT = "playwright>=1.50,<2"
START = "notebooks/00_start_here.ipynb"
DEFAULT = [START, "notebooks/exercises/00_start_here.ipynb"]
SYSTEM_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_CHROMIUM = """browser_smoke: no Chromium found. Install one (Debian: apt-get install chromium;
Ubuntu: snap install chromium) or name it: make browser CHROMIUM=/path/to/chromium"""
FLAGS = [  # Chromium itself asks nothing outside either, so that a request is the page's
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-proxy-server",
]
LEFT_OUT = (".git", ".venv", ".hypothesis", ".ipynb_checkpoints", "__pycache__")
WIDTH, HEIGHT, TALLEST = 1240, 1000, 16_000  # pixels of the page, and of its picture at most
SERVER_SECONDS, PAGE_SECONDS, RUN_SECONDS = 60, 90, 600


def find_chromium() -> str | None:
    """The browser that CHROMIUM names, else one that the system has."""
    names = [named] if (named := os.environ.get("CHROMIUM")) else SYSTEM_CHROMIUMS
    return next(filter(None, map(shutil.which, names)), None)


def install_playwright() -> None:
    """Install the library that drives Chromium, unless it is there (needs the network once)."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        print(f"Installing {PLAYWRIGHT}, which drives Chromium, into this environment.", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", PLAYWRIGHT], check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def lab(course: Path, state: Path) -> Iterator[str]:
    """`make lab` in the folder `course`: gives the address to open, in the end stops the server."""
    port, token = free_port(), secrets.token_hex(16)
    flags = [
        "--no-browser",
        "--LabApp.expose_app_in_browser=True",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
    ]
    environment = {
        **os.environ,
        "LABFLAGS": " ".join(flags),
        "VENV": sys.prefix,  # the copy has no environment of its own
        **{name: str(state / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")},
        **{name: str(state / name) for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR")},
    }
    environment = {k: v for k, v in environment.items() if not k.startswith(("MAKE", "MFLAGS"))}
    log = state / "lab.log"
    with running(["make", "lab"], log, cwd=course, env=environment) as server:
        address = f"http://127.0.0.1:{port}"
        wait_for_server(f"{address}/api/status?token={token}", server, log)
        yield f"{address}/?token={token}"


def wait_for_server(address: str, server: psutil.Popen, log: Path) -> None:
    """Return when the server answers; raise with its log when it does not."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + SERVER_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            direct.open(address, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"`make lab` does not answer; its output:\n{log.read_text()[-3000:]}")


@contextmanager
def browser_page(chromium: str, profile: Path) -> Iterator[tuple]:
    """A page of a new browser, and the list that its requests to other hosts go into."""
    from playwright.sync_api import sync_playwright

    outside: list[str] = []

    def note(request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname != "127.0.0.1":
            outside.append(request.url[:200])

    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=chromium,
            headless=True,
            args=[*FLAGS, *(["--no-sandbox"] if root else [])],
            viewport={"width": WIDTH, "height": HEIGHT},
            locale="en-US",
            env={**os.environ, "HOME": str(profile)},
        )
        context.on("request", note)
        context.add_init_script(path=PAGE_SCRIPT)
        try:
            yield context.pages[0], outside
        finally:
            context.close()


def wait_until(page, condition, seconds: float, what: str) -> dict:
    """The notebook's state as soon as `condition` holds for it."""
    deadline = time.monotonic() + seconds
    state = None
    while time.monotonic() < deadline:
        state = page.evaluate("smoke.state()")
        if state and condition(state):
            return state
        if state and state["kernel"] in ("dead", "autorestarting"):
            raise RuntimeError("the kernel died")
        page.wait_for_timeout(200)
    raise RuntimeError(f"{what} took longer than {seconds} s; last seen: {state}")


def is_idle(state: dict) -> bool:
    return state["kernel"] == "idle" and not any(cell["running"] for cell in state["cells"])


def run_all(page) -> dict:
    """Choose Run > Run All Cells in the menu; the state when the last cell is done."""
    page.evaluate("smoke.expectRunAll()")
    page.locator("#jp-MainMenu .lm-MenuBar-item", has_text=re.compile("^Run$")).click()
    page.locator('.lm-Menu-item[data-command="runmenu:run-all"]').click()
    page.wait_for_function("smoke.finished", timeout=RUN_SECONDS * 1000)
    return wait_until(page, is_idle, 60, "becoming idle after the last cell")


def problems_of(state: dict, path: Path) -> list[str]:
    """What went wrong in a notebook that was run, compared with the file it was opened from."""
    problems = []
    notebook = read(path)
    stored = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if len(stored) != len(state["cells"]):
        return [f"{len(state['cells'])} code cells in the browser, {len(stored)} in the file"]
    for number, (cell, source) in enumerate(zip(state["cells"], stored, strict=True), 1):
        where = f"code cell {number}"
        expected = "raises-exception" in tags(source)
        if cell["errors"] and not expected:
            problems.append(f"{where}: {'; '.join(cell['errors'])}")
        if cell["count"] is None and not cell["empty"]:
            problems.append(f"{where} did not run")
        pictures = sum("image/png" in output.get("data", {}) for output in source.outputs)
        if cell["pictures"] < pictures:
            problems.append(f"{where}: {cell['pictures']} of {pictures} pictures")
    if not any(code_cells(notebook)):
        problems.append("no code cell")
    return problems


def picture(page, target: Path) -> None:
    """Save the whole notebook as one picture."""
    height = page.evaluate("smoke.unfold()")
    page.set_viewport_size({"width": WIDTH, "height": min(height + 150, TALLEST)})
    page.wait_for_timeout(1000)
    page.screenshot(path=target)
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})


def check(page, outside: list[str], address: str, source: Path, name: str) -> list[str]:
    """Open the notebook and run it; what a learner would stumble over."""
    outside.clear()
    page.goto(address, timeout=PAGE_SECONDS * 1000)
    wait_until(
        page, lambda s: s["path"] == name and s["kernel"] == "idle", PAGE_SECONDS, f"opening {name}"
    )
    problems = problems_of(run_all(page), source)
    problems += [f"pop-up: {text[:200]}" for text in page.evaluate("smoke.popups")]
    problems += [f"request to another host: {url}" for url in dict.fromkeys(outside)]
    return problems


def smoke(names: list[str], chromium: str, pictures: Path) -> bool:
    """Check the notebooks one after the other; True if none has a problem."""
    good = True
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as folder:
        course, state, profile = (Path(folder) / name for name in ("my course", "lab", "profile"))
        state.mkdir()
        shutil.copytree(ROOT, course, ignore=shutil.ignore_patterns(*LEFT_OUT))
        with lab(course, state) as address, browser_page(chromium, profile) as (page, outside):
            for name in names:
                start = time.perf_counter()
                # The first notebook is the one that `make lab` opens by itself.
                path = "" if name == START else f"lab/tree/{quote(name)}"
                problems = check(page, outside, address.replace("?", f"{path}?"), ROOT / name, name)
                picture(page, pictures / f"{name.removesuffix('.ipynb').replace('/', '_')}.png")
                seconds = time.perf_counter() - start
                print(f"{name}: {'FAILED' if problems else 'ok'} after {seconds:.1f} s", flush=True)
                for problem in problems:
                    print(f"  {problem}", flush=True)
                good &= not problems
    return good


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "notebooks", nargs="*", default=DEFAULT, help="default: lesson 00 and its exercises"
    )
    parser.add_argument("--pictures", type=Path, help="a folder (default: a new temporary one)")
    options = parser.parse_args(argv)
    missing = [name for name in options.notebooks if not (ROOT / name).is_file()]
    if missing:
        parser.error(f"no such notebook: {', '.join(missing)}")
    chromium = find_chromium()
    if not chromium:
        sys.exit(NO_CHROMIUM)
    install_playwright()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pictures = options.pictures or Path(tempfile.mkdtemp(prefix="browser-pictures-"))
    pictures.mkdir(parents=True, exist_ok=True)
    try:
        good = smoke(options.notebooks, chromium, pictures)
    except RuntimeError as error:
        sys.exit(f"browser_smoke: {error}")
    print(f"Pictures: {pictures}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
