"""A stand-in for Modal on this machine, which the unmodified client talks to: containers are processes.

``python standin.py`` prints one line of JSON, with the address for clients and the one to steer it by, and serves
until it is told to end or the process that started it has. It speaks the protocol of the installed client
(``modal_proto``); a container is the client's own entrypoint, in this environment, whatever its image says.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import shutil
import signal

from aiohttp import web
from standin_containers import stop_what_nobody_listens_to
from standin_http import http_app
from standin_keeper import PR_SET_PDEATHSIG
from standin_listening import Listener
from standin_state import Cloud


class StandIn:
    """The service: what it knows, and where it listens."""

    def __init__(self, port: int, dead_client_after: float, most_containers: int) -> None:
        self.listener = Listener(port)
        self.http = ""
        self.cloud: Cloud
        self._limits = (dead_client_after, most_containers)

    async def start(self) -> web.AppRunner:
        runner = web.AppRunner(http_app(self))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.http = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await self._begin()
        return runner

    async def _begin(self) -> None:
        self.cloud = Cloud(*self._limits)
        self.cloud.url, self.cloud.http = f"http://127.0.0.1:{self.listener.port}", self.http
        self.cloud.later(stop_what_nobody_listens_to(self.cloud))
        await self.listener.open(self.cloud)

    async def reset(self) -> None:
        """Ends everything, and begins again with an empty account at the same address."""
        await self.close()
        await self._begin()

    async def close(self) -> None:
        await self.listener.close(self.cloud)
        await self.cloud.close()
        shutil.rmtree(self.cloud.folder, ignore_errors=True)


async def serve(standin: StandIn) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = await standin.start()
    print(json.dumps({"server": standin.cloud.url, "admin": standin.http}), flush=True)
    await ended.wait()
    await standin.close()
    await runner.cleanup()


async def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for Modal on this machine.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dead-client-after", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--most-containers", type=int, default=8, metavar="N")
    parser.add_argument("--with", type=int, dest="starter", metavar="PID", help="end with that parent")
    options = parser.parse_args()
    if options.starter:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != options.starter:
            return
    await serve(StandIn(options.port, options.dead_client_after, options.most_containers))


if __name__ == "__main__":
    asyncio.run(main())
