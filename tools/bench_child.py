"""One way to train, in a process of its own; `make bench` starts it and says when to work.

Threads, logical devices and cores are fixed once per process. Once ready it waits: a number in a
line of the input asks for so many steps, and their seconds come back as a line of JSON.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

WAYS = ("towers", "towers-without-host", "mirrored", "mirrored-to-one", "stages")


def whole(text: str) -> int:
    """A whole number above 0."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, 1 or more")
    return int(text)


def core_numbers(text: str) -> set[int]:
    """Some of the cores that this process may use, such as 0,1."""
    allowed = {str(core): core for core in sorted(os.sched_getaffinity(0))}
    chosen = text.split(",")
    if not set(chosen) <= set(allowed):
        raise argparse.ArgumentTypeError(f"{text!r}: choose from {','.join(allowed)}")
    return {allowed[core] for core in chosen}


def arguments(argv: list[str] | None) -> argparse.Namespace:
    from tools.bench_networks import LAYERS, NETWORKS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--cores", type=core_numbers, required=True, help="such as 0,1")
    parser.add_argument("--gpus", type=whole, default=1, help="virtual ones; default: 1")
    parser.add_argument("--batch", type=whole, help="default: the network's")
    parser.add_argument("--cuts", type=whole, default=1, help="micro-batches of the stages")
    options = parser.parse_args(argv)
    if options.way != "stages" and options.cuts > 1:
        parser.error(f"--cuts {options.cuts} is for stages, not for {options.way}")
    if options.way == "stages" and (options.network != "chain" or LAYERS % options.gpus):
        parser.error(f"stages needs the network chain and 1, 2 or {LAYERS} --gpus")
    options.network = NETWORKS[options.network]
    options.batch = options.batch or options.network.batch
    for name in ("gpus", "cuts"):
        if options.batch % getattr(options, name):
            parser.error(f"--batch {options.batch} is not a multiple of --{name}")
    return options


def build(options: argparse.Namespace) -> Callable:
    """Fix cores, devices and threads, in this order, and return the step."""
    os.sched_setaffinity(0, options.cores)  # before TensorFlow makes threads: they inherit it
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration()] * (options.gpus + 1)
    tf.config.set_logical_device_configuration(cpu, logical)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(len(options.cores))

    from tools import bench_stages, bench_ways
    from utils.training import mnist

    data = mnist.load()
    x, y = mnist.inputs(data.train_images[: options.batch]), data.train_labels[: options.batch]
    gpus = [f"/CPU:{i + 1}" for i in range(options.gpus)]
    if options.way == "stages":
        return bench_stages.stages(options.network, gpus, x, y, options.cuts).step
    if options.way == "towers":
        return bench_ways.towers(options.network, gpus, x, y).step
    if options.way == "towers-without-host":
        return bench_ways.towers(options.network, gpus, x, y, home=gpus[0]).step
    to_one = options.way == "mirrored-to-one"
    return bench_ways.mirrored(options.network, gpus, x, y, to_one).step


def measure(step: Callable, steps: int) -> dict[str, object]:
    """Seconds of each step, processor seconds of this process so far, and the last loss."""
    seconds = []
    gc.disable()
    for _ in range(steps):
        start = time.perf_counter()
        loss = float(step())
        seconds.append(time.perf_counter() - start)
    gc.enable()
    return {"seconds": seconds, "cpu": time.process_time(), "loss": loss}


def serve(step: Callable, orders: Iterable[str], answers: TextIO) -> None:
    """Say that it is ready, then answer every line of `orders` until they end."""
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in orders:
        print(json.dumps(measure(step, whole(line))), file=answers, flush=True)


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what TensorFlow prints must not stand between the answers
    serve(build(options), sys.stdin, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
