"""The figures of `make bench`: arithmetic, turns, and small real runs.

No test compares times of real runs: that is what `make bench` is for.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tools import soak
from tools.bench import __main__ as bench
from tools.bench import figure, rounds, training
from tools.bench.networks import LAYERS, NETWORKS
from tools.bench.rounds import Child, ChildFailed, Times, Way
from tools.notebooks import ROOT

needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system has no affinity"
)
EQUAL = 1e-12  # float64: rounding is below 1e-15


# --- tables


def test_a_summary_is_best_median_and_spread():
    assert figure.summary([3.0, 2.0, 4.0]) == (2.0, 3.0, 1.0)


@pytest.mark.parametrize(
    ("others", "words"), [(0.05, "5.0% of the processors (quiet)"), (0.051, "no verdict")]
)
def test_no_verdict_on_a_busy_machine(others, words):
    assert words in figure.verdict(others)


def test_guests_are_counted_once_and_waiting_is_idle(monkeypatch):
    times = {"user": 100, "nice": 10, "system": 20, "idle": 700, "iowait": 30, "guest": 40}
    reading = SimpleNamespace(_asdict=lambda: dict(times))
    monkeypatch.setattr(figure.psutil, "cpu_times", lambda: reading)
    assert figure.processor_seconds() == (130, 860)


def test_living_children_are_no_load_by_others(monkeypatch):
    for own, others in (([0.0, 3.0], 1 / 8), ([2.0, 7.0], 0.0)):
        readings = iter([(10.0, 100.0), (14.0, 108.0)])
        monkeypatch.setattr(figure, "processor_seconds", lambda r=readings: next(r))
        monkeypatch.setattr(figure, "own_seconds", lambda: 5.0)
        seconds = iter(own)
        with figure.watched(lambda s=seconds: next(s)) as load:
            pass
        assert load.others == others


def test_a_figure_shows_its_notes_and_without_rows_no_verdict():
    full = figure.Figure("Title", ("what", "s"), [("a", 1.0)], 0.01, ("A note.",))
    lines = figure.table(full).splitlines()
    assert lines[-2:] == ["A note.", "Load by other programs: 1.0% of the processors (quiet)."]
    assert figure.table(full._replace(rows=[], others=None)) == "Title\nA note."


def test_every_lesson_is_timed_and_json_is_written(monkeypatch, tmp_path, capsys):
    names = [tmp_path / "notebooks" / name for name in ("00_a.ipynb", "01_b.ipynb")]
    executed: list[Path] = []
    monkeypatch.setattr(bench, "lessons", lambda: names)
    monkeypatch.setattr(bench, "execute", executed.append)
    target = tmp_path / "bench.json"
    assert bench.main(["--only", "lessons", "--rounds", "2", "--json", str(target)]) == 0
    assert executed == [names[0], names[0], names[1], names[1]]
    content = json.loads(target.read_text())
    found = content["figures"]["lessons"]
    assert [row[0] for row in found["rows"]] == ["00_a.ipynb", "01_b.ipynb", "together"]
    assert len(found["columns"]) == len(found["rows"][0])
    assert content["machine"]["cores"] >= 1 and str(tmp_path) not in target.read_text()
    assert capsys.readouterr().out.splitlines()[2].startswith("00_a.ipynb ")


@pytest.mark.parametrize("verdict", ["passed", "FAILED"])
def test_the_suite_is_compared_with_what_it_cannot_go_below(monkeypatch, verdict):
    monkeypatch.setattr(bench, "import_tensorflow", lambda: None)
    monkeypatch.setattr(bench, "seconds_of", lambda action, rounds: [4.0, 6.0, 5.0])
    monkeypatch.setattr(bench, "cores", lambda: 2)

    def suite(log):
        log.write_text("first\nlast words\n")
        return soak.Outcome(verdict, 240.0, "9 passed")

    monkeypatch.setattr(bench.soak, "suite", suite)
    found = bench.suite_against_floor(3)
    imports, floor, whole = found.rows
    kernels = int(floor[0].split()[0])
    assert imports[1:] == (4.0, 5.0, 0.5) and whole[1] == 240.0
    assert floor[1:3] == (kernels / 2 * 4.0, kernels / 2 * 5.0)
    note = f"make test passed (9 passed): {240 / (kernels * 2):.1f} × floor."
    if verdict == "FAILED":
        note = "make test FAILED, so its time says nothing. Its last line: last words"
    assert found.notes == (note,)


# --- arithmetic


def took(milliseconds: float) -> Times:
    return Times(*[milliseconds / 1e3] * 4)


def test_times_are_best_quartiles_and_median():
    times = Times.of([0.050, 0.010, 0.020, 0.030, 0.040])
    assert times == (0.010, 0.020, 0.030, 0.040)
    assert times.cells() == (10.0, 30.0, "20.0–40.0")
    assert Times(0.040, 0.0, 0.060, 0.0).faster(Times(0.080, 0.0, 0.090, 0.0)) == (2.0, 1.5)


def test_a_turn_is_filled_with_steps():
    assert rounds.steps_for(0.5, [0.05, 9.0, 0.1]) == 10
    assert rounds.steps_for(0.5, [3.0]) == rounds.LEAST


def test_the_bound_is_that_of_the_bubble():
    assert [training.bound(m) for m in (1, 2, 4)] == pytest.approx([1, 4 / 3, 8 / 5])
    assert training.bound(4, stages=1) == 1


def test_the_notes_say_which_is_faster():
    times = {
        training.ONE: took(80),
        training.several(2): took(42),
        training.mirrored(2): took(40),
    }
    towers, mirrored = training.tower_notes("conv", times, 2)
    assert towers == "2 towers: 1.90 times as fast as 1 (median 1.90; wanted: 1.80)."
    assert mirrored.startswith("MirroredStrategy: 1.05 times as fast as 2 towers")
    assert "wanted" not in training.tower_notes("dense", times, 2)[0]


def test_the_notes_compare_the_pipeline_with_its_bound():
    times = {training.ONE: took(160), training.split(8): took(100), training.CUT_ONLY: took(176)}
    (note,) = training.pipeline_notes(times)
    assert "8 micro-batches reaches 90% of its bound" in note and "1.10 times as long" in note


# --- machines that are too small


@needs_affinity
@pytest.mark.parametrize(
    ("cores", "free", "words"),
    [(1, 64, "only 1"), (2, 3, "5 processes need about 4.0 GB of memory, and 3.0 GB are free")],
)
def test_a_machine_that_is_too_small_gets_a_sentence(monkeypatch, cores, free, words):
    memory = SimpleNamespace(available=free * 1e9)
    monkeypatch.setattr(rounds.psutil, "virtual_memory", lambda: memory)
    assert words in rounds.obstacle(cores, 5)
    assert rounds.obstacle(2, 3) is None


@pytest.mark.parametrize("name", ["dense", "conv", "stages"])
@pytest.mark.parametrize("cores", [[], [0]])
def test_one_core_makes_a_figure_without_rows(monkeypatch, tmp_path, capsys, name, cores):
    monkeypatch.setattr(training, "core_numbers", lambda: cores)
    target = tmp_path / "bench.json"
    assert bench.main(["--only", name, "--json", str(target)]) == 0
    assert "Not measured: " in capsys.readouterr().out
    found = json.loads(target.read_text())["figures"][name]
    assert found["rows"] == [] and found["quiet"] is None and len(found["notes"]) == 1


# --- turns, with children that only pretend


@pytest.fixture
def pretend(monkeypatch):
    """Children whose `Way` is (seconds of a step, loss); gives the names of those that worked."""
    ledger: list[str] = []

    class Pretended(Child):
        def __init__(self, name, way):
            self.name, self.cpu = name, 0.0
            self.seconds, self.loss = way

        def answer(self):
            return {}

        def work(self, steps):
            ledger.append(self.name)
            return [self.seconds] * steps

        def close(self):
            ledger.append("closed")

    monkeypatch.setattr(rounds, "Child", Pretended)
    return ledger


def test_children_take_turns_to_and_fro_and_are_closed(pretend):
    times, others = rounds.measured({"a": (0.25, 2.0), "b": (0.05, 2.0)}, turns=4)
    assert times == {"a": took(250), "b": took(50)} and others >= 0
    assert pretend == [*"ab", *"ab", *"ba", *"ab", *"ba", "closed", "closed"]


def test_children_that_train_something_else_are_not_compared(pretend):
    with pytest.raises(RuntimeError, match="'b' has the loss 2.01, but 'a' 2.0"):
        rounds.measured({"a": (0.1, 2.0), "b": (0.1, 2.01)}, turns=1)
    assert pretend[-2:] == ["closed", "closed"]


# --- the real children, two steps each


@needs_affinity
def test_real_children_train_alike_and_say_why_they_end():
    cores = sorted(os.sched_getaffinity(0))
    ways = {
        "one": Way("towers", "conv", 32, cores),
        "mirrored": Way("mirrored", "conv", 32, cores, gpus=2),
        "stages": Way("stages", "chain", 32, cores, gpus=2, cuts=4),
    }
    with rounds.started(ways) as children:
        for child in children:
            seconds = child.work(2)
            assert len(seconds) == 2 and min(seconds) > 0
            assert child.cpu > 0 and 0 < child.loss < 4
        rounds.check_alike(children[:2])
        children[0].process.kill()
        with pytest.raises(ChildFailed, match="'one': it ended with code -9"):
            children[0].work(1)
    with (
        pytest.raises(ChildFailed, match="(?s)'lstm': Traceback.*KeyError: 'lstm'"),
        rounds.started({"lstm": Way("towers", "lstm", 32, cores)}),
    ):
        pass


def test_a_child_that_does_not_answer_is_given_up_and_ended(monkeypatch):
    monkeypatch.setattr(rounds, "DEADLINE", 0)
    with pytest.raises(ChildFailed, match="'late': no answer in time"):  # noqa: SIM117
        with rounds.started({"late": Way("towers", "conv", 8, [0])}):
            pass
    assert not rounds.multiprocessing.active_children()


@needs_affinity
def test_a_child_has_its_cores_and_threads(fresh):
    done = fresh(
        """
        import os
        from tools.bench.rounds import Way, build
        core = min(os.sched_getaffinity(0))
        build(Way("towers", "conv", 8, [core], gpus=2))()
        import tensorflow as tf
        threads = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
        assert threads and all(held == {core} for held in threads), threads
        assert tf.config.threading.get_inter_op_parallelism_threads() == 1
        assert tf.config.threading.get_intra_op_parallelism_threads() == 1
        assert len(tf.config.list_logical_devices("CPU")) == 3
        """,
        PYTHONPATH=str(ROOT),
    )
    assert done.returncode == 0, done.stderr


# --- equality


@pytest.fixture(scope="module")
def trained(machine):
    """`trained(way, network, gpus)`: the weights after five steps on one batch of 24, float64."""
    from tools.bench.stages import stages
    from tools.bench.ways import towers
    from utils.training import mnist

    data = mnist.load()
    x, y = mnist.inputs(data.train_images[:24], "float64"), data.train_labels[:24]

    def weights(way: str, network: str, gpus: int, **options) -> list[np.ndarray]:
        make = {"towers": towers, "stages": stages}[way]
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
    one = trained("towers", "chain", 1)
    assert apart(one, trained("stages", "chain", gpus, cuts=cuts)) < EQUAL


def test_mirrored_trains_as_one_device(fresh):
    done = fresh(
        """
        from utils.start import begin
        machine = begin(gpus=2)
        from tools.bench.networks import NETWORKS
        from tools.bench.ways import mirrored, towers
        from utils.training import mnist
        data = mnist.load()
        x, y = mnist.inputs(data.train_images[:24], "float64"), data.train_labels[:24]
        one = towers(NETWORKS["conv"], machine.gpus[:1], x, y)
        two = mirrored(NETWORKS["conv"], machine.gpus, x, y)
        for _ in range(5):
            one.step(), two.step()
        pairs = zip(one.weights, two.weights, strict=True)
        print(max(abs(a.numpy() - b.numpy()).max() for a, b in pairs))
        """,
        PYTHONPATH=str(ROOT),
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < EQUAL
