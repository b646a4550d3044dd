"""One task of a cluster: how it is, what it wrote, and what that means."""

import json
import re
import signal
from dataclasses import dataclass
from pathlib import Path

ERROR = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit)\b(?::.*)?$")
WAITING = re.compile(r"still waiting for response from worker: /job:(\w+)\S*task:(\d+)")
MOST = 200  # characters of a task's last line in a message
TAKEN = ("Could not start gRPC server", "Address already in use")


@dataclass
class Task:
    """One process of a cluster, known as `ps 0`, `worker 1`, …

    Attributes:
        job, index: its role.
        address: where its server listens.
        folder: where the files with its output and its log are.
        state: `new`, `running`, `suspended`, `killed` (on purpose), `ended`, or `stopped`
            (with the cluster).
        code: exit code, once it has ended.
        starts: how often it was started.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    job: str
    index: int
    address: str
    folder: Path
    state: str = "new"
    code: int | None = None
    starts: int = 0

    @property
    def name(self) -> str:
        """Job and index, as in `worker 1`."""
        return f"{self.job} {self.index}"

    @property
    def alive(self) -> bool:
        """Whether its process exists."""
        return self.state in ("running", "suspended")

    @property
    def out(self) -> Path:
        """The file with its standard output since the last start."""
        return self.folder / f"{self.job}-{self.index}.{self.starts}.out"

    @property
    def log(self) -> Path:
        """The file with its standard error since the last start."""
        return self.out.with_suffix(".log")

    def lines(self) -> list[str]:
        """The finished lines of its output."""
        return _read(self.out).split("\n")[:-1]

    def result(self) -> dict | None:
        """The last line of its output, if that is a JSON object."""
        try:
            last = json.loads(self.lines()[-1])
        except (IndexError, ValueError):
            return None
        return last if isinstance(last, dict) else None

    def port_taken(self) -> bool:
        """Whether its log says that another program has its port."""
        return any(words in _read(self.log) for words in TAKEN)

    def text(self) -> tuple[str, str]:
        """Its output and its log since the last start."""
        return _read(self.out), _read(self.log)

    def story(self) -> str:
        """How it is, and what its end means for the others."""
        if self.state == "ended" and self.code == 0:
            return "finished"
        if self.state not in ("ended", "killed"):
            return self.state
        if self.job == "ps":
            return f"{self.ending()}; the variables it kept are lost"
        if self.index == 0:
            return f"{self.ending()}; it was the chief: nobody writes checkpoints any more"
        return self.ending()

    def ending(self) -> str:
        """How it ended, and the error that its log names."""
        if self.state == "killed":
            return "was killed"
        if self.code < 0:
            how = f"was ended by {signal.Signals(-self.code).name}"
        else:
            how = f"ended with exit code {self.code}"
        found = last_error(_read(self.log))
        return f"{how}: {found}" if self.code and found else how

    def hint(self) -> str:
        """What it waits for, as far as output and log tell; empty if they are empty."""
        output, log = (text.strip() for text in self.text())
        if found := WAITING.findall(log):
            return f"waits for {found[-1][0]} {found[-1][1]}"
        where, text = ("said last", output) if output else ("wrote last to its log", log)
        return f"{where}: {text.splitlines()[-1][:MOST]}" if text else ""


def last_error(log: str) -> str:
    """Return the line of a log that names the error, else the last line.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    named = [line for line in lines if ERROR.match(line)]
    return (named or lines or [""])[-1]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
