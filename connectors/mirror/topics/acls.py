"""Who may do what with a mirrored topic, by what they may with its source."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["AclBinding", "mirrored_acl"]


@dataclass(frozen=True, slots=True)
class AclBinding:
    """An ACL of one topic, named literally: ``permission`` and ``operation`` by Kafka's names, such as ALLOW READ."""

    topic: str
    principal: str
    host: str
    operation: str
    permission: str


def mirrored_acl(binding: AclBinding, remote_topic: str) -> AclBinding | None:
    """The ACL of the mirrored topic; ``None`` if there is none.

    Only the mirror writes to the topic: who is allowed to write to the source is not, and who is allowed all may read.
    What is denied stays denied.
    """
    if binding.permission != "ALLOW":
        return replace(binding, topic=remote_topic)
    if binding.operation == "WRITE":
        return None
    operation = "READ" if binding.operation == "ALL" else binding.operation
    return replace(binding, topic=remote_topic, operation=operation)
