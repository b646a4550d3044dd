"""The figures of towers, MirroredStrategy and stages: arithmetic, protocol, and small real runs.

No test compares times of real runs: that is what `make bench` is for.
"""

import json
import os
import sys

import numpy as np
import pytest

from tools import (
    bench,
    bench_child,
    bench_pipeline,
    bench_profile,
    bench_rounds,
    bench_towers,
)
from tools.bench_networks import LAYERS, NETWORKS
from tools.bench_rounds import Child, ChildFailed, Times

needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system has no affinity"
)
EQUAL = 1e-12  # float64: rounding is below 1e-15
ROUNDED = 1e-2  # float32 with pooling: a rounding difference may flip a choice


# --- arithmetic


def test_times_are_best_quartiles_and_median():
    took = Times.of([0.050, 0.010, 0.020, 0.030, 0.040])
    assert took == (0.010, 0.020, 0.030, 0.040)
    assert took.cells() == (10.0, 30.0, "20.0–40.0")


def test_twice_as_fast_is_two():
    one, two = Times(0.080, 0.0, 0.090, 0.0), Times(0.040, 0.0, 0.060, 0.0)
    assert two.faster(one) == (2.0, 1.5)
    assert one.faster(one) == (1.0, 1.0)


def test_a_turn_is_filled_with_steps():
    assert bench_rounds.steps_for(0.5, [0.05, 9.0, 0.1]) == 10
    assert bench_rounds.steps_for(0.5, [3.0]) == bench_rounds.LEAST


def test_the_bound_is_that_of_the_bubble():
    assert [bench_pipeline.bound(m) for m in (1, 2, 4)] == pytest.approx([1, 4 / 3, 8 / 5])
    assert bench_pipeline.bound(10**6) == pytest.approx(2, abs=1e-5)
    assert bench_pipeline.bound(4, stages=1) == 1


@pytest.mark.parametrize(
    ("cores", "free", "words"),
    [(1, 64.0, "only 1"), (2, 3.0, "5 processes need about 4.0 GB of memory, and 3.0 GB are free")],
)
@needs_affinity
def test_a_machine_that_is_too_small_gets_a_sentence(cores, free, words):
    sentence = bench_rounds.obstacle(cores, 5, free)
    assert words in sentence and sentence.count(". ") == 0
    assert bench_rounds.obstacle(2, 5, None) is None
    assert bench_rounds.obstacle(2, 5, 4.0) is None


def test_without_affinity_the_sentence_says_so(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    assert "cannot hold a process to one core" in bench_rounds.obstacle(2, 5, 64.0)


def test_free_memory_is_read_where_it_is_known(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9000000 kB\nMemAvailable:    2500000 kB\n")
    assert bench_rounds.free_memory(meminfo) == 2.5
    assert bench_rounds.free_memory(tmp_path / "missing") is None


@pytest.mark.parametrize("name", ["dense", "conv", "stages"])
@pytest.mark.parametrize("cores", [[], [0]])
def test_one_core_makes_a_figure_without_rows(monkeypatch, tmp_path, capsys, name, cores):
    for module in (bench_towers, bench_pipeline):
        monkeypatch.setattr(module, "core_numbers", lambda: cores)
    target = tmp_path / "bench.json"
    assert bench.main(["--only", name, "--json", str(target)]) == 0
    assert "Not measured: " in capsys.readouterr().out
    figure = json.loads(target.read_text())["figures"][name]
    assert figure["rows"] == [] and figure["quiet"] is None and len(figure["notes"]) == 1


def took(milliseconds: float) -> Times:
    return Times(*[milliseconds / 1e3] * 4)


def test_the_notes_say_which_is_faster_and_where_the_time_goes():
    times = {
        bench_towers.ONE: took(80),
        bench_towers.several(2): took(42),
        bench_towers.without_host(2): took(40),
        bench_towers.mirrored(2): took(40),
        bench_towers.mirrored(2, to_one=True): took(44),
        bench_towers.part(2): took(39),
        bench_towers.parts(2): took(40.5),
    }
    two, without, mirrored, to_one, parts = bench_towers.notes("conv", times, 2)
    assert two == "2 towers: 1.90 times as fast as 1 (median 1.90; wanted: 1.80)."
    assert without == "With the weights on GPU 0: 2.00 (median 2.00)."
    assert mirrored.startswith("MirroredStrategy on 2 cores, default: 1.05 times as fast as 2")
    assert to_one.startswith("MirroredStrategy on 2 cores, ReductionToOneDevice: 0.95 times")
    for words in ("(42.0 ms)", "39.0 ms are 1/2", "+1.5 ms because 2 cores", "+1.5 ms because one"):
        assert words in parts
    assert "wanted" not in bench_towers.notes("dense", times, 2)[0]


def test_the_notes_compare_the_pipeline_with_its_bound():
    times = {
        bench_pipeline.UNSPLIT: took(160),
        bench_pipeline.split(8): took(100),
        bench_pipeline.CUT_ONLY: took(176),
    }
    (note,) = bench_pipeline.notes(times)
    assert "8 micro-batches reaches 90% of its bound" in note and "1.10 times as long" in note


def test_the_profile_adds_up_and_says_what_it_allows():
    one = {"Conv2D": 0.050, "MaxPool": 0.029, "host": 0.001}
    two = {"Conv2D": 0.048, "MaxPool": 0.030, "host": 0.002}
    rows = bench_profile.rows(one, two)
    assert [row[0] for row in rows[:2]] == ["Conv2D", "MaxPool"]
    assert rows[2][0] == "other operations" and rows[2][1:3] == pytest.approx((0, 0), abs=1e-9)
    assert rows[3][1:] == (1.0, 2.0, "2.5%")
    assert rows[4][1:] == (pytest.approx(80), pytest.approx(80), "100.0%")
    # 80 ms of one tower against half of the towers' 78 ms and 2 ms on the host
    assert f"{80 / 41:.2f} times as fast" in bench_profile.notes(one, two)[0]


def test_the_profile_shows_the_largest_and_adds_the_rest():
    one = {f"Op{i}": i / 1e3 for i in range(1, 13)} | {"host": 0.0}
    rows = bench_profile.rows(one, one)
    assert [row[0] for row in rows[:-3]] == [f"Op{i}" for i in range(12, 4, -1)]
    assert rows[-3][1] == pytest.approx(1 + 2 + 3 + 4)


# --- the protocol, with children that only pretend

FAKE = """
import json, sys
name, ledger, seconds, loss = sys.argv[1:]
def say(**what): print(json.dumps(what), flush=True)
def note(what):
    with open(ledger, "a") as file: print(name, what, file=file)
say(ready=True)
cpu = 0
for line in sys.stdin:
    note("on")
    cpu += 1
    note("off")
    say(seconds=[float(seconds)] * int(line), cpu=cpu, loss=float(loss))
"""


@pytest.fixture
def fake(tmp_path):
    """`fake(name, seconds, loss)`: the command of a child that claims these seconds a step."""

    def command(name: str, seconds: float = 0.1, loss: float = 2.0) -> list[str]:
        words = (FAKE, name, tmp_path / "ledger", seconds, loss)
        return [sys.executable, "-c", *map(str, words)]

    command.ledger = lambda: (tmp_path / "ledger").read_text().split("\n")[:-1]
    return command


def test_children_take_turns_and_only_one_works(fake):
    commands = {name: fake(name, seconds) for name, seconds in (("a", 0.25), ("b", 0.05))}
    times, others = bench_rounds.measured(commands, {}, turns=4)
    assert times == {"a": Times(*[0.25] * 4), "b": Times(*[0.05] * 4)}
    assert others is None or 0 <= others <= 1
    ledger = fake.ledger()
    assert [line.split()[1] for line in ledger] == ["on", "off"] * 10
    assert all(on[0] == off[0] for on, off in zip(ledger[::2], ledger[1::2], strict=True))
    assert [line[0] for line in ledger[::2]] == [*"ab", *"ab", *"ba", *"ab", *"ba"]


def test_a_group_works_alone_and_at_once(fake):
    names = ("whole", "part 0", "part 1")
    losses = {"whole": 2.0, "part 0": 3.0, "part 1": 4.0}  # parts train something else
    commands = {name: fake(name.replace(" ", "-"), loss=losses[name]) for name in names}
    times, _ = bench_rounds.measured(commands, {"both": ["part 0", "part 1"]}, turns=1)
    assert list(times) == ["whole", "part 0", "both"]
    turns = [line.split()[0] for line in fake.ledger() if line.endswith("on")]
    assert turns.count("whole") == 2 and turns.count("part-0") == 4 and turns.count("part-1") == 2


def test_children_that_train_something_else_are_not_compared(fake):
    commands = {"a": fake("a", loss=2.0), "b": fake("b", loss=2.01)}
    with pytest.raises(RuntimeError, match="'b' has the loss 2.01, but 'a' 2.0"):
        bench_rounds.measured(commands, {}, turns=1)


def test_the_processor_seconds_of_living_children_are_known(fake):
    with bench_rounds.started({"a": fake("a")}) as children:
        assert children["a"].cpu == 0
        assert bench_rounds.turn([children["a"]], 3) == [0.1] * 3
        assert (children["a"].cpu, children["a"].loss) == (1.0, 2.0)


@pytest.mark.parametrize("code", ["", "print('{}', flush=True); input(); "])
def test_a_child_that_ends_is_an_error_with_its_last_words(code):
    code += "import sys; print('out of luck', file=sys.stderr); sys.exit(3)"
    child = Child("a tower", [sys.executable, "-c", code])
    try:
        with pytest.raises(ChildFailed, match="'a tower' ended with code 3.*out of luck"):
            child.ready()
            child.ask(1)
            child.answer()
    finally:
        child.close()


def test_a_child_that_does_not_answer_is_ended(monkeypatch):
    monkeypatch.setattr(bench_rounds, "DEADLINE", 0.1)
    child = Child("silence", [sys.executable, "-c", "input()"])
    try:
        with pytest.raises(ChildFailed, match="'silence' ended with code -9"):
            child.ready()
    finally:
        child.close()


# --- the commands


@pytest.mark.parametrize("cores", [[0, 1], [2, 3, 5, 7]])
def test_every_way_has_its_cores_and_the_same_batch(monkeypatch, cores):
    most, batch = len(cores), 504
    found = bench_towers.children("conv", batch, cores)
    used = {name: words[words.index("--cores") + 1] for name, words in found.items()}
    sizes = {name: int(words[words.index("--batch") + 1]) for name, words in found.items()}
    assert used[bench_towers.ONE] == str(cores[0])
    for n in range(2, most + 1):
        assert used[bench_towers.several(n)] == ",".join(map(str, cores[:n]))
        assert sizes[bench_towers.several(n)] == batch
    mirrored = [bench_towers.mirrored(most, to_one) for to_one in (False, True)]
    for name in (bench_towers.without_host(most), *mirrored):
        assert used[name] == used[bench_towers.several(most)] and sizes[name] == batch
    parts = [bench_towers.part(most, i) for i in range(most)]
    assert [used[name] for name in parts] == [str(core) for core in cores]
    assert sum(sizes[name] for name in parts) == batch
    assert len(found) == 2 * most + 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("towers conv --cores 9999", "'9999': choose from"),
        ("towers conv --cores x", "'x': choose from"),
        ("towers conv", "--cores"),
        ("towers lstm --cores {core}", "choose from 'dense', 'conv', 'chain'"),
        ("towers conv --cores {core} --gpus 0", "'0': give a whole number, 1 or more"),
        ("towers conv --cores {core} --gpus two", "'two': give a whole number, 1 or more"),
        ("towers conv --cores {core} --gpus 3", "--batch 512 is not a multiple of --gpus"),
        ("towers conv --cores {core} --cuts 2", "--cuts 2 is for stages, not for towers"),
        ("stages conv --cores {core}", "stages needs the network chain"),
        ("stages chain --cores {core} --gpus 3", "1, 2 or 4 --gpus"),
    ],
)
@needs_affinity
def test_wrong_arguments_are_explained(capsys, words, message):
    core = min(os.sched_getaffinity(0))
    with pytest.raises(SystemExit):
        bench_child.arguments(words.format(core=core).split())
    assert message in capsys.readouterr().err.replace("invalid choice: 'lstm' (", "(")


# --- the real children, two steps each


@needs_affinity
def test_real_children_answer_and_train_alike():
    """One tower against MirroredStrategy; the stages train another network."""
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    ways = {
        "one": ("towers", "conv"),
        "without host": ("towers-without-host", "conv", "--gpus", 2),
        "mirrored": ("mirrored", "conv", "--gpus", 2),
        "stages": ("stages", "chain", "--gpus", 2, "--cuts", 4),
    }
    commands = {
        name: bench_rounds.command(*words, "--cores", cores, "--batch", 32)
        for name, words in ways.items()
    }
    with bench_rounds.started(commands) as children:
        for child in children.values():
            seconds = bench_rounds.turn([child], 2)
            assert len(seconds) == 2 and min(seconds) > 0
            assert child.cpu > 0 and 0 < child.loss < 4
        del children["stages"]
        bench_rounds.check_alike(list(children.values()))


@needs_affinity
def test_a_child_has_its_cores_and_threads(fresh):
    done = fresh(
        """
        import os
        from tools import bench_child
        core = min(os.sched_getaffinity(0))
        words = ["towers", "conv", "--cores", str(core), "--gpus", "2", "--batch", "8"]
        step = bench_child.build(bench_child.arguments(words))
        step()
        import tensorflow as tf
        threads = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
        assert threads and all(held == {core} for held in threads), threads
        assert tf.config.threading.get_inter_op_parallelism_threads() == 1
        assert tf.config.threading.get_intra_op_parallelism_threads() == 1
        assert len(tf.config.list_logical_devices("CPU")) == 3
        """,
        PYTHONPATH=str(bench_rounds.ROOT),
    )
    assert done.returncode == 0, done.stderr


def test_a_real_profile_of_one_step(monkeypatch):
    monkeypatch.setattr(bench_profile, "TRACED", 1)
    figure = bench_profile.profile(1, batch=8)
    names = [row[0] for row in figure.rows]
    assert names[-2:] == ["average and update, on the host", "together"]
    assert any("Conv2D" in name for name in names[:-3])
    assert all(row[1] > 0 and row[2] > 0 for row in figure.rows if row[0] != "other operations")


def test_a_profile_that_fails_says_why():
    with pytest.raises(ChildFailed, match="profile failed: .*invalid literal"):
        bench_profile.profile(1, batch="many")


# --- equality


@pytest.fixture(scope="module")
def trained(machine):
    """`trained(way, network, gpus, dtype)`: the weights after five steps on one batch of 24."""
    from tools.bench_stages import stages
    from tools.bench_ways import towers
    from utils.training import mnist

    data = mnist.load()

    def weights(way: str, network: str, gpus: int, dtype: str, **options) -> list[np.ndarray]:
        x, y = mnist.inputs(data.train_images[:24], dtype), data.train_labels[:24]
        make = {"towers": towers, "stages": stages}[way]
        made = make(NETWORKS[network], machine.gpus[:gpus], x, y, **options)
        for _ in range(5):
            made.step()
        return [weight.numpy() for weight in made.weights]

    return weights


def apart(one, other) -> float:
    return max(abs(a - b).max() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("network", ["dense", "conv", "chain"])
def test_towers_train_as_one_device_in_float64(trained, machine, network):
    gpu_0 = machine.gpus[0]
    one = trained("towers", network, 1, "float64")
    assert apart(one, NETWORKS[network].first_weights("float64")) > 1e-3, "it has trained"
    for gpus in (2, 4):
        assert apart(one, trained("towers", network, gpus, "float64")) < EQUAL
    without_host = trained("towers", network, 2, "float64", home=gpu_0)
    assert apart(one, without_host) < EQUAL


def test_conv_towers_in_float32_differ_by_rounding_and_by_flipped_choices(trained):
    one, two = (trained("towers", "conv", gpus, "float32") for gpus in (1, 2))
    assert 0 < apart(one, two) < ROUNDED


@pytest.mark.parametrize(("gpus", "cuts"), [(1, 4), (2, 1), (2, 2), (2, 4), (4, 2)])
def test_stages_train_as_the_unsplit_chain_in_float64(trained, gpus, cuts):
    assert LAYERS % gpus == 0
    one = trained("towers", "chain", 1, "float64")
    assert apart(one, trained("stages", "chain", gpus, "float64", cuts=cuts)) < EQUAL


def test_mirrored_with_both_reductions_trains_as_one_device_in_float64(fresh):
    done = fresh(
        """
        from utils.start import begin
        machine = begin(gpus=2)
        from tools.bench_networks import NETWORKS
        from tools.bench_ways import mirrored, towers
        from utils.training import mnist
        data = mnist.load()
        x, y = mnist.inputs(data.train_images[:24], "float64"), data.train_labels[:24]
        one = towers(NETWORKS["conv"], machine.gpus[:1], x, y)
        for to_one in (False, True):
            one = towers(NETWORKS["conv"], machine.gpus[:1], x, y)
            two = mirrored(NETWORKS["conv"], machine.gpus, x, y, to_one)
            for _ in range(5):
                one.step(), two.step()
            pairs = zip(one.weights, two.weights, strict=True)
            print(max(abs(a.numpy() - b.numpy()).max() for a, b in pairs))
        """,
        PYTHONPATH=str(bench_rounds.ROOT),
    )
    assert done.returncode == 0, done.stderr
    assert [float(line) < EQUAL for line in done.stdout.splitlines()] == [True, True]
