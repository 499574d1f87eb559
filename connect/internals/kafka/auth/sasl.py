"""Translation of Java's SASL settings to librdkafka's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping

from connect.config.errors import ConfigRuleError
from connect.config.password import HIDDEN
from connect.config.url import http_url, shown_url
from connect.errors import ConfigError
from connect.internals.kafka.auth.jaas import JAAS_CONFIG, LoginModule, parse_jaas_config
from connect.internals.kafka.settings.client import PropertyValue
from connect.internals.kafka.settings.conversion import boolean, integer
from connect.internals.tls.pem import normalized_pem

__all__ = ["LOGIN_MODULES", "check_kerberos", "sasl_properties", "uses_sasl"]

_MECHANISM = "sasl.mechanism"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"

_USERNAME_MODULES = frozenset(("PlainLoginModule", "ScramLoginModule"))

_IN_COMMANDS = {
    "sasl.kerberos.principal": re.compile(r"[\w.@/:+=,-]*"),
    "sasl.kerberos.keytab": re.compile(r"[\w.@/:+=, -]*"),
}

_MODULE_OF_MECHANISM = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}

LOGIN_MODULES = frozenset(_MODULE_OF_MECHANISM.values())
"""The Java login modules that are known here."""

_RETRIEVERS = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "JwtBearerJwtRetriever")
_OAUTH_PACKAGE = "org.apache.kafka.common.security.oauthbearer."

_JWT_BEARER_KEYS = {
    "sasl.oauthbearer.assertion.algorithm": "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud": "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds": "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss": "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include": "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds": "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub": "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file": "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file": "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase": "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
}


def uses_sasl(java: Mapping[str, str]) -> bool:
    """Return whether these settings enable SASL."""
    return java.get("security.protocol", "").strip().upper().startswith("SASL_")


def sasl_properties(java: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's ``sasl.*`` for Java's; empty unless ``security.protocol`` enables SASL."""
    if not uses_sasl(java):
        return {}
    mechanism = java.get(_MECHANISM, "").strip() or "GSSAPI"
    convert = _CONVERSIONS.get(mechanism)
    if convert is None:
        raise ConfigError(_MECHANISM, mechanism, f"String must be one of: {', '.join(_CONVERSIONS)}. Use one of these")
    module = parse_jaas_config(java[JAAS_CONFIG]) if java.get(JAAS_CONFIG, "").strip() else None
    if module is not None:
        _check_module(module, mechanism)
    return {"sasl.mechanisms": mechanism} | convert(java, module)


def check_kerberos(properties: Mapping[str, PropertyValue]) -> None:
    """Refuse a principal or keytab that is more than one word in the shell command that librdkafka runs."""
    for name, pattern in _IN_COMMANDS.items():
        if name in properties and not pattern.fullmatch(str(properties[name])):
            raise ConfigRuleError(
                f"Configuration {name} has characters that mean something to a shell: use only letters, digits "
                "and . _ - @ / : + = ,",
                name,
            )


def _check_module(module: LoginModule, mechanism: str) -> None:
    wanted = _MODULE_OF_MECHANISM[mechanism]
    fitting = _USERNAME_MODULES if mechanism.startswith(("PLAIN", "SCRAM")) else {wanted.rpartition(".")[2]}
    if module.simple_name in fitting:
        return
    owners = [name for name, known in _MODULE_OF_MECHANISM.items() if known == module.class_name]
    remedy = f", or set {_MECHANISM}={owners[0]}" if owners else ""
    raise ConfigError(
        JAAS_CONFIG,
        HIDDEN,
        f"The login module does not fit {_MECHANISM}={mechanism}: name {wanted}{remedy}",
    )


def _username_properties(java: Mapping[str, str], module: LoginModule | None) -> dict[str, str]:
    if module is None:
        if java.get("sasl.username") and "sasl.password" in java:
            return {}
        raise _required(JAAS_CONFIG, java)
    if module.options.get("tokenauth", "").lower() == "true":
        raise ConfigError(
            JAAS_CONFIG,
            HIDDEN,
            "Delegation tokens (tokenauth=true) are not supported: give a user's username and password",
        )
    missing = [option for option in ("username", "password") if option not in module.options]
    if missing:
        raise ConfigError(JAAS_CONFIG, HIDDEN, f'The option {missing[0]}="..." is missing: add it')
    return {"sasl.username": module.options["username"], "sasl.password": module.options["password"]}


def _kerberos_properties(java: Mapping[str, str], module: LoginModule | None) -> dict[str, str]:
    options = module.options if module else {}
    properties: dict[str, str] = {}
    service = java.get("sasl.kerberos.service.name", "").strip() or options.get("serviceName")
    if service:
        properties["sasl.kerberos.service.name"] = service
    for option, name in (("principal", "sasl.kerberos.principal"), ("keyTab", "sasl.kerberos.keytab")):
        if option in options:
            properties[name] = options[option]
    relogin = java.get("sasl.kerberos.min.time.before.relogin")
    if "keyTab" not in options and "sasl.kerberos.keytab" not in java:
        # Without a keytab the ticket cache is kept fresh outside of the worker.
        properties["sasl.kerberos.min.time.before.relogin"] = "0"
    elif relogin is not None:
        bounded = integer(0, 86_400_000)("sasl.kerberos.min.time.before.relogin", relogin)
        properties["sasl.kerberos.min.time.before.relogin"] = str(bounded)
    kinit = java.get("sasl.kerberos.kinit.cmd", "").strip()
    if kinit:
        properties["sasl.kerberos.kinit.cmd"] = _kinit_command(kinit)
    return properties


def _kinit_command(path: str) -> str:
    """Return the shell command that librdkafka needs, for the program named by Java's setting."""
    kinit = shlex.quote(path)
    login = '-t "%{sasl.kerberos.keytab}" -k "%{sasl.kerberos.principal}"'
    return f"{kinit} -R {login} || {kinit} {login}"


def _oauthbearer_properties(java: Mapping[str, str], module: LoginModule | None) -> dict[str, str]:
    options = module.options if module else {}
    endpoint = java.get(_ENDPOINT, "").strip()
    if endpoint:
        return _oidc_properties(java, options, endpoint)
    subject = options.get("unsecuredLoginStringClaim_sub")
    if subject is not None:
        return {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={subject}",
        }
    if "sasl.oauthbearer.method" in java or "sasl.oauthbearer.metadata.authentication.type" in java:
        return {}
    raise _required(_ENDPOINT, java)


def _oidc_properties(java: Mapping[str, str], options: Mapping[str, str], endpoint: str) -> dict[str, str]:
    try:
        url = http_url(endpoint)
    except ValueError as error:
        reason = f"Tokens come from an http:// or https:// URL only, set the identity provider's: {error}"
        raise ConfigError(_ENDPOINT, shown_url(endpoint), reason) from error
    if url.user_info is not None:
        reason = f"It has a user and a password: set {_CLIENT_ID} and {_CLIENT_SECRET} instead"
        raise ConfigError(_ENDPOINT, shown_url(endpoint), reason)
    properties = {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": endpoint}
    scope = java.get("sasl.oauthbearer.scope") or options.get("scope")
    if scope:
        properties["sasl.oauthbearer.scope"] = scope
    subject_claim = java.get("sasl.oauthbearer.sub.claim.name")
    if subject_claim:
        properties["sasl.oauthbearer.sub.claim.name"] = subject_claim
    extensions = [
        f"{name.removeprefix('extension_')}={value}" for name, value in options.items() if name.startswith("extension_")
    ]
    if extensions:
        properties["sasl.oauthbearer.extensions"] = ",".join(extensions)
    return properties | _grant_properties(java, options) | _endpoint_trust(options)


def _grant_properties(java: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    retriever = java.get(_RETRIEVER, "").strip().rpartition(".")[2]
    if retriever and java[_RETRIEVER].strip().removeprefix(_OAUTH_PACKAGE) not in _RETRIEVERS:
        reason = f"A Java class cannot run here: use one of {', '.join(_RETRIEVERS)}"
        raise ConfigError(_RETRIEVER, java[_RETRIEVER], reason)
    if retriever == "JwtBearerJwtRetriever":
        return _jwt_bearer_properties(java)
    client_id = java.get(_CLIENT_ID) or options.get("clientId") or java.get("sasl.oauthbearer.client.id")
    client_secret = (
        java.get(_CLIENT_SECRET) or options.get("clientSecret") or java.get("sasl.oauthbearer.client.secret")
    )
    if not client_id:
        raise _required(_CLIENT_ID, java)
    if not client_secret:
        raise _required(_CLIENT_SECRET, java)
    if boolean("sasl.oauthbearer.header.urlencode", java.get("sasl.oauthbearer.header.urlencode", "false")):
        raise ConfigError(
            "sasl.oauthbearer.header.urlencode",
            "true",
            "Credentials are sent without URL encoding: remove the key, and use a client secret "
            "without characters that would need it",
        )
    return {"sasl.oauthbearer.client.id": client_id, "sasl.oauthbearer.client.secret": client_secret}


def _jwt_bearer_properties(java: Mapping[str, str]) -> dict[str, str]:
    properties = {name: java[key] for key, name in _JWT_BEARER_KEYS.items() if java.get(key)}
    if not {"sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.file"} & set(java):
        raise _required("sasl.oauthbearer.assertion.private.key.file", java)
    return properties | {"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}


def _endpoint_trust(options: Mapping[str, str]) -> dict[str, str]:
    """Translate the trust store for the token endpoint, which is an option of the login module in Java."""
    if "ssl.truststore.certificates" in options:
        return {"https.ca.pem": normalized_pem(JAAS_CONFIG, options["ssl.truststore.certificates"])}
    if "ssl.truststore.location" not in options:
        return {}
    if options.get("ssl.truststore.type", "JKS").upper() != "PEM":
        raise ConfigError(
            JAAS_CONFIG,
            HIDDEN,
            'The trust store of the token endpoint must be PEM: convert it and add ssl.truststore.type="PEM"',
        )
    return {"https.ca.location": options["ssl.truststore.location"]}


def _required(key: str, java: Mapping[str, str]) -> ConfigError:
    mechanism = java.get(_MECHANISM, "").strip()
    text = f'Missing required configuration "{key}": {_MECHANISM}={mechanism} needs it, set it'
    if key == JAAS_CONFIG:
        text += f' to {_MODULE_OF_MECHANISM[mechanism]} required username="<user>" password="<password>";'
    return ConfigRuleError(text, key)


_CONVERSIONS: dict[str, Callable[[Mapping[str, str], LoginModule | None], dict[str, str]]] = {
    "GSSAPI": _kerberos_properties,
    "PLAIN": _username_properties,
    "SCRAM-SHA-256": _username_properties,
    "SCRAM-SHA-512": _username_properties,
    "OAUTHBEARER": _oauthbearer_properties,
}
