"""The machine: its host and GPUs, real or virtual; sessions on them; what TensorFlow prints."""

from utils.machine.capture import captured, write_back
from utils.machine.devices import (
    MOST_GPUS,
    Machine,
    current_machine,
    plain_name,
    virtual_gpus,
)
from utils.machine.errors import reason
from utils.machine.flags import check_flags
from utils.machine.session import session_config
from utils.machine.startup import restart

__all__ = [
    "MOST_GPUS",
    "Machine",
    "captured",
    "check_flags",
    "current_machine",
    "plain_name",
    "reason",
    "restart",
    "session_config",
    "virtual_gpus",
    "write_back",
]
