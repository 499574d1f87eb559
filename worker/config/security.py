"""What a worker's file says of its REST API's security: who may sign in, what they may do, and what is written down."""

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
    """The keys for who may use a worker's REST API, for what, and how that is written down."""

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
        doc="A JAAS file, whose entry KafkaConnect names the properties file of users for basic authentication. In "
        "Java this is a system property; without this key it is read from KAFKA_OPTS.",
    )
    rest_authentication_certificates: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether clients sign in by the certificate of their TLS connection. Set ssl.client.auth to requested or "
        "required as well, and a trust store.",
    )
    ssl_principal_mapping_rules: str = option(
        default="DEFAULT",
        importance=LOW,
        validator=_name_rules,
        doc="How a certificate's distinguished name becomes a principal, as in a Kafka broker: rules of the form "
        "RULE:pattern/replacement/ with L or U at the end for lower or upper case, the first that matches; DEFAULT is "
        "the whole name.",
    )
    rest_authentication_oidc_issuer: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=_safe_url,
        doc="The issuer of the bearer tokens (JWT) by which clients sign in, exactly as it stands in them (iss).",
    )
    rest_authentication_oidc_audience: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The audiences (aud) of which a bearer token must have one. Required with an issuer: a token that was made "
        "for another service must not be good here.",
    )
    rest_authentication_oidc_jwks_url: str | None = option(
        name="rest.authentication.oidc.jwks.url",
        default=None,
        importance=LOW,
        validator=_safe_url,
        doc="Where the issuer's keys are; by default what ISSUER/.well-known/openid-configuration says.",
    )
    rest_authentication_oidc_algorithms: tuple[str, ...] = option(
        default=("RS256", "ES256"),
        importance=LOW,
        validator=all_of(non_empty_list, list_values(*_ALGORITHMS)),
        doc="The algorithms that bearer tokens may be signed by.",
    )
    rest_authentication_oidc_principal_claim: str = option(
        default="sub",
        importance=LOW,
        doc="The claim of a bearer token that names its principal; a path of members is written with dots.",
    )
    rest_authentication_oidc_groups_claim: str = option(
        default="groups",
        importance=LOW,
        doc="The claim that lists the groups of the principal; a path of members is written with dots, as in "
        "realm_access.roles.",
    )
    rest_authentication_oidc_clock_skew_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(0),
        doc="By how much the issuer's clock may differ from this worker's, in milliseconds.",
    )
    rest_authentication_tokens_file: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The file of API tokens, which `sluice token` writes and clients send as bearer tokens.",
    )
    rest_authentication_health_open: bool = option(
        default=False,
        importance=LOW,
        doc="Whether /health and what is below it answers without signing in, for probes.",
    )
    rest_authorization_file: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The file of roles (TOML), which says what each principal may do; it is read again when it changes. "
        "Without it everybody who has signed in may do everything.",
    )
    rest_allowed_hosts: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="The host names under which clients may address this worker (header Host), without ports; * is any text. "
        "Addresses, localhost and the advertised name may always be used. By default any: then a web page could reach "
        "a worker in its visitor's network by a name of its own that it has resolve to the worker's address.",
    )
    rest_max_head_bytes: int = option(
        default=8 * _KIB,
        importance=LOW,
        validator=at_least(_KIB),
        doc="How many bytes the request line and the headers may have together.",
    )
    rest_max_body_bytes: int = option(
        default=16 * _KIB * _KIB,
        importance=LOW,
        validator=at_least(_KIB),
        doc="How many bytes the body of a request may have.",
    )
    rest_max_connections: int = option(
        default=512,
        importance=LOW,
        validator=at_least(8),
        doc="How many connections each listener keeps at once; more wait until others are closed.",
    )
    rest_max_requests_per_second: int = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="How many requests a second are answered to one address, on average; three times as many at once. Others "
        "are answered with 429. 0 is no limit.",
    )
    audit_file: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The file to which every request that changes something or is refused is written, as one line of JSON "
        "(CloudEvents).",
    )
    audit_topic: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The topic to which these events are written. Create it before.",
    )
    audit_log: bool = option(
        default=False, importance=LOW, doc="Whether these events are written to the worker's log, by the logger audit."
    )
    audit_required: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a change is refused with 503 unless it could be written down before it is made.",
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
        """Whether requests are written down."""
        return bool(self.audit_file or self.audit_topic or self.audit_log)

    def check(self) -> Iterable[ConfigError]:
        """Refuse keys that contradict each other."""
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
                "rest.authorization.file says what principals may do, but nobody can sign in: set "
                f"{EXTENSIONS_KEY} or one of the keys that begin with rest.authentication.",
                "rest.authorization.file",
            )
        if self.audit_required and not (self.audit_file or self.audit_topic):
            yield ConfigRuleError("audit.required needs audit.file or audit.topic: set one of them.", "audit.required")
