"""Queues of Amazon SQS, or of a service that speaks its protocol: messages are taken, kept and deleted."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from connect.errors import ConnectError, RetriableError
from connect.kits.http.retries import retry_after
from connect.kits.objects.s3 import S3Account, client_of

__all__ = ["QueueMessage", "SqsQueue", "account_of_queue"]

_AT_ONCE: Final = 10
"""The most messages that a request of SQS may name."""
_REGION: Final = re.compile(r"(?:^|\.)sqs(?:-fips)?\.([a-z0-9-]+)\.|^([a-z0-9-]+)\.queue\.amazonaws\.")
_MISSING: Final = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_PASSING: Final = frozenset({"RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KmsThrottled"})
_RIGHTS: Final = "sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility"


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message as it was received: the receipt is that of this time, the id the same each time."""

    message_id: str
    receipt: str
    body: str


def account_of_queue(account: S3Account, url: str) -> S3Account:
    """Return the account at the service that has a queue; the region is told by the names of Amazon's hosts."""
    parts = urlsplit(url)
    found = _REGION.search(parts.hostname or "")
    region = account.region if found is None else found[1] or found[2]
    return replace(account, region=region, endpoint=f"{parts.scheme}://{parts.netloc}", accelerated=False)


class SqsQueue:
    """One queue. What is received is hidden for ``hidden_seconds``, and comes again unless it is deleted."""

    def __init__(self, account: S3Account, url: str, hidden_seconds: int) -> None:
        self._account = account_of_queue(account, url)
        self.url = url
        self.hidden_seconds = hidden_seconds

    def receive(self, wait_seconds: int) -> list[QueueMessage]:
        """Return up to ten messages, and wait for the first; all servers are asked only if it is waited."""
        with self._errors():
            answer = self._client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=_AT_ONCE,
                WaitTimeSeconds=wait_seconds,
                VisibilityTimeout=self.hidden_seconds,
            )
        return [
            QueueMessage(each["MessageId"], each["ReceiptHandle"], each["Body"]) for each in answer.get("Messages", ())
        ]

    def hide(self, receipts: Sequence[str]) -> None:
        """Hide messages for as long again. What cannot be hidden comes again."""
        for entries in _divided(receipts):
            hidden = [{**entry, "VisibilityTimeout": self.hidden_seconds} for entry in entries]
            with self._errors():
                self._client.change_message_visibility_batch(QueueUrl=self.url, Entries=hidden)

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages. What cannot be deleted comes again."""
        for entries in _divided(receipts):
            with self._errors():
                self._client.delete_message_batch(QueueUrl=self.url, Entries=entries)

    @cached_property
    def _client(self) -> Any:
        return client_of(self._account, "sqs")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Translate the errors of requests."""
        # The client first: it says how to install its library, from which the errors are.
        _ = self._client
        from botocore import exceptions as boto  # noqa: PLC0415 - as boto3

        try:
            yield
        except boto.ClientError as error:
            raise self._meaning(error) from error
        except (boto.HTTPClientError, boto.ConnectionError) as error:
            raise RetriableError(f"The queue {self.url} cannot be reached: {error}") from error
        except boto.BotoCoreError as error:
            raise ConnectError(
                f"The queue {self.url} cannot be used: {error} Check aws.access.key.id, aws.secret.access.key and "
                "sqs.url."
            ) from error

    def _meaning(self, error: Any) -> Exception:
        code = str(error.response.get("Error", {}).get("Code", ""))
        answer = error.response.get("ResponseMetadata", {})
        status = int(answer.get("HTTPStatusCode", 0))
        if code.rpartition("#")[2] in _MISSING:
            return ConnectError(f"There is no queue {self.url}: make it, or correct sqs.url.")
        message = f"{error.operation_name} of the queue {self.url} failed ({code or status})."
        if status in {408, 429} or status >= 500 or code in _PASSING:
            headers = answer.get("HTTPHeaders", {})
            return RetriableError(
                message, retry_after=retry_after({"retry-after": headers.get("retry-after", "")}, time.time())
            )
        return ConnectError(f"{message} Check the credentials; they must permit {_RIGHTS}.")


def _divided(receipts: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Yield the entries of one request after the other."""
    for start in range(0, len(receipts), _AT_ONCE):
        some = receipts[start : start + _AT_ONCE]
        yield [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(some)]
