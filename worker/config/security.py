"""The REST API's security as configured in a worker's file: sign-in, permissions and audit."""

from __future__ import annotations

from collections.abc import Iterable

from connect.config import LOW, MEDIUM, Config, Long, all_of, at_least, list_values, non_empty_list, option, validator
from connect.config.errors import ConfigRuleError, invalid_value
from connect.config.url import shown_url
from connect.errors import ConfigError
from worker.security.certificate_names import NameRules
from worker.security.login_file import EXTENSIONS_KEY, LOGIN_CONFIG_KEY, asks_for_password

__all__ = ["SecurityConfig"]

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_KIB = 1024


@validator("rules as of ssl.principal.mapping.rules of a Kafka broker, separated by commas")
def _name_rules(key: str, value: str) -> None:
    try:
        NameRules.parse(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


@validator("an https URL, or an http URL of this machine")
def _safe_url(key: str, value: str) -> None:
    local = ("http://localhost:", "http://127.0.0.1:", "http://[::1]:")
    if not value.startswith(("https://", *local)):
        raise ConfigError(key, shown_url(value), "Write a URL that begins with https://")


class SecurityConfig(Config):
    """The keys that say who may use a worker's REST API, what they may do, and where that is recorded."""

    rest_extension_classes: tuple[str, ...] = option(
        name=EXTENSIONS_KEY,
        default=(),
        importance=LOW,
        doc="org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension, or its simple name, "
        "for basic authentication of users. There are no other extensions.",
    )
    login_config: str | None = option(
        name=LOGIN_CONFIG_KEY,
        default=None,
        importance=LOW,
        doc="A JAAS file whose entry KafkaConnect names the properties file of users for basic authentication. In "
        "Java this is a system property; if this key is absent, it is read from KAFKA_OPTS.",
    )
    rest_authentication_certificates: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether clients can sign in with the certificate of their TLS connection. Also set ssl.client.auth to "
        "requested or required, and a trust store.",
    )
    ssl_principal_mapping_rules: str = option(
        default="DEFAULT",
        importance=LOW,
        validator=_name_rules,
        doc="How a certificate's distinguished name becomes a principal, as in a Kafka broker: rules of the form "
        "RULE:pattern/replacement/, with L or U at the end for lower or upper case; the first match applies. DEFAULT "
        "is the whole name.",
    )
    rest_authentication_oidc_issuer: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=_safe_url,
        doc="The issuer of the bearer tokens (JWT) that clients sign in with, exactly as in their iss claim.",
    )
    rest_authentication_oidc_audience: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The audiences (aud) of which a bearer token must have at least one. Required with an issuer, so that "
        "tokens made for another service are refused.",
    )
    rest_authentication_oidc_jwks_url: str | None = option(
        name="rest.authentication.oidc.jwks.url",
        default=None,
        importance=LOW,
        validator=_safe_url,
        doc="The URL of the issuer's keys; by default taken from ISSUER/.well-known/openid-configuration.",
    )
    rest_authentication_oidc_algorithms: tuple[str, ...] = option(
        default=("RS256", "ES256"),
        importance=LOW,
        validator=all_of(non_empty_list, list_values(*_ALGORITHMS)),
        doc="The algorithms with which bearer tokens may be signed.",
    )
    rest_authentication_oidc_principal_claim: str = option(
        default="sub",
        importance=LOW,
        doc="The claim of a bearer token that names the principal; write a nested claim with dots.",
    )
    rest_authentication_oidc_groups_claim: str = option(
        default="groups",
        importance=LOW,
        doc="The claim that lists the principal's groups; write a nested claim with dots, as in realm_access.roles.",
    )
    rest_authentication_oidc_clock_skew_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(0),
        doc="How far the issuer's clock may differ from this worker's, in milliseconds.",
    )
    rest_authentication_tokens_file: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The file of API tokens, which `sluice token` writes and clients send as bearer tokens.",
    )
    rest_authentication_health_open: bool = option(
        default=False,
        importance=LOW,
        doc="Whether /health and the paths below it answer without sign-in, for probes.",
    )
    rest_authorization_file: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The file of roles (TOML), which says what each principal may do; it is read again when it changes. "
        "Without it, everybody who has signed in may do everything.",
    )
    rest_allowed_hosts: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="The host names with which clients may address this worker (header Host), without ports; * matches any "
        "text. Addresses, localhost and the advertised name are always allowed. By default all names are allowed: "
        "then a web page could reach a worker in its visitor's network with a name that resolves to the worker's "
        "address.",
    )
    rest_max_head_bytes: int = option(
        default=8 * _KIB,
        importance=LOW,
        validator=at_least(_KIB),
        doc="Maximum size of the request line and the headers together, in bytes.",
    )
    rest_max_body_bytes: int = option(
        default=16 * _KIB * _KIB,
        importance=LOW,
        validator=at_least(_KIB),
        doc="Maximum size of a request body, in bytes.",
    )
    rest_max_connections: int = option(
        default=512,
        importance=LOW,
        validator=at_least(8),
        doc="Maximum number of open connections for each listener; further connections wait until others are closed.",
    )
    rest_max_requests_per_second: int = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Maximum number of requests per second from one address, on average, with bursts of three times as "
        "many. Further requests are answered with 429. 0 is unlimited.",
    )
    audit_file: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The audit file: every request that changes something or is refused is written to it as one line of "
        "JSON (CloudEvents).",
    )
    audit_topic: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The topic for audit events. It must exist.",
    )
    audit_log: bool = option(
        default=False, importance=LOW, doc="Whether audit events are written to the worker's log, by the logger audit."
    )
    audit_required: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a change is refused with 503 if its audit event cannot be written first.",
    )

    @property
    def authenticates(self) -> bool:
        """Whether clients have to sign in."""
        return bool(
            self.rest_extension_classes
            or self.rest_authentication_certificates
            or self.rest_authentication_oidc_issuer
            or self.rest_authentication_tokens_file
        )

    @property
    def audits(self) -> bool:
        """Whether requests are audited."""
        return bool(self.audit_file or self.audit_topic or self.audit_log)

    def check(self) -> Iterable[ConfigError]:
        """Refuse contradictory keys."""
        try:
            asks_for_password(self.rest_extension_classes)
        except ConfigError as error:
            yield error
        if self.rest_authentication_oidc_issuer and not self.rest_authentication_oidc_audience:
            key = "rest.authentication.oidc.audience"
            yield ConfigRuleError(
                f"rest.authentication.oidc.issuer is set and {key} is not: name the audience of this worker's tokens, "
                "so that tokens for other services of the issuer are refused.",
                key,
            )
        if self.rest_authorization_file and not self.authenticates:
            yield ConfigRuleError(
                f"rest.authorization.file says what principals may do, but nobody can sign in: set {EXTENSIONS_KEY} or "
                "one of the keys that begin with rest.authentication.",
                "rest.authorization.file",
            )
        if self.audit_required and not (self.audit_file or self.audit_topic):
            yield ConfigRuleError("audit.required needs audit.file or audit.topic: set one of them.", "audit.required")
