"""Removal of a sink task's dead predecessors from its group, so that its records flow at once after a kill.

A consumer that ends in order leaves its group. One that was killed stays a member until its session is over (45 s by
default), and until then the group gives its partitions to nobody, or waits for it with every rebalance. But the cluster
runs a task only once, and a task's consumers all have the same ``client.id``. So whoever has this task's before it has
joined is dead, or a zombie whose commits must be refused.

Crash points, kill -9 of the new task: before the request, the next one makes it; after it, the dead member is gone and
this one never joined, so nothing waits for it; once it has joined, it is the predecessor of the next. Offsets are not
touched. A zombie that is removed can commit no more: what it has under way is consumed again, as after any rebalance.
Everything that fails here leaves the group as it is, with its wait.
"""

from __future__ import annotations

import logging
from typing import Final

from confluent_kafka import KafkaException

from connect.errors import ConnectError
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.clients.shared_admin import SharedAdmin

__all__ = ["remove_predecessors"]

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 5.0


def remove_predecessors(client: ClientProperties, own_id: str, admin: SharedAdmin) -> None:
    """Remove the members with this task's ``client.id`` from its group, before the task itself joins.

    ``client`` is the configuration of its consumer, ``own_id`` the ``client.id`` that no other task has. With another
    ``client.id``, with ``group.instance.id`` or another protocol of groups, nothing is done: whose a member is would be
    unknown, or the broker itself replaces it.
    """
    properties = client.properties
    if properties["client.id"] != own_id or "group.instance.id" in properties or _is_of_brokers(client):
        return
    group = str(properties["group.id"])
    try:
        if members := _members(admin, group, own_id):
            # The module is imported on demand, because it takes 20 MB.
            from worker.kafka.groups.coordinator_requests import remove_members  # noqa: PLC0415

            remove_members(client, group, members, _TIMEOUT_SECONDS)
            logger.info("Removed a former consumer of this task, which had not left, from group %s", group)
    except (ConnectError, KafkaException) as error:
        logger.info(
            "A former consumer of this task may still be in group %s and could not be removed. If it was killed, the "
            "group waits until its session is over: %s",
            group,
            error,
        )


def _is_of_brokers(client: ClientProperties) -> bool:
    return client.properties.get("group.protocol") == "consumer"


def _members(admin: SharedAdmin, group: str, client_id: str) -> list[str]:
    return [
        member.member_id
        for member in admin.describe_group(group, _TIMEOUT_SECONDS).members
        if member.client_id == client_id and member.group_instance_id is None
    ]
