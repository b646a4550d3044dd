"""What the programs of a cluster import: the side of a task. Nothing of `utils.cluster` here."""

from utils.task.partners import explain, why_no_session
from utils.task.prepare import prepare, read_role
from utils.task.ran import ran_by_task
from utils.task.role import Role, RoleError, add_arguments, parse_tf_config, role_of

__all__ = [
    "Role",
    "RoleError",
    "add_arguments",
    "explain",
    "parse_tf_config",
    "prepare",
    "ran_by_task",
    "read_role",
    "role_of",
    "why_no_session",
]
