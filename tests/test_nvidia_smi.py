"""utils.cards.nvidia_smi: cards and processes read from what nvidia-smi prints."""

import re

import pytest

from utils.cards import Card, Process, example, nvidia_smi, read_cards, read_listing, read_processes

SCREENS = ["idle", "default", "fraction", "growth", "visible_3_2"]


def test_cards_as_listed():
    cards = read_cards(example("four_cards"))
    assert [card.index for card in cards] == [0, 1, 2, 3]
    assert len({card.uuid for card in cards}) == len({card.bus_id for card in cards}) == 4
    uuid = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
    assert cards[0] == Card(0, "Tesla T4", 15360, "00000000:00:04.0", uuid, "7.5")
    assert [c.name for c in read_cards(example("unlike_cards"))] == [
        "Tesla T4",
        "NVIDIA A100-SXM4-40GB",
    ]


ROW = "0, Tesla T4, 15360 MiB, 00000000:00:04.0, GPU-1, 7.5"
HEAD = "index, name, memory.total [MiB], pci.bus_id, uuid, compute_cap"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "''"),
        (ROW, ROW),
        (f"index, name\n{ROW}", "index, name"),
        (HEAD.replace("memory.total", "memory.used"), "memory.used"),
        ("No devices were found", "No devices were found"),
        (f"{HEAD}\n{ROW}\n0, Tesla T4, 15360 MiB", "0, Tesla T4, 15360 MiB'"),
        (f"{HEAD}\n{ROW}\n{ROW}, 7.5", f"{ROW}, 7.5"),
        (f"{HEAD}\nx{ROW}", f"x{ROW}"),
    ],
)
def test_what_is_no_list_of_cards_is_named(text, named):
    match = rf"{named}.*: give the output of nvidia-smi --query-gpu=index,name,memory\.total"
    with pytest.raises(ValueError, match=match.replace("[MiB]", "")):
        read_cards(text)


def test_a_listing_is_read_whatever_nvidia_smi_does_not_know():
    cards, other = read_listing(
        "index, name, memory.total [MiB], uuid, driver_version\n"
        "0, NVIDIA GB10, [N/A], GPU-1, 550.54.15\r\n"
        "warning: infoROM is corrupted\n\n"
        "10, Tesla T4, 15360 MiB, [Unknown Error], [Not Supported]\n"
    )
    assert cards == (
        Card(0, "NVIDIA GB10", None, "", "GPU-1", driver="550.54.15"),
        Card(10, "Tesla T4", 15360, "", ""),
    )
    assert [str(card) for card in cards] == ["0 NVIDIA GB10", "10 Tesla T4 (15360 MiB)"]
    assert other == ("warning: infoROM is corrupted",)


def test_processes_of_the_examples():
    assert read_processes(example("idle")) == ()
    assert read_processes(example("default")) == (Process(0, 4821, "C", "python", 14052),)
    held = [(process.card, process.memory_mb) for process in read_processes(example("visible_3_2"))]
    assert held == [(2, 14052), (3, 14052)]


@pytest.mark.parametrize(
    ("row", "process"),
    [
        (  # drivers before 450 have no columns for MIG
            "|    0     28290    C   python                                        1012MiB |",
            Process(0, 28290, "C", "python", 1012),
        ),
        (
            "|    0   N/A  N/A            3154      G   /usr/lib/xorg/Xorg          18MiB |",
            Process(0, 3154, "G", "/usr/lib/xorg/Xorg", 18),
        ),
        (
            "|   11    3    0           24500    C+G   my own program            4200MiB |",
            Process(11, 24500, "C+G", "my own program", 4200),
        ),
    ],
)
def test_rows_of_other_drivers(row, process):
    assert read_processes(f"| Processes:  |\n| GPU PID |\n{row}\n") == (process,)


def test_memory_that_nvidia_smi_does_not_know():
    row = "|    0   N/A  N/A      1234      C   python            N/A      |"
    assert read_processes(f"| Processes:  |\n{row}\n") == ()


def test_a_screen_without_processes():
    with pytest.raises(ValueError, match="Processes"):
        read_processes("NVIDIA-SMI has failed because it couldn't communicate with the driver.")


@pytest.mark.parametrize("name", SCREENS)
def test_screens_add_up_and_keep_the_tool_s_width(name):
    text = example(name)
    used = [int(mb) for mb in re.findall(r"(\d+)MiB / +15360MiB", text)]
    held = [process.memory_mb for process in read_processes(text)]
    assert used and sum(held) <= sum(used) <= sum(held) + 3 * len(used)
    table = [line for line in text.splitlines() if line[:1] in ("|", "+")]
    assert {len(line) for line in table} == {91}


def test_every_example_says_that_it_is_none_of_the_real_tool():
    files = sorted(path.stem for path in nvidia_smi.FOLDER.glob("*.txt"))
    assert files == sorted(["four_cards", "unlike_cards", *SCREENS])
    readme = (nvidia_smi.FOLDER / "README.md").read_text(encoding="utf-8")
    for name in files:
        assert "not recorded" in example(name).splitlines()[0]
        assert f"`{name}.txt`" in readme


def test_no_such_example():
    with pytest.raises(ValueError, match="'nothing' is no example.*default.*four_cards"):
        example("nothing")
