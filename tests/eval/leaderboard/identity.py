"""A sign-in provider on loopback that says yes to everybody: OpenID Connect as far as a Space uses it."""

import time
from urllib.parse import urlencode

from aiohttp import web

from ...loopback import LoopbackServer

CLIENT, SECRET = "board-client", "board-secret-0123456789-0123456789"


class Provider(LoopbackServer):
    """Everybody who comes is `user`, a member of `orgs`."""

    def __init__(self, user: str, *orgs: str) -> None:
        from joserfc.jwk import RSAKey

        super().__init__(lambda body: "")
        self.user, self.orgs = user, orgs
        self.pair = RSAKey.generate_key(2048, {"kid": "test"})
        self.nonce = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/.well-known/openid-configuration", self._configuration)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_get("/jwks", self._keys)
        app.router.add_post("/token", self._token)

    async def _configuration(self, request: web.Request) -> web.Response:
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
        return web.json_response(
            {
                "issuer": self.url,
                "id_token_signing_alg_values_supported": ["RS256"],
                "response_types_supported": ["code"],
                **{name: f"{self.url}/{place}" for name, place in places.items()},
            }
        )

    async def _authorize(self, request: web.Request) -> web.Response:
        self.nonce = request.query.get("nonce", "")
        code = urlencode({"code": "code", "state": request.query["state"]})
        raise web.HTTPFound(f"{request.query['redirect_uri']}&{code}")

    async def _keys(self, request: web.Request) -> web.Response:
        return web.json_response({"keys": [self.pair.as_dict(private=False)]})

    async def _token(self, request: web.Request) -> web.Response:
        from joserfc import jwt

        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": "1",
            "iat": now,
            "exp": now + 600,
            "nonce": self.nonce,
            "name": self.user,
            "preferred_username": self.user,
            "profile": f"{self.url}/{self.user}",
            "picture": f"{self.url}/picture",
            "orgs": [{"preferred_username": org} for org in self.orgs],
        }
        return web.json_response(
            {
                "access_token": "oauth_access_token_of_the_user",
                "token_type": "bearer",
                "expires_in": 600,
                "scope": "openid profile",
                "id_token": jwt.encode({"alg": "RS256", "kid": "test"}, claims, self.pair),
            }
        )
