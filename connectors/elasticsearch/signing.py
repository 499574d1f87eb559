"""Signatures of requests to Amazon OpenSearch Service (AWS Signature Version 4), by botocore."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connect.kits.http.messages import Request

if TYPE_CHECKING:
    from connectors.elasticsearch.cluster import Sign
    from connectors.elasticsearch.opensearch_config import OpenSearchSinkConfig

__all__ = ["aws_signature", "unsigned"]


def unsigned(request: Request) -> Request:
    """Return the request as it is."""
    return request


def aws_signature(config: OpenSearchSinkConfig) -> Sign:
    """Return what signs requests with the credentials that the options name, or those of the environment."""
    from botocore.auth import SigV4Auth  # noqa: PLC0415 - an extra
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415

    credentials = _credentials(config)
    region, service = config.aws_region, config.aws_service_signing_name

    def sign(request: Request) -> Request:
        made = AWSRequest(request.method, request.url, dict(request.headers), request.body or b"")
        made.headers["x-amz-content-sha256"] = SigV4Auth(credentials, service, region).payload(made)
        SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(made)
        return replace(request, headers=dict(made.headers.items()))

    return sign


def _credentials(config: OpenSearchSinkConfig) -> Any:
    from botocore.session import get_session  # noqa: PLC0415

    session = get_session()
    if config.aws_access_key_id is not None and config.aws_secret_access_key is not None:
        session.set_credentials(config.aws_access_key_id, config.aws_secret_access_key.value)
    if config.aws_sts_role_arn is None:
        return session.get_credentials()
    return _assumed(config, session)


def _assumed(config: OpenSearchSinkConfig, session: Any) -> Any:
    """Return the credentials of a role, which are fetched when they are needed and renewed before they end."""
    from botocore.credentials import (  # noqa: PLC0415
        AssumeRoleCredentialFetcher,
        DeferredRefreshableCredentials,
    )

    extra = {
        "RoleSessionName": config.aws_sts_role_session_name or "sluice",
        "DurationSeconds": config.aws_sts_role_session_duration,
        **({"ExternalId": config.aws_sts_role_external_id} if config.aws_sts_role_external_id else {}),
    }
    fetcher = AssumeRoleCredentialFetcher(
        lambda *args, **kwargs: session.create_client(*args, **{"region_name": config.aws_region, **kwargs}),
        session.get_credentials(),
        config.aws_sts_role_arn,
        extra_args=extra,
    )
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
