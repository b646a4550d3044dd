"""The benchmark of the virtual clock, on a tiny fleet: its table, and SimPy as an option."""

from types import SimpleNamespace

import pytest

from tools import bench, bench_clock


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(bench_clock, "WORKERS", 5)
    monkeypatch.setattr(bench_clock, "UPDATES", 3)
    monkeypatch.setattr(bench_clock, "SCALING", (2, 4))


def test_without_simpy_the_table_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(bench_clock, "find_spec", lambda name: None)
    rows = bench_clock.rows(2)
    assert [row[0] for row in rows] == [
        "5 workers × 3, asynchronous",
        "5 workers × 3, synchronous",
        "SimPy is not installed (pip install simpy)",
        "2 workers, asynchronous",
        "4 workers, asynchronous",
    ]
    assert all(len(row) == len(bench_clock.COLUMNS) for row in rows)
    assert rows[2][1:] == (None,) * 4


def test_both_runs_compute_equally_many_gradients():
    assert len(bench_clock.run_asynchronous(5).worker) == 15
    assert len(bench_clock.run_synchronous(5).worker) == 15


def test_a_simpy_that_disagrees_is_an_error(monkeypatch):
    monkeypatch.setattr(bench_clock, "find_spec", lambda name: SimpleNamespace())
    monkeypatch.setattr(bench_clock, "run_simpy", lambda workers: [0] * 15)
    with pytest.raises(RuntimeError, match="disagree about the staleness"):
        bench_clock.rows(1)


def test_simpy_counts_the_same_staleness():
    pytest.importorskip("simpy", reason="SimPy is optional: pip install simpy")
    assert bench_clock.run_simpy(5) == bench_clock.run_asynchronous(5).staleness.tolist()


def test_rounds_must_be_positive(capsys):
    with pytest.raises(SystemExit):
        bench_clock.main(["--rounds", "0"])
    assert "--rounds 0: give 1 or more" in capsys.readouterr().err


def test_main_prints_the_table(capsys, monkeypatch):
    monkeypatch.setattr(bench_clock, "find_spec", lambda name: None)
    assert bench_clock.main(["--rounds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == bench_clock.TITLE
    assert lines[1].split("  ")[0] == "what"
    assert len(lines) == 2 + 5 + 1


def test_the_clock_is_a_figure_of_make_bench(monkeypatch):
    monkeypatch.setattr(bench_clock, "find_spec", lambda name: None)
    figure = bench.FIGURES["clock"](1)
    assert (figure.title, figure.columns) == (bench_clock.TITLE, bench_clock.COLUMNS)
    assert figure.rows[0][0] == "5 workers × 3, asynchronous"
    assert bench.table(figure).splitlines()[0] == bench_clock.TITLE
