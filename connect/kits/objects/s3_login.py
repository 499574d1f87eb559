"""The options that say who signs in to S3: temporary credentials, profiles, and roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from connect.config import LOW, MEDIUM, Password, between, option
from connect.errors import ConfigError
from connect.kits.objects.options import S3Options
from connect.kits.objects.s3 import S3Account, S3Role

__all__ = ["PROVIDERS", "PROVIDER_KEYS", "S3LoginOptions"]

_STORE: Final = "Store"
PROVIDERS: Final = (
    "io.aiven.kafka.connect.util.aivenawscredentialsprovider",
    "io.confluent.connect.s3.auth.awsassumerolecredentialsprovider",
)
"""Java's classes that sign in by what these keys say, in small letters."""
PROVIDER_KEYS: Final[Mapping[str, str]] = {
    "s3.credentials.provider.access_key_id": "aws.access.key.id",
    "s3.credentials.provider.secret_access_key": "aws.secret.access.key",
    "s3.credentials.provider.sts.role.arn": "aws.sts.role.arn",
    "s3.credentials.provider.sts.role.session.name": "aws.sts.role.session.name",
    "s3.credentials.provider.sts.role.external.id": "aws.sts.role.external.id",
}
"""The keys of those classes, and those that mean the same here."""


class S3LoginOptions(S3Options):
    """What the connectors for objects add to the key and secret of S3, under the names of Confluent's and Aiven's."""

    aws_session_token: Password | None = option(
        default=None, importance=MEDIUM, group=_STORE, doc="The session token of temporary credentials."
    )
    aws_profile: str | None = option(
        default=None,
        importance=LOW,
        group=_STORE,
        doc="The profile in the files of Amazon's command line (~/.aws) that has the credentials.",
    )
    aws_sts_role_arn: str | None = option(
        default=None, importance=MEDIUM, group=_STORE, doc="The role to assume before the bucket is reached."
    )
    aws_sts_role_session_name: str = option(
        default="sluice", importance=MEDIUM, group=_STORE, doc="The name of the session of the role."
    )
    aws_sts_role_session_duration: int = option(
        default=3600,
        importance=MEDIUM,
        validator=between(900, 43200),
        group=_STORE,
        doc="For how many seconds the role is assumed at once.",
    )
    aws_sts_role_external_id: str | None = option(
        default=None, importance=MEDIUM, group=_STORE, doc="The external id that the role asks for."
    )
    aws_sts_config_endpoint: str | None = option(
        default=None, importance=MEDIUM, group=_STORE, doc="The URL of the service that gives out roles."
    )
    aws_sts_web_identity_token_file: str | None = option(
        default=None,
        importance=LOW,
        group=_STORE,
        doc="A file with a token of a web identity, by which the role is assumed. Without it, "
        "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN of the worker's environment are heeded.",
    )

    @property
    def s3_account(self) -> S3Account:
        """The account for the bucket."""
        token = self.aws_session_token
        return replace(
            super().s3_account,
            token=None if token is None else token.value,
            profile=self.aws_profile,
            role=self._role,
        )

    def role_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the role."""
        if self.aws_sts_role_arn is None and self.aws_sts_web_identity_token_file is not None:
            reason = "It belongs to a role: set aws.sts.role.arn, too."
            yield ConfigError("aws.sts.web.identity.token.file", self.aws_sts_web_identity_token_file, reason)

    @property
    def _role(self) -> S3Role | None:
        if self.aws_sts_role_arn is None:
            return None
        return S3Role(
            self.aws_sts_role_arn,
            self.aws_sts_role_session_name,
            self.aws_sts_role_session_duration,
            self.aws_sts_role_external_id,
            self.aws_sts_config_endpoint,
            self.aws_sts_web_identity_token_file,
        )
