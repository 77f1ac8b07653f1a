"""The least that a FastAPI application on Lambda can be: one route that answers a constant.

    python -m benchmarks.contestants.trivial

answers one event in this process, which ends then.
"""

import json
import sys
from typing import Any

from fastapi import FastAPI
from mangum import Mangum

app = FastAPI()


@app.post("/mcp")
async def answer() -> dict[str, str]:
    return {"status": "ok"}


if __name__ == "__main__":
    handle: Any = Mangum(app, lifespan="off")
    print(handle(json.load(sys.stdin), None)["statusCode"])
