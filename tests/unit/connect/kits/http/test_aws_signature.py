"""Signatures of requests to Amazon's services."""

from __future__ import annotations

import re

from connect.kits.http.aws_signature import AwsAccount, aws_signature
from connect.kits.http.messages import Request


def test_a_request_is_signed_with_its_body() -> None:
    sign = aws_signature(AwsAccount("eu-central-1", "es", "AKIDEXAMPLE", "s3cret"))
    request = Request(
        "POST", "https://search.example/_bulk?filter_path=errors", {"Content-Type": "text/plain"}, b"{}\n"
    )
    headers = sign(request).headers
    assert headers["Content-Type"] == "text/plain"
    assert re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-central-1/es/aws4_request, "
        r"SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*, Signature=[0-9a-f]{64}",
        headers["Authorization"],
    )
    assert headers["x-amz-content-sha256"] == "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"
    other = sign(Request("POST", request.url, request.headers, b"[]\n")).headers
    assert other["Authorization"] != headers["Authorization"]
    assert "s3cret" not in repr(AwsAccount("r", "es", "a", "s3cret"))
