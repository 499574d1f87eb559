"""The security settings that every mirror connector accepts at its top level, as MirrorMaker 2 does."""

from __future__ import annotations

from connect.config import HIGH, LOW, MEDIUM, Config, Long, Password, PluginName, Short, between, one_of, option

__all__ = ["SecurityConfig"]


class SecurityConfig(Config):
    """Settings that have an effect only below ``source.cluster.`` and ``target.cluster.``; alone they are checked."""

    security_protocol: str = option(
        default="PLAINTEXT",
        importance=MEDIUM,
        validator=one_of("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", ignore_case=True),
        doc="How connections to brokers are protected.",
    )
    ssl_protocol: str = option(
        default="TLSv1.3",
        importance=MEDIUM,
        doc="The TLS version of the context; OpenSSL takes the newest that both sides have.",
    )
    ssl_provider: str | None = option(
        default=None, importance=MEDIUM, doc="A Java provider of TLS; without effect, because OpenSSL does the work."
    )
    ssl_cipher_suites: tuple[str, ...] = option(default=(), importance=LOW, doc="The only cipher suites to offer.")
    ssl_enabled_protocols: tuple[str, ...] = option(
        default=("TLSv1.2", "TLSv1.3"), importance=MEDIUM, doc="The TLS versions to offer."
    )
    ssl_keystore_type: str = option(
        default="JKS", importance=MEDIUM, doc="The format of the key store: JKS, PKCS12 or PEM."
    )
    ssl_keystore_location: str | None = option(
        default=None, importance=HIGH, doc="The file with the client's key and certificates."
    )
    ssl_keystore_password: Password | None = option(default=None, importance=HIGH, doc="Opens the key store.")
    ssl_key_password: Password | None = option(default=None, importance=HIGH, doc="Opens the private key.")
    ssl_keystore_key: Password | None = option(
        default=None, importance=HIGH, doc="The client's private key, as PEM in place of a file."
    )
    ssl_keystore_certificate_chain: Password | None = option(
        default=None, importance=HIGH, doc="The client's certificates, as PEM in place of a file."
    )
    ssl_truststore_certificates: Password | None = option(
        default=None, importance=HIGH, doc="The certificates to trust, as PEM in place of a file."
    )
    ssl_truststore_type: str = option(
        default="JKS", importance=MEDIUM, doc="The format of the trust store: JKS, PKCS12 or PEM."
    )
    ssl_truststore_location: str | None = option(
        default=None, importance=HIGH, doc="The file with the certificates to trust."
    )
    ssl_truststore_password: Password | None = option(default=None, importance=HIGH, doc="Opens the trust store.")
    ssl_keymanager_algorithm: str = option(default="SunX509", importance=LOW, doc="A Java algorithm; without effect.")
    ssl_trustmanager_algorithm: str = option(default="PKIX", importance=LOW, doc="A Java algorithm; without effect.")
    ssl_endpoint_identification_algorithm: str = option(
        default="https",
        importance=LOW,
        doc="How the name in the broker's certificate is checked; empty for not at all.",
    )
    ssl_secure_random_implementation: str | None = option(
        default=None, importance=LOW, doc="A Java generator of random numbers; without effect."
    )
    ssl_engine_factory_class: PluginName | None = option(
        default=None, importance=LOW, doc="A Java class; it cannot run here."
    )
    sasl_kerberos_service_name: str | None = option(
        default=None, importance=MEDIUM, doc="The principal name that the brokers run under."
    )
    sasl_kerberos_kinit_cmd: str = option(
        default="/usr/bin/kinit", importance=LOW, doc="The program that gets tickets."
    )
    sasl_kerberos_ticket_renew_window_factor: float = option(
        default=0.8, importance=LOW, doc="The part of a ticket's life after which Java renews it; without effect."
    )
    sasl_kerberos_ticket_renew_jitter: float = option(
        default=0.05, importance=LOW, doc="How much Java varies that; without effect."
    )
    sasl_kerberos_min_time_before_relogin: Long = option(
        default=60_000, importance=LOW, doc="Milliseconds between two renewals of a ticket, at least."
    )
    sasl_login_refresh_window_factor: float = option(
        default=0.8,
        importance=LOW,
        validator=between(0.5, 1.0),
        doc="The part of a token's life after which Java renews it; without effect.",
    )
    sasl_login_refresh_window_jitter: float = option(
        default=0.05, importance=LOW, validator=between(0.0, 0.25), doc="How much Java varies that; without effect."
    )
    sasl_login_refresh_min_period_seconds: Short = option(
        default=60,
        importance=LOW,
        validator=between(0, 900),
        doc="Seconds that Java waits before it renews a token; without effect.",
    )
    sasl_login_refresh_buffer_seconds: Short = option(
        default=300,
        importance=LOW,
        validator=between(0, 3600),
        doc="Seconds before the end of a token within which Java renews it; without effect.",
    )
    sasl_mechanism: str = option(default="GSSAPI", importance=MEDIUM, doc="How the client logs in.")
    sasl_jaas_config: Password | None = option(
        default=None, importance=MEDIUM, doc="The login: a line for the login module of the mechanism."
    )
    sasl_client_callback_handler_class: PluginName | None = option(
        default=None, importance=MEDIUM, doc="A Java class; it cannot run here."
    )
    sasl_login_callback_handler_class: PluginName | None = option(
        default=None, importance=MEDIUM, doc="A Java class; only that of OAUTHBEARER has a counterpart here."
    )
    sasl_login_class: PluginName | None = option(
        default=None, importance=MEDIUM, doc="A Java class; it cannot run here."
    )
    sasl_login_connect_timeout_ms: int | None = option(
        default=None, importance=LOW, doc="Milliseconds to connect to the token endpoint; without effect."
    )
    sasl_login_read_timeout_ms: int | None = option(
        default=None, importance=LOW, doc="Milliseconds to wait for the token endpoint; without effect."
    )
    sasl_login_retry_backoff_max_ms: Long = option(
        default=10_000, importance=LOW, doc="The longest wait before the token endpoint is asked again; without effect."
    )
    sasl_login_retry_backoff_ms: Long = option(
        default=100, importance=LOW, doc="The first wait before the token endpoint is asked again; without effect."
    )
    sasl_oauthbearer_jwt_retriever_class: PluginName = option(
        default="org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        importance=MEDIUM,
        doc="How a token is got: by client credentials or by a signed assertion.",
    )
    sasl_oauthbearer_jwt_validator_class: PluginName = option(
        default="org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        importance=MEDIUM,
        doc="How Java checks a token it got; without effect, the broker checks it.",
    )
    sasl_oauthbearer_scope: str | None = option(default=None, importance=MEDIUM, doc="The scope to ask for.")
    sasl_oauthbearer_client_credentials_client_id: str | None = option(
        default=None, importance=MEDIUM, doc="The id of the client at the token endpoint."
    )
    sasl_oauthbearer_client_credentials_client_secret: Password | None = option(
        default=None, importance=MEDIUM, doc="Its secret."
    )
    sasl_oauthbearer_assertion_algorithm: str = option(
        default="RS256",
        importance=MEDIUM,
        validator=one_of("ES256", "RS256", ignore_case=True),
        doc="How assertions are signed.",
    )
    sasl_oauthbearer_assertion_claim_aud: str | None = option(
        default=None, importance=MEDIUM, doc="The audience that an assertion names."
    )
    sasl_oauthbearer_assertion_claim_exp_seconds: int = option(
        default=300, importance=LOW, validator=between(0, 86400), doc="Seconds that an assertion is valid."
    )
    sasl_oauthbearer_assertion_claim_iss: str | None = option(
        default=None, importance=MEDIUM, doc="The issuer that an assertion names."
    )
    sasl_oauthbearer_assertion_claim_jti_include: bool = option(
        default=False, importance=MEDIUM, doc="Whether each assertion has an id."
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = option(
        default=60,
        importance=LOW,
        validator=between(0, 3600),
        doc="Seconds before now from which an assertion is valid.",
    )
    sasl_oauthbearer_assertion_claim_sub: str | None = option(
        default=None, importance=MEDIUM, doc="The subject that an assertion names."
    )
    sasl_oauthbearer_assertion_file: str | None = option(
        default=None, importance=MEDIUM, doc="A file with an assertion that somebody else makes."
    )
    sasl_oauthbearer_assertion_private_key_file: str | None = option(
        default=None, importance=MEDIUM, doc="A file with the key that signs assertions."
    )
    sasl_oauthbearer_assertion_private_key_passphrase: Password | None = option(
        default=None, importance=MEDIUM, doc="Opens that key."
    )
    sasl_oauthbearer_assertion_template_file: str | None = option(
        default=None, importance=MEDIUM, doc="A file with more claims for assertions."
    )
    sasl_oauthbearer_scope_claim_name: str = option(
        default="scope",
        importance=LOW,
        doc="The claim of a token that has the scope; without effect, the broker reads it.",
    )
    sasl_oauthbearer_sub_claim_name: str = option(
        default="sub",
        importance=LOW,
        doc="The claim of a token that has the subject; without effect, the broker reads it.",
    )
    sasl_oauthbearer_token_endpoint_url: str | None = option(
        default=None, importance=MEDIUM, doc="Where tokens are got."
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = option(
        default=None, importance=MEDIUM, doc="Where brokers get keys to check tokens; without effect in a client."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: Long = option(
        default=3_600_000, importance=LOW, doc="How often they do; without effect in a client."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: Long = option(
        default=10_000, importance=LOW, doc="Their longest wait before asking again; without effect in a client."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: Long = option(
        default=100, importance=LOW, doc="Their first wait before asking again; without effect in a client."
    )
    sasl_oauthbearer_clock_skew_seconds: int = option(
        default=30, importance=LOW, doc="By how much a broker's clock may differ; without effect in a client."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = option(
        default=(), importance=HIGH, doc="The audiences that brokers accept; without effect in a client."
    )
    sasl_oauthbearer_expected_issuer: str | None = option(
        default=None, importance=HIGH, doc="The issuer that brokers accept; without effect in a client."
    )
    sasl_oauthbearer_header_urlencode: bool = option(
        default=False, importance=LOW, doc="Whether id and secret are encoded for URLs when they are sent."
    )
