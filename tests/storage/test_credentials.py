"""Secrets are masked wherever they may be shown."""

from __future__ import annotations

from icesql.storage.credentials import masked, redact


def test_secret_properties_are_masked_and_others_are_shown() -> None:
    shown = masked(
        {
            "s3.secret-access-key": "SSSS",
            "s3.session-token": "TTTT",
            "credential": "id:secret",
            "adls.sas-token.acc.blob.core.windows.net": "sig",
            "s3.endpoint": "http://localhost:9000",
            "uri": "postgresql://me:hunter2@db/iceberg",
        }
    )
    assert shown["s3.endpoint"] == "http://localhost:9000"
    assert shown["uri"] == "postgresql://me:***@db/iceberg"
    assert "SSSS" not in str(shown)
    assert "TTTT" not in str(shown)
    assert "id:secret" not in str(shown)


def test_secrets_in_foreign_messages_are_replaced() -> None:
    text = redact(
        "403 for key wJalrXUtnFEMI at redis://u:pw@h", {"s3.secret-access-key": "wJalrXUtnFEMI"}
    )
    assert text == "403 for key *** at redis://u:***@h"
