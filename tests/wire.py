"""A proxy in front of PostgreSQL that counts round trips as they go over the wire."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo


@dataclass(slots=True)
class RoundTrips:
    """How often the client spoke after the server had: each time is one wait for the network."""

    conninfo: str
    count: int = 0

    def taken(self) -> int:
        """The round trips since this was last asked."""
        count, self.count = self.count, 0
        return count


@asynccontextmanager
async def counting(database: str, folder: Path) -> AsyncGenerator[RoundTrips]:
    """A proxy on a socket in a folder of its own, which must have a short path."""
    given = conninfo_to_dict(database)
    target = f"{given['host']}/.s.PGSQL.{given.get('port', 5432)}"
    trips = RoundTrips(make_conninfo(database, host=str(folder), port=5432))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(target)
        last: Literal["client", "server"] = "server"

        async def from_client() -> None:
            nonlocal last
            while data := await reader.read(1 << 20):
                if last == "server":
                    trips.count += 1
                last = "client"
                server_writer.write(data)
                await server_writer.drain()
            server_writer.close()

        async def from_server() -> None:
            nonlocal last
            while data := await server_reader.read(1 << 20):
                last = "server"
                writer.write(data)
                await writer.drain()
            writer.close()

        with suppress(ConnectionError):
            await asyncio.gather(from_client(), from_server())

    server = await asyncio.start_unix_server(serve, str(folder / ".s.PGSQL.5432"))
    try:
        yield trips
    finally:
        server.close()
