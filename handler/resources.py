"""What one process shares: settings → catalogue → store → rounds → endpoint.

Each part is made when it is first asked for, and kept. Nothing is opened by an import; a list or a
refusal reaches neither database nor keys.
"""

import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from core.catalog import Catalog
from core.methods import Endpoint
from handler import __version__, env
from handler.challenge import Challenge
from handler.cors import Cors
from handler.doors import Doors
from handler.identity import Identity, challenging, choose, published
from handler.resource_metadata import ResourceMetadata
from handler.settings import SECRET, Settings, SettingsError
from handler.turns import Turns

if TYPE_CHECKING:
    from core.request_state import KeyRing
    from core.rounds import Rounds
    from core.store import Store
    from handler.secrets_manager import Secrets

T = TypeVar("T")


class Resources:
    """The parts of a process.

    Args:
        left: how much longer the process can live, where its platform ends it.
    """

    def __init__(self, settings: Settings, *, left: Callable[[], timedelta] | None = None) -> None:
        self.settings = settings
        self._left = left
        self._environ = dict(os.environ)  # as it is before a project adds to it
        self._rounds: dict[str, Rounds] = {}

    @cached_property
    def catalog(self) -> Catalog:
        """The agents' catalogue, with the variables that its file gives them in place.

        Raises:
            CatalogError: with everything that is wrong with the file.
        """
        catalog = Catalog.read(self.settings.config)
        for name, value in env.read(catalog.project).items():
            os.environ.setdefault(name, value)  # what the deployment sets wins over the file
        return catalog

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a developer should know about langgraph.json."""
        return (*self.catalog.warnings, *env.warnings(env.read(self.catalog.project)))

    @cached_property
    def store(self) -> "Store":
        """The database. It connects when a statement needs it, with the newest secret.

        Raises:
            SettingsError: where it is, is said in no way that can be read.
        """
        from core.store import Store  # a list needs no database
        from handler.database import conninfo

        given = self.settings.database_url
        assert given is not None, "checked when the settings were read"

        def newest() -> str:
            from handler.secrets_manager import RECENT

            return conninfo(self._secrets.value(given, fresh=RECENT), self._environ)

        return Store(
            newest if SECRET.fullmatch(given) else conninfo(given, self._environ),
            schema=self.settings.database_schema,
            max_size=self.settings.database_pool_size,
        )

    async def rounds(self) -> "Rounds":
        """What runs calls; another one once the keys have changed that it was made of.

        Raises:
            SettingsError: the keys are a secret that can't be read, or are unfit.
        """
        keys = await self._value(",".join(self.settings.request_state_keys))
        if keys not in self._rounds:
            self._rounds[keys] = self._signed_with(keys)
        return self._rounds[keys]

    def _signed_with(self, keys: str) -> "Rounds":
        from core.rounds import Rounds

        return Rounds(
            catalog=self.catalog,
            store=lambda: self.store,
            keys=_key_ring(keys),
            audience=self.settings.public_url,
            left=self._left,
            largest=self.settings.max_result_bytes,
        )

    @cached_property
    def identity(self) -> Identity | None:
        """Who is calling is asked here; None: everybody may call.

        Raises:
            SettingsError, CatalogError: it is half made.
        """
        return choose(self.settings, self.catalog)

    @cached_property
    def challenge(self) -> Challenge:
        """How clients are told to say who they are."""
        return challenging(self.settings, self.catalog)

    @cached_property
    def metadata(self) -> ResourceMetadata | None:
        """What a client is told of where to log in."""
        return published(self.settings, self.catalog)

    @cached_property
    def endpoint(self) -> Endpoint:
        """What answers requests."""
        return Endpoint(
            catalog=self.catalog,
            rounds=self.rounds,
            name=self.settings.server_name,
            version=__version__,
            ttl_ms=self.settings.list_ttl_ms,
            private=self.identity is not None,
        )

    @cached_property
    def doors(self) -> Doors:
        """Who may call, by the settings alone; `serve` narrows them."""
        return Doors(hosts=self.settings.allowed_hosts, origins=self.settings.allowed_origins)

    @cached_property
    def cors(self) -> Cors:
        """What browsers are told."""
        return Cors(on=self.settings.allowed_origins is not None)

    @cached_property
    def turns(self) -> Turns:
        """The bound on runs at a time."""
        return Turns(self.settings.max_concurrent_runs)

    @cached_property
    def _secrets(self) -> "Secrets":
        from handler.secrets_manager import Secrets  # most processes have no such secret

        return Secrets(self._environ)

    async def _value(self, setting: str) -> str:
        """A setting's value, where it may be a secret's ARN."""
        return await self._secrets.read(setting) if SECRET.fullmatch(setting) else setting

    async def close(self) -> None:
        """Ends what is at work, and closes what was opened."""
        for each in self._rounds.values():
            await each.close()
        if "store" in self.__dict__:
            await self.store.close()


async def with_store(settings: Settings, work: "Callable[[Store], Awaitable[T]]") -> T:
    """What comes of work that needs the database alone, which is opened for it and closed."""
    resources = Resources(settings)
    try:
        return await work(resources.store)
    finally:
        await resources.close()


def _key_ring(keys: str) -> "KeyRing":
    from core.request_state import KeyRing  # a list needs no keys

    try:
        return KeyRing([key.strip() for key in keys.split(",")])
    except ValueError as error:
        raise SettingsError([f"REQUEST_STATE_KEYS: {error}"]) from error
