"""Descriptors 1 and 2 are taken and given back, whatever happens in between."""

import os
import tempfile
import threading

import pytest

from utils.machine import capture, captured, write_back


def _descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def _targets() -> list[tuple[int, int]]:
    """Where descriptors 1 and 2 lead: two that lead to the same file give the same pair."""
    return [(os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in (1, 2)]


@pytest.fixture(autouse=True)
def _nothing_left():
    """After each test both descriptors lead where they did, and none was left open."""
    descriptors, targets = _descriptors(), _targets()
    yield
    assert _descriptors() == descriptors
    assert _targets() == targets


def test_takes_native_text_per_descriptor():
    with captured(1, 2) as takes:
        os.write(1, b"to one\n")
        os.write(2, b"to two\n")
        assert takes[1].text == ""  # filled when the block ends
    assert (takes[1].text, takes[2].text) == ("to one\n", "to two\n")


def test_inner_block_takes_first():
    with captured(1) as outer:
        os.write(1, b"a")
        with captured(1) as inner:
            os.write(1, b"b")
        os.write(1, b"c")
    assert (outer[1].text, inner[1].text) == ("ac", "b")


def test_more_text_than_a_pipe_holds():
    line = b"x" * 99 + b"\n"
    with captured(1) as takes:
        for _ in range(10_000):
            os.write(1, line)
    assert takes[1].text == line.decode() * 10_000


def test_fails_whole_if_it_cannot_begin(monkeypatch):
    made = []

    def once():
        if made:
            raise OSError("no space left")
        made.append(tempfile.NamedTemporaryFile())  # noqa: SIM115
        return made[0]

    monkeypatch.setattr(capture.tempfile, "TemporaryFile", once)
    with pytest.raises(OSError, match="no space left"), captured(1, 2):
        pytest.fail("the block was entered")
    assert made[0].file.closed
    with pytest.raises(OSError, match="no space left"), captured(1, 2):  # the lock is free
        pytest.fail("the block was entered")


def test_unknown_descriptor_changes_nothing():
    with pytest.raises(OSError, match="Bad file descriptor"), captured(1, 12345):
        pytest.fail("the block was entered")


def test_one_thread_at_a_time():
    errors = []

    def second():
        try:
            with captured(1):
                pass
        except RuntimeError as error:
            errors.append(str(error))

    with captured(1) as takes:
        os.write(1, b"first")
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert takes[1].text == "first"
    assert len(errors) == 1
    assert "another thread" in errors[0]
    thread = threading.Thread(target=second)  # free again
    thread.start()
    thread.join()
    assert len(errors) == 1


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00 not UTF-8", "über 中\r\n".encode()])
def test_written_back_byte_for_byte(data):
    with captured(1) as outer:
        with captured(1) as inner:
            os.write(1, data)
        write_back(1, inner[1].text)
    assert outer[1].text.encode(errors="surrogateescape") == data


def test_written_back_although_a_descriptor_takes_little_at_once(monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    with captured(1) as takes:
        write_back(1, "more than three")
    assert takes[1].text == "more than three"


SCRIPT = """
    import ctypes, logging, os, subprocess, sys
    from utils.machine import captured, write_back

    out, err = sys.stdout, sys.stderr
    count = len(os.listdir("/proc/self/fd"))
    print("before")
    ctypes.CDLL(None).printf(b"printf before\\n")
    with captured(1, 2) as takes:
        print("printed ü \\udcff inside")
        print("to stderr \\udcff inside", file=sys.stderr)
        os.write(1, b"native\\n")
        ctypes.CDLL(None).printf(b"printf\\n")
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        handler = logging.StreamHandler()
        import_time_default = sys.stdout
        print("no newline", end="")
    assert sys.stdout is out and sys.stderr is err
    print("\\nafter", flush=True)
    ctypes.CDLL(None).printf(b"printf after\\n")
    ctypes.CDLL(None).fflush(None)
    logging.getLogger("made inside").addHandler(handler)
    logging.getLogger("made inside").error("logged later")
    import_time_default.write("written later\\n")
    assert takes[2].text == "", takes
    assert sorted(takes[1].text.split()) == ["child", "native", "printf"], takes
    assert len(os.listdir("/proc/self/fd")) == count

    sys.stdout = None  # as in a process without a console
    with captured(1, 2) as takes:
        os.write(1, b"silent")
    assert takes[1].text == "silent" and sys.stdout is None
"""


def test_a_scripts_own_prints_go_on(fresh):
    # The encoding is the stream's own: ASCII with escapes, here.
    ascii_only = {"PYTHONIOENCODING": "ascii:backslashreplace", "PYTHONUTF8": None}
    done = fresh(SCRIPT, PYTHONUNBUFFERED=None, **ascii_only)  # C's printf is to have a buffer
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "before",
        "printf before",
        "printed \\xfc \\udcff inside",
        "no newline",
        "after",
        "printf after",
        "written later",
    ]
    assert done.stderr.splitlines() == ["to stderr \\udcff inside", "logged later"]


def test_restores_even_if_a_stream_is_broken(fresh):
    done = fresh(
        """
        import os, sys
        from utils.machine import captured

        class Broken:
            ready = True
            def fileno(self): raise OSError
            def flush(self):
                if not self.ready: raise OSError("broken stream")

        sys.stdout = Broken()
        try:
            with captured(1) as takes:
                os.write(1, b"taken")
                sys.stdout.ready = False
        except OSError as error:
            assert str(error) == "broken stream"
        assert takes[1].text == "taken", takes
        os.write(1, b"restored")
        sys.stdout.ready = True
        """
    )
    assert (done.returncode, done.stdout) == (0, "restored"), done.stderr
