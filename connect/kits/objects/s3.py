"""S3: the account, the objects of one bucket below one prefix, and what the service's errors mean."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from connect.errors import ConnectError, RetriableError
from connect.internals.extras import how_to_install
from connect.kits.http.retries import clock_advice, retry_after
from connect.kits.objects.entry import ObjectEntry
from connect.kits.objects.pieces import LargeReads, PieceStream
from connect.kits.objects.ranges import open_ranges

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

__all__ = ["S3Account", "S3Attributes", "S3Objects", "S3Role", "S3Writer", "client_of"]

_MEANINGS: Final[Sequence[tuple[frozenset[str], type[OSError]]]] = (
    # versitygw misses the parts of an upload that was aborted, and not the upload.
    (frozenset({"404", "NoSuchKey", "NoSuchUpload", "NotFound", "InvalidPart"}), FileNotFoundError),
    (frozenset({"412", "PreconditionFailed"}), FileExistsError),
    (frozenset({"409", "ConditionalRequestConflict", "OperationAborted"}), BlockingIOError),
)
_REFUSED: Final = frozenset(
    {
        "401",
        "403",
        "AccessDenied",
        "Forbidden",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "RequestTimeTooSkewed",
        "RequestExpired",
    }
)
_PASSING: Final = frozenset({"SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "RequestLimitExceeded"})
_WRITTEN_BY: Final = "sluice"
_TRIES: Final = 5
_DELETED_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class S3Role:
    """A role that is assumed before the bucket is reached; with a token file, by a web identity."""

    arn: str
    session_name: str = "sluice"
    session_seconds: int = 3600
    external_id: str | None = None
    endpoint: str | None = None
    token_file: str | None = None


@dataclass(frozen=True, slots=True)
class S3Attributes:
    """What objects are given when they are written."""

    acl: str | None = None
    encryption: str | None = None
    kms_key: str | None = None
    customer_key: str | None = field(default=None, repr=False)
    content_type: str | None = None
    content_encoding: str | None = None
    storage_class: str | None = None

    @property
    def of_object(self) -> Mapping[str, str]:
        """The arguments of the request that begins or puts an object."""
        found = {
            "ACL": self.acl,
            "ServerSideEncryption": self.encryption,
            "SSEKMSKeyId": self.kms_key,
            "ContentType": self.content_type,
            "ContentEncoding": self.content_encoding,
            "StorageClass": self.storage_class,
        }
        return {name: value for name, value in found.items() if value} | dict(self.of_part)

    @property
    def of_part(self) -> Mapping[str, str]:
        """The arguments of each request with content."""
        if not self.customer_key:
            return {}
        return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": self.customer_key}


_NO_ATTRIBUTES: Final = S3Attributes()


@dataclass(frozen=True, slots=True)
class S3Account:
    """Access to an S3-compatible service; plain data, which other processes may be sent."""

    region: str
    endpoint: str | None = None
    path_style: bool = True
    key: str | None = None
    """The credentials. Without them, keys are found the way Amazon's clients do."""
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """The session token of credentials that last for a while only."""
    profile: str | None = None
    role: S3Role | None = None
    proxy: str | None = field(default=None, repr=False)
    accelerated: bool = False
    tries: int = _TRIES


def client_of(account: S3Account, service: str) -> Any:
    """Create a client of a service of Amazon's, at the account's endpoint. Many threads may share it."""
    try:
        import boto3  # noqa: PLC0415 - an extra, and slow to import
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    except ImportError as error:
        raise ConnectError(f"S3, SQS and Glue need boto3: {how_to_install('s3')}") from error
    proxies = None if account.proxy is None else {"https": account.proxy, "http": account.proxy}
    try:
        session = boto3.Session(
            region_name=account.region,
            profile_name=account.profile,
            aws_access_key_id=account.key,
            aws_secret_access_key=account.secret,
            aws_session_token=account.token,
        )
        if account.role is not None:
            session = _with_role(session, account.role, proxies)
    except BotoCoreError as error:
        raise ConnectError(
            f"Credentials for S3 cannot be used: {error} Check aws.profile and aws.sts.role.arn."
        ) from error
    return session.client(
        service,
        endpoint_url=account.endpoint,
        config=Config(
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=32,
            proxies=proxies,
            retries={"mode": "standard", "max_attempts": account.tries},
            s3={
                "addressing_style": "path" if account.path_style and not account.accelerated else "auto",
                "use_accelerate_endpoint": account.accelerated,
            },
            # Not every service supports the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _with_role(session: Any, role: S3Role, proxies: Mapping[str, str] | None) -> Any:
    """Return a session whose credentials are those of a role, and are renewed before they end."""
    import boto3  # noqa: PLC0415 - as above
    from botocore import UNSIGNED  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415
    from botocore.credentials import DeferredRefreshableCredentials  # noqa: PLC0415
    from botocore.session import get_session  # noqa: PLC0415

    signing = {"signature_version": UNSIGNED} if role.token_file is not None else {}
    tokens = session.client("sts", endpoint_url=role.endpoint, config=Config(proxies=proxies, **signing))

    def assumed() -> Mapping[str, str]:
        asked: dict[str, Any] = {
            "RoleArn": role.arn,
            "RoleSessionName": role.session_name,
            "DurationSeconds": role.session_seconds,
        }
        if role.token_file is not None:
            token = Path(role.token_file).read_text().strip()
            answer = tokens.assume_role_with_web_identity(**asked, WebIdentityToken=token)
        else:
            answer = tokens.assume_role(**asked, **({"ExternalId": role.external_id} if role.external_id else {}))
        found = answer["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    inner: Any = get_session()
    inner._credentials = DeferredRefreshableCredentials(refresh_using=assumed, method="sts-assume-role")
    inner.set_config_variable("region", session.region_name)
    return boto3.Session(botocore_session=inner)


class S3Objects:
    """The objects below a prefix of a bucket; an :class:`~connect.kits.objects.store.ObjectStore`.

    It relies on reads and lists that see every finished write, and on ``If-None-Match`` for puts.
    """

    def __init__(self, account: S3Account, bucket: str, prefix: str) -> None:
        self._account = account
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    def key(self, path: str) -> str:
        """Return the key of an object."""
        return self._prefix + path

    def path_of(self, key: str) -> str:
        """Return the inverse of :meth:`key`."""
        return key.removeprefix(self._prefix)

    def create(self, path: str, data: bytes) -> None:
        """Create an object; raises :class:`FileExistsError` if it exists already."""
        token = uuid.uuid4().hex
        for _ in range(_TRIES):
            try:
                with self._errors(path):
                    self._client.put_object(**self._at(path), Body=data, IfNoneMatch="*", Metadata={_WRITTEN_BY: token})
            except BlockingIOError:
                continue
            except FileExistsError:
                # The response to an earlier try of this very request may have been lost.
                if self._token(path) != token:
                    raise
            return
        raise RetriableError(
            f"{path} in bucket {self._bucket} could not be created: others are writing it at the same time."
        )

    def put(self, path: str, data: bytes | bytearray, attributes: S3Attributes = _NO_ATTRIBUTES) -> None:
        """Create or replace an object."""
        with self._errors(path):
            self._client.put_object(**self._at(path), Body=LargeReads(data), **attributes.of_object)

    def tag(self, path: str, tags: Mapping[str, str]) -> None:
        """Give an object tags in place of those it has."""
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        with self._errors(path):
            self._client.put_object_tagging(**self._at(path), Tagging={"TagSet": pairs})

    def read(self, path: str) -> bytes:
        """Return the content of an object; raises :class:`FileNotFoundError` if it does not exist."""
        with self._errors(path):
            return cast("bytes", self._client.get_object(**self._at(path))["Body"].read())

    def _read_range(self, path: str, first: int, size: int) -> bytes:
        """Return a range of an object."""
        with self._errors(path):
            answer = self._client.get_object(**self._at(path), Range=f"bytes={first}-{first + size - 1}")
            return cast("bytes", answer["Body"].read())

    def open(self, path: str) -> BinaryIO:
        """Open an object for random reads; raises :class:`FileNotFoundError` if it does not exist."""
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(path)
        return open_ranges(size, partial(self._read_range, path))

    def size(self, path: str) -> int | None:
        """Return the size of an object, ``None`` if it does not exist."""
        try:
            return int(self._head(path)["ContentLength"])
        except FileNotFoundError:
            return None

    def below(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the objects below a folder, ordered by path, with their sizes."""
        prefix = self.key(f"{path}/" if path else "")
        with self._errors(path):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                for item in page.get("Contents", ()):
                    yield self.path_of(item["Key"]), int(item["Size"])

    def entries(self, start: str = "", after: str = "") -> Iterator[ObjectEntry]:
        """The objects whose paths begin with ``start`` and come after ``after``, ordered by path."""
        more = {"StartAfter": self.key(after)} if after else {}
        with self._errors(start):
            paginator = self._client.get_paginator("list_objects_v2")
            for page in paginator.paginate(Bucket=self._bucket, Prefix=self.key(start), **more):
                for item in page.get("Contents", ()):
                    yield _entry(self.path_of(item["Key"]), int(item["Size"]), item)

    def entry(self, path: str) -> ObjectEntry | None:
        """Return what a list would tell of an object; ``None`` if it does not exist."""
        try:
            found = self._head(path)
        except FileNotFoundError:
            return None
        return _entry(path, int(found["ContentLength"]), found)

    def read_version(self, path: str, tag: str, first: int, size: int) -> bytes:
        """Return a range of an object if it still has this tag; raises :class:`FileNotFoundError` if not."""
        try:
            with self._errors(path):
                answer = self._client.get_object(
                    **self._at(path), Range=f"bytes={first}-{first + size - 1}", IfMatch=tag
                )
                return cast("bytes", answer["Body"].read())
        except FileExistsError:
            raise FileNotFoundError(path) from None

    def copy(self, path: str, target: str) -> None:
        """Copy an object of any size without moving its content."""
        with self._errors(path):
            self._client.copy({"Bucket": self._bucket, "Key": self.key(path)}, self._bucket, self.key(target))

    def beginning(self, path: str) -> list[str]:
        """Return the objects whose paths begin with this prefix."""
        with self._errors(path):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self.key(path))
            return [self.path_of(item["Key"]) for page in pages for item in page.get("Contents", ())]

    def names(self, path: str) -> list[str]:
        """List the names directly in a folder."""
        prefix = self.key(f"{path}/" if path else "")
        found: set[str] = set()
        with self._errors(path):
            paginator = self._client.get_paginator("list_objects_v2")
            for page in paginator.paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/"):
                found |= {item["Key"] for item in page.get("Contents", ())}
                found |= {item["Prefix"].rstrip("/") for item in page.get("CommonPrefixes", ())}
        return sorted(name for name in (key.removeprefix(prefix) for key in found) if name)

    def remove(self, path: str) -> None:
        """Delete an object, if it exists."""
        self.remove_all([path])

    def remove_tree(self, path: str) -> None:
        """Delete the objects below a prefix."""
        self.remove_all([name for name, _ in self.below(path)])

    def remove_all(self, paths: Iterable[str]) -> None:
        """Delete objects, if they exist."""
        waiting = list(paths)
        for start in range(0, len(waiting), _DELETED_AT_ONCE):
            objects = [{"Key": self.key(path)} for path in waiting[start : start + _DELETED_AT_ONCE]]
            with self._errors(waiting[start]):
                answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
            for failure in answer.get("Errors", ()):
                raise ConnectError(
                    f"{failure['Key']} in bucket {self._bucket} cannot be deleted ({failure.get('Code')}): allow "
                    "s3:DeleteObject to the connector."
                )

    # -- uploads ---------------------------------------------------------------------------------------------

    def uploads(self, folder: str) -> list[tuple[str, str]]:
        """Return the incomplete uploads of objects below a folder: path and id."""
        prefix = self.key(f"{folder}/")
        with self._errors(folder):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=prefix)
            found = [(item["Key"], item["UploadId"]) for page in pages for item in page.get("Uploads", ())]
        # Not every service respects the prefix.
        return [(self.path_of(key), upload) for key, upload in found if key.startswith(prefix)]

    def begin_upload(self, path: str, attributes: S3Attributes = _NO_ATTRIBUTES) -> str:
        """Begin an upload of an object, and return its id."""
        with self._errors(path):
            answer = self._client.create_multipart_upload(**self._at(path), **attributes.of_object)
            return cast("str", answer["UploadId"])

    def upload_part(
        self, path: str, upload: str, number: int, data: bytes, attributes: S3Attributes = _NO_ATTRIBUTES
    ) -> str:
        """Send a part of an upload, counted from 1, and return its tag."""
        with self._errors(path):
            answer = self._client.upload_part(
                **self._at(path), UploadId=upload, PartNumber=number, Body=LargeReads(data), **attributes.of_part
            )
            return cast("str", answer["ETag"])

    def complete(self, path: str, upload: str, parts: Sequence[str]) -> None:
        """Turn an upload into an object; raises :class:`FileNotFoundError` if the upload no longer exists."""
        numbered = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(parts, 1)]
        with self._errors(path):
            self._client.complete_multipart_upload(
                **self._at(path), UploadId=upload, MultipartUpload={"Parts": numbered}
            )

    def has_upload(self, path: str, upload: str) -> bool:
        """Return whether an incomplete upload of this id exists."""
        try:
            with self._errors(path):
                self._client.list_parts(**self._at(path), UploadId=upload, MaxParts=1)
        except FileNotFoundError:
            return False
        return True

    def abort(self, path: str, upload: str) -> None:
        """Abort an upload, if it exists."""
        try:
            with self._errors(path):
                self._client.abort_multipart_upload(**self._at(path), UploadId=upload)
        except FileNotFoundError:
            return

    # -- requests --------------------------------------------------------------------------------------------

    @cached_property
    def _client(self) -> Any:
        return client_of(self._account, "s3")

    def _at(self, path: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self.key(path)}

    def _head(self, path: str) -> Any:
        with self._errors(path):
            return self._client.head_object(**self._at(path))

    def _token(self, path: str) -> str | None:
        try:
            return cast("str | None", self._head(path)["Metadata"].get(_WRITTEN_BY))
        except FileNotFoundError:
            return None

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        """Translate the errors of requests."""
        # The client first: it says how to install its library, from which the errors are.
        _ = self._client
        from botocore import exceptions as boto  # noqa: PLC0415 - as boto3

        try:
            yield
        except boto.ClientError as error:
            raise self._meaning(error, path) from error
        except (boto.HTTPClientError, boto.ConnectionError) as error:
            raise RetriableError(f"The service for bucket {self._bucket} cannot be reached: {error}") from error
        except boto.BotoCoreError as error:
            raise ConnectError(
                f"The store in bucket {self._bucket} cannot be used: {error} Check aws.access.key.id, "
                "aws.secret.access.key, s3.region and s3.endpoint."
            ) from error

    def _meaning(self, error: ClientError, path: str) -> Exception:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        if code == "NoSuchBucket":
            return ConnectError(f"There is no bucket {self._bucket}: make it, or correct its name or s3.endpoint.")
        for codes, meaning in _MEANINGS:
            if code in codes:
                return meaning(path)
        if code in _REFUSED:
            return ConnectError(
                f"The service of bucket {self._bucket} refuses {error.operation_name} of {path} ({code}): check "
                "aws.access.key.id and aws.secret.access.key, and what they permit (docs/spark/stores.md lists it)."
                + clock_advice(headers.get("date", ""), time.time())
            )
        message = f"{error.operation_name} of {path} in bucket {self._bucket} failed ({code or status})."
        if code == "NotImplemented" or status == 501:
            return ConnectError(
                f"{message} The service does not know such a request. Conditional writes (If-None-Match) are needed "
                "where the clock, the size or memory ends files: update the service, or use flush.size alone."
            )
        if status in {408, 429} or status >= 500 or code in _PASSING:
            return RetriableError(
                message, retry_after=retry_after({"retry-after": headers.get("retry-after", "")}, time.time())
            )
        return ConnectError(f"{message} Check s3.region, s3.endpoint and s3.path.style.access.enabled.")


def _entry(path: str, size: int, item: Any) -> ObjectEntry:
    return ObjectEntry(path, size, str(item.get("ETag", "")), int(1000 * item["LastModified"].timestamp()))


class S3Writer:
    """An object that is put whole if it fits into one part, and uploaded part by part otherwise.

    What is written to ``stream`` is sent; the object exists once the stream is closed and the writer completed.
    """

    def __init__(self, objects: S3Objects, path: str, part_size: int) -> None:
        self.stream = PieceStream(part_size, self._send)
        self._objects = objects
        self._path = path
        self._upload: str | None = None
        self._tags: list[str] = []

    def complete(self) -> None:
        """Create the object."""
        if self._upload is not None:
            self._objects.complete(self._path, self._upload, self._tags)

    def remove(self) -> None:
        """Abort or remove the object."""
        self.stream.drop()
        if self._upload is not None:
            self._objects.abort(self._path, self._upload)
        self._objects.remove(self._path)

    def _send(self, piece: bytes) -> None:
        if self._upload is None and self.stream.closed:
            self._objects.put(self._path, piece)
            return
        if self._upload is None:
            self._upload = self._objects.begin_upload(self._path)
        self._tags.append(self._objects.upload_part(self._path, self._upload, len(self._tags) + 1, piece))
