"""The security settings that every mirror connector accepts at its top level, as MirrorMaker 2 does."""

from __future__ import annotations

from connect.config import HIGH, LOW, MEDIUM, Config, Long, Password, PluginName, Short, between, one_of, option

__all__ = ["SecurityConfig"]


class SecurityConfig(Config):
    """Security settings, effective only below ``source.cluster.`` and ``target.cluster.``, and checked here."""

    security_protocol: str = option(
        default="PLAINTEXT",
        importance=MEDIUM,
        validator=one_of("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", ignore_case=True),
        doc="Protocol used to connect to brokers.",
    )
    ssl_protocol: str = option(
        default="TLSv1.3",
        importance=MEDIUM,
        doc="TLS version. OpenSSL negotiates the newest one that both sides support.",
    )
    ssl_provider: str | None = option(
        default=None, importance=MEDIUM, doc="Java TLS provider. Has no effect: OpenSSL is used."
    )
    ssl_cipher_suites: tuple[str, ...] = option(
        default=(), importance=LOW, doc="Cipher suites to offer. Empty offers the defaults."
    )
    ssl_enabled_protocols: tuple[str, ...] = option(
        default=("TLSv1.2", "TLSv1.3"), importance=MEDIUM, doc="TLS versions to offer."
    )
    ssl_keystore_type: str = option(
        default="JKS", importance=MEDIUM, doc="The format of the key store: JKS, PKCS12 or PEM."
    )
    ssl_keystore_location: str | None = option(
        default=None, importance=HIGH, doc="The file with the client's key and certificates."
    )
    ssl_keystore_password: Password | None = option(default=None, importance=HIGH, doc="Password of the key store.")
    ssl_key_password: Password | None = option(default=None, importance=HIGH, doc="Password of the private key.")
    ssl_keystore_key: Password | None = option(
        default=None, importance=HIGH, doc="Private key of the client, as PEM text instead of a file."
    )
    ssl_keystore_certificate_chain: Password | None = option(
        default=None, importance=HIGH, doc="Certificate chain of the client, as PEM text instead of a file."
    )
    ssl_truststore_certificates: Password | None = option(
        default=None, importance=HIGH, doc="Certificates to trust, as PEM text instead of a file."
    )
    ssl_truststore_type: str = option(
        default="JKS", importance=MEDIUM, doc="The format of the trust store: JKS, PKCS12 or PEM."
    )
    ssl_truststore_location: str | None = option(
        default=None, importance=HIGH, doc="The file with the certificates to trust."
    )
    ssl_truststore_password: Password | None = option(default=None, importance=HIGH, doc="Password of the trust store.")
    ssl_keymanager_algorithm: str = option(default="SunX509", importance=LOW, doc="A Java algorithm; without effect.")
    ssl_trustmanager_algorithm: str = option(default="PKIX", importance=LOW, doc="A Java algorithm; without effect.")
    ssl_endpoint_identification_algorithm: str = option(
        default="https",
        importance=LOW,
        doc="How the name in the broker's certificate is checked. Empty disables the check.",
    )
    ssl_secure_random_implementation: str | None = option(
        default=None, importance=LOW, doc="Java random number generator. Has no effect."
    )
    ssl_engine_factory_class: PluginName | None = option(
        default=None, importance=LOW, doc="A Java class; it cannot run here."
    )
    sasl_kerberos_service_name: str | None = option(
        default=None, importance=MEDIUM, doc="Kerberos principal name of the brokers."
    )
    sasl_kerberos_kinit_cmd: str = option(
        default="/usr/bin/kinit", importance=LOW, doc="Program that gets Kerberos tickets."
    )
    sasl_kerberos_ticket_renew_window_factor: float = option(
        default=0.8, importance=LOW, doc="Part of a ticket's lifetime after which Java renews it. Has no effect."
    )
    sasl_kerberos_ticket_renew_jitter: float = option(
        default=0.05, importance=LOW, doc="How much Java varies that; without effect."
    )
    sasl_kerberos_min_time_before_relogin: Long = option(
        default=60_000, importance=LOW, doc="Least milliseconds between two renewals of a ticket."
    )
    sasl_login_refresh_window_factor: float = option(
        default=0.8,
        importance=LOW,
        validator=between(0.5, 1.0),
        doc="Part of a token's lifetime after which Java renews it. Has no effect.",
    )
    sasl_login_refresh_window_jitter: float = option(
        default=0.05, importance=LOW, validator=between(0.0, 0.25), doc="How much Java varies that; without effect."
    )
    sasl_login_refresh_min_period_seconds: Short = option(
        default=60,
        importance=LOW,
        validator=between(0, 900),
        doc="Seconds that Java waits before it renews a token. Has no effect.",
    )
    sasl_login_refresh_buffer_seconds: Short = option(
        default=300,
        importance=LOW,
        validator=between(0, 3600),
        doc="Seconds before a token expires within which Java renews it. Has no effect.",
    )
    sasl_mechanism: str = option(
        default="GSSAPI", importance=MEDIUM, doc="SASL mechanism with which the client authenticates."
    )
    sasl_jaas_config: Password | None = option(
        default=None, importance=MEDIUM, doc="JAAS configuration: a line for the login module of the mechanism."
    )
    sasl_client_callback_handler_class: PluginName | None = option(
        default=None, importance=MEDIUM, doc="A Java class; it cannot run here."
    )
    sasl_login_callback_handler_class: PluginName | None = option(
        default=None, importance=MEDIUM, doc="Java class. Only the one of OAUTHBEARER has an equivalent here."
    )
    sasl_login_class: PluginName | None = option(
        default=None, importance=MEDIUM, doc="A Java class; it cannot run here."
    )
    sasl_login_connect_timeout_ms: int | None = option(
        default=None, importance=LOW, doc="Milliseconds to connect to the token endpoint. Has no effect."
    )
    sasl_login_read_timeout_ms: int | None = option(
        default=None, importance=LOW, doc="Milliseconds to wait for the token endpoint. Has no effect."
    )
    sasl_login_retry_backoff_max_ms: Long = option(
        default=10_000, importance=LOW, doc="Longest wait before the token endpoint is asked again. Has no effect."
    )
    sasl_login_retry_backoff_ms: Long = option(
        default=100, importance=LOW, doc="First wait before the token endpoint is asked again. Has no effect."
    )
    sasl_oauthbearer_jwt_retriever_class: PluginName = option(
        default="org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        importance=MEDIUM,
        doc="How a token is requested: with client credentials or with a signed assertion.",
    )
    sasl_oauthbearer_jwt_validator_class: PluginName = option(
        default="org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        importance=MEDIUM,
        doc="Java class that checks a token. Has no effect: the broker checks it.",
    )
    sasl_oauthbearer_scope: str | None = option(default=None, importance=MEDIUM, doc="The scope to ask for.")
    sasl_oauthbearer_client_credentials_client_id: str | None = option(
        default=None, importance=MEDIUM, doc="The id of the client at the token endpoint."
    )
    sasl_oauthbearer_client_credentials_client_secret: Password | None = option(
        default=None, importance=MEDIUM, doc="Secret of the client at the token endpoint."
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
