"""`make bench`: figures, the arithmetic of their notes, processes in turns, equal training.

No test compares times of real runs: that is what `make bench` is for.
"""

import json
import os

import numpy as np
import pytest

from tools import soak
from tools.bench import __main__ as command
from tools.bench import figure as figures
from tools.bench import rounds, training
from tools.bench.networks import LAYERS, NETWORKS
from tools.bench.rounds import Child, ChildFailed, Times, Way

needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system has no affinity"
)
EQUAL = 1e-12  # float64: rounding is below 1e-15


def test_bench_summary_is_best_median_and_spread():
    assert figures.summary([3.0, 2.0, 4.0]) == (2.0, 3.0, 1.0)


@pytest.mark.parametrize(
    ("others", "words"),
    [(0.05, "5.0% of the processors (quiet)"), (0.051, "no verdict")],
)
def test_bench_gives_no_verdict_on_a_busy_machine(others, words):
    assert words in figures.verdict(others)


def test_bench_counts_living_children_as_its_own(monkeypatch):
    before, after = (10.0, 100.0), (14.0, 108.0)
    for own, others in (([0.0, 3.0], 1 / 8), ([2.0, 7.0], 0.0)):
        readings = iter([before, after])
        monkeypatch.setattr(figures, "processor_seconds", lambda r=readings: next(r))
        monkeypatch.setattr(figures, "own_seconds", lambda: 5.0)
        seconds = iter(own)
        with figures.watched(lambda s=seconds: next(s)) as load:
            pass
        assert load.others == others


def test_a_figure_shows_its_notes_and_without_rows_no_verdict():
    rows = [("a", 1.0)]
    figure = figures.Figure("Title", ("what", "s"), rows, 0.01, ("A note.",))
    lines = figures.table(figure).splitlines()
    assert lines[-2:] == ["A note.", "Load by other programs: 1.0% of the processors (quiet)."]
    none = figure._replace(rows=[], others=None)
    assert figures.table(none) == "Title\nA note."


def test_bench_times_every_lesson_and_writes_json(monkeypatch, tmp_path, capsys):
    names = [tmp_path / "notebooks" / name for name in ("00_a.ipynb", "01_b.ipynb")]
    executed = []
    monkeypatch.setattr(command, "lessons", lambda: names)
    monkeypatch.setattr(command, "execute", executed.append)
    target = tmp_path / "bench.json"
    assert command.main(["--only", "lessons", "--rounds", "2", "--json", str(target)]) == 0
    assert executed == [names[0], names[0], names[1], names[1]]
    content = json.loads(target.read_text())
    figure = content["figures"]["lessons"]
    assert [row[0] for row in figure["rows"]] == ["00_a.ipynb", "01_b.ipynb", "together"]
    assert len(figure["columns"]) == len(figure["rows"][0])
    assert content["machine"]["cores"] >= 1 and str(tmp_path) not in target.read_text()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Executing the lessons" and lines[2].startswith("00_a.ipynb ")


def test_the_suite_is_compared_with_what_it_cannot_go_below(monkeypatch):
    monkeypatch.setattr(command, "import_tensorflow", lambda: None)
    monkeypatch.setattr(command, "seconds_of", lambda action, rounds: [4.0, 6.0, 5.0])
    monkeypatch.setattr(command, "cores", lambda: 2)
    outcome = soak.Outcome("passed", 240.0, "9 passed, 0 failed, 1 skipped")

    def suite(log):
        log.write_text("first\nlast words\n")
        return outcome

    monkeypatch.setattr(command.soak, "suite", suite)
    figure = command.suite_against_floor(3)
    imports, floor, whole = figure.rows
    kernels = int(floor[0].split()[0])
    assert imports[1:] == (4.0, 5.0, 0.5)
    assert floor[1:3] == (kernels / 2 * 4.0, kernels / 2 * 5.0)
    assert whole[1] == 240.0
    assert figure.notes == (
        f"make test passed (9 passed, 0 failed, 1 skipped): {240 / (kernels * 2):.1f} × floor.",
    )
    outcome = outcome._replace(verdict="FAILED")
    (note,) = command.suite_against_floor(3).notes
    assert "FAILED" in note and note.endswith("last words") and "×" not in note


# --- times and notes


def took(milliseconds: float) -> Times:
    return Times(*[milliseconds / 1e3] * 4)


def test_times_are_best_quartiles_and_median():
    times = Times.of([0.050, 0.010, 0.020, 0.030, 0.040])
    assert times == (0.010, 0.020, 0.030, 0.040)
    assert times.cells() == (10.0, 30.0, "20.0–40.0")
    assert took(40).faster(took(80)) == (2.0, 2.0)
    assert rounds.steps_for(0.5, [0.05, 9.0, 0.1]) == 10
    assert rounds.steps_for(0.5, [3.0]) == rounds.LEAST


def test_the_bound_is_that_of_the_bubble():
    assert [training.bound(m) for m in (1, 2, 4)] == pytest.approx([1, 4 / 3, 8 / 5])
    assert training.bound(4, stages=1) == 1


def test_the_notes_compare_with_what_was_wanted():
    times = {training.ONE: took(80), training.several(2): took(42), training.mirrored(2): took(40)}
    two, mirrored = training.tower_notes("conv", times, 2)
    assert two == "2 towers: 1.90 times as fast as 1 (median 1.90; wanted: 1.80)."
    assert mirrored.startswith("MirroredStrategy: 1.05 times as fast as 2 towers")
    assert "wanted" not in training.tower_notes("dense", times, 2)[0]
    stages = {training.ONE: took(160), training.split(8): took(100), training.CUT_ONLY: took(176)}
    (note,) = training.pipeline_notes(stages)
    assert "8 micro-batches reaches 90% of its bound" in note and "1.10 times as long" in note


@pytest.mark.parametrize("name", ["dense", "conv", "stages"])
@pytest.mark.parametrize("cores", [[], [0]])
def test_one_core_makes_a_figure_without_rows(monkeypatch, tmp_path, capsys, name, cores):
    monkeypatch.setattr(training, "core_numbers", lambda: cores)
    target = tmp_path / "bench.json"
    assert command.main(["--only", name, "--json", str(target)]) == 0
    assert "Not measured: " in capsys.readouterr().out
    figure = json.loads(target.read_text())["figures"][name]
    assert figure["rows"] == [] and figure["quiet"] is None and len(figure["notes"]) == 1


# --- real processes, a step or two each


@needs_affinity
def test_real_processes_take_turns_and_train_alike(monkeypatch):
    monkeypatch.setattr(rounds, "TURN", 0)
    cores = rounds.core_numbers()[:2]
    ways = {
        "one": Way("towers", "conv", 16, cores[:1]),
        "mirrored": Way("mirrored", "conv", 16, cores, gpus=2),
    }
    times, others = rounds.measured(ways, turns=2)
    assert list(times) == ["one", "mirrored"] and 0 <= others <= 1
    assert all(0 < found.best <= found.median for found in times.values())


def test_what_trains_something_else_is_not_compared():
    class Fake:
        def __init__(self, name, loss):
            self.name, self.loss = name, loss

    with pytest.raises(RuntimeError, match="'b' has the loss 2.01, but 'a' 2.0"):
        rounds.check_alike([Fake("a", 2.0), Fake("b", 2.01)])


@needs_affinity
def test_a_process_that_fails_says_why():
    child = Child("a tower", Way("towers", "lstm", 8, rounds.core_numbers()[:1]))
    try:
        with pytest.raises(ChildFailed, match="(?s)'a tower'.*KeyError: 'lstm'"):
            child.answer()
    finally:
        child.close()
    assert not child.process.is_alive()


# --- equality


@pytest.fixture(scope="module")
def trained(machine):
    """`trained(way, network, gpus)`: the weights after five steps on one batch, in float64."""
    from tools.bench.stages import stages
    from tools.bench.ways import mirrored, towers
    from utils.training import mnist

    data = mnist.load()
    x, y = mnist.inputs(data.train_images[:24], "float64"), data.train_labels[:24]

    def weights(way: str, network: str, gpus: int, **options) -> list[np.ndarray]:
        make = {"towers": towers, "stages": stages, "mirrored": mirrored}[way]
        made = make(NETWORKS[network], machine.gpus[:gpus], x, y, **options)
        for _ in range(5):
            made.step()
        return [weight.numpy() for weight in made.weights]

    return weights


def apart(one, other) -> float:
    return max(abs(a - b).max() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("network", ["dense", "conv", "chain"])
def test_towers_train_as_one_device(trained, network):
    one = trained("towers", network, 1)
    assert apart(one, NETWORKS[network].first_weights("float64")) > 1e-3, "it has trained"
    for gpus in (2, 4):
        assert apart(one, trained("towers", network, gpus)) < EQUAL


@pytest.mark.parametrize(("gpus", "cuts"), [(1, 4), (2, 1), (2, 4), (4, 2)])
def test_stages_train_as_the_unsplit_chain(trained, gpus, cuts):
    assert LAYERS % gpus == 0
    assert apart(trained("towers", "chain", 1), trained("stages", "chain", gpus, cuts=cuts)) < EQUAL


def test_mirrored_trains_as_one_device(trained):
    assert apart(trained("towers", "conv", 1), trained("mirrored", "conv", 2)) < EQUAL
