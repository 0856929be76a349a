"""A sign-in provider on loopback that says yes to everybody: OpenID Connect as far as a Space uses it."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT, SECRET = "board-client", "board-secret-0123456789-0123456789"


@contextmanager
def provider(user: str, *orgs: str) -> Iterator[str]:
    """Serves the provider; everybody who comes is `user`, a member of `orgs`. Yields its address."""
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, {"kid": "test"})
    nonces: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Silent."""

        def _answer(self, value: Any, status: int = 200, **headers: str) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            for name, text in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/.well-known/openid-configuration":
                names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
                found = {name: f"{address}/{path}" for name, path in names.items()}
                self._answer(
                    {
                        "issuer": address,
                        "id_token_signing_alg_values_supported": ["RS256"],
                        "response_types_supported": ["code"],
                        **found,
                    }
                )
            elif parts.path == "/authorize":
                nonces["code"] = asked.get("nonce", "")
                back = f"{asked['redirect_uri']}&{urlencode({'code': 'code', 'state': asked['state']})}"
                self._answer({}, 302, Location=back)
            elif parts.path == "/jwks":
                self._answer({"keys": [key.as_dict(private=False)]})
            else:
                self._answer({}, 404)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            now = int(time.time())
            claims = {
                "iss": address,
                "aud": CLIENT,
                "sub": "1",
                "iat": now,
                "exp": now + 600,
                "nonce": nonces.get("code", ""),
                "name": user,
                "preferred_username": user,
                "profile": f"{address}/{user}",
                "picture": f"{address}/picture",
                "orgs": [{"preferred_username": org} for org in orgs],
            }
            token = jwt.encode({"alg": "RS256", "kid": "test"}, claims, key)
            self._answer(
                {
                    "access_token": "oauth_access_token_of_the_user",
                    "token_type": "bearer",
                    "expires_in": 600,
                    "scope": "openid profile",
                    "id_token": token,
                }
            )

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
