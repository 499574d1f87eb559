"""The HTTP client: credentials, TLS with Java's keys, proxies, checked addresses and redirects, bounded answers.

    client = HttpClient(ClientSettings(config.host_rules, config.tls_context()), bearer(token))
    response = client.send(Request("GET", url))

Only :mod:`connect.kits.http.transport` imports requests and urllib3, and only a client imports that.
"""
