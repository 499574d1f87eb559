"""Signatures of requests to services of Amazon (AWS Signature Version 4), by botocore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from connect.kits.http.messages import Request

__all__ = ["AwsAccount", "aws_signature"]


@dataclass(frozen=True, slots=True)
class AwsAccount:
    """Who signs, and for which service; without a key credentials are found as in AWS's own tools."""

    region: str
    service: str
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    role: str | None = None
    role_session: str = "sluice"
    role_seconds: int = 3600
    role_external_id: str | None = None


def aws_signature(account: AwsAccount) -> Callable[[Request], Request]:
    """Return what signs requests. Used by one thread."""
    from botocore.auth import SigV4Auth  # noqa: PLC0415 - an extra
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415

    credentials = _credentials(account)

    def sign(request: Request) -> Request:
        made = AWSRequest(request.method, request.url, dict(request.headers), request.body or b"")
        signer = SigV4Auth(credentials.get_frozen_credentials(), account.service, account.region)
        made.headers["x-amz-content-sha256"] = signer.payload(made)
        signer.add_auth(made)
        return replace(request, headers=dict(made.headers.items()))

    return sign


def _credentials(account: AwsAccount) -> Any:
    from botocore.session import get_session  # noqa: PLC0415

    session = get_session()
    if account.access_key is not None and account.secret_key is not None:
        session.set_credentials(account.access_key, account.secret_key)
    return session.get_credentials() if account.role is None else _assumed(account, session)


def _assumed(account: AwsAccount, session: Any) -> Any:
    """Return the credentials of a role, which are fetched when they are needed and renewed before they end."""
    from botocore.credentials import (  # noqa: PLC0415
        AssumeRoleCredentialFetcher,
        DeferredRefreshableCredentials,
    )

    extra = {
        "RoleSessionName": account.role_session,
        "DurationSeconds": account.role_seconds,
        **({"ExternalId": account.role_external_id} if account.role_external_id else {}),
    }
    fetcher = AssumeRoleCredentialFetcher(
        lambda *args, **kwargs: session.create_client(*args, **{"region_name": account.region, **kwargs}),
        session.get_credentials(),
        account.role,
        extra_args=extra,
    )
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
