"""Credentials of AWS profiles for obstore, which reads none: by botocore's own chain."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any, Final

# A chain that renews its credentials is asked again in time.
_ASKED_AGAIN: Final = timedelta(minutes=10)


class ProfileCredentials:
    """Renewed credentials of a profile: keys, a role, ``credential_process``, ``aws sso login``.

    Call it for obstore's mapping of one credential. ``region`` is the profile's, or None.
    """

    def __init__(self, session: Any, credentials: Any) -> None:
        self._credentials = credentials
        self.region: str | None = session.get_config_variable("region")

    def __call__(self) -> Mapping[str, Any]:
        """The credential to use now. Raises what botocore does."""
        found = self._credentials.get_frozen_credentials()
        return {
            "access_key_id": found.access_key,
            "secret_access_key": found.secret_key,
            "token": found.token,
            "expires_at": datetime.now(UTC) + _ASKED_AGAIN,
        }


def profile_credentials(name: str | None) -> ProfileCredentials | None:
    """Those of the profile ``name``, else of AWS_PROFILE or the default one.

    None without botocore, or where its chain finds nothing. Raises what botocore does for a
    profile that is not there, and for a login that is over, before anything is asked of a store.
    """
    if find_spec("botocore") is None:
        return None
    from botocore.session import Session

    session = Session(profile=name)
    credentials = session.get_credentials()
    if credentials is None:
        return None
    found = ProfileCredentials(session, credentials)
    found()
    return found
