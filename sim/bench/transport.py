"""How many messages per second the SimPy transport carries, against the obvious way to write it.

The peer is the pipeline of SimPy's tutorials: a Store per broker, a process that takes one
message at a time, and a process per message in flight. Both pass the same tokens around the same ring with
the same latencies and service times, and must agree on how many messages were processed when.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import simpy

from broker.transport import Clock, Link, Server
from sim.bench import Progress, Row, verdict
from sim.bench.timing import timed

BROKERS = 50
TOKENS = 200  # messages under way at the same time
LATENCY = 1.0
SERVICE = 0.001
REPEATS = 3
TARGET = 4.0  # times the naive pipeline
NAIVE, OURS = "naive store and process", "coverlay transport"


@dataclass(slots=True)
class Token:
    hops_left: int
    size: int = 64


def naive(tokens: int, hops: int, service: float) -> tuple[int, float]:
    """Messages processed and the simulated time when the last one was."""
    env = Clock()
    inboxes = [simpy.Store(env) for _ in range(BROKERS)]
    processed = 0

    def travel(token: Token, target: int) -> Iterator[Any]:
        yield env.timeout(LATENCY)
        yield inboxes[target].put(token)

    def broker(number: int) -> Generator[Any, Any, None]:
        nonlocal processed
        while True:
            token: Any = yield inboxes[number].get()
            if service:
                yield env.timeout(service)
            processed += 1
            if token.hops_left:
                env.process(travel(Token(token.hops_left - 1), (number + 1) % BROKERS))

    for number in range(BROKERS):
        env.process(broker(number))
    for token in range(tokens):
        inboxes[token % BROKERS].put(Token(hops))
    env.run()
    return processed, env.now


def ours(tokens: int, hops: int, service: float) -> tuple[int, float]:
    env = Clock()
    links: list[Link[Token]] = []
    processed = 0

    def begin(token: Token) -> float:
        nonlocal processed
        processed += 1
        return service

    def end_at(number: int) -> Callable[[Token], None]:
        def end(token: Token) -> None:
            if token.hops_left:
                links[number].send(Token(token.hops_left - 1))

        return end

    servers: list[Server[Token]] = [Server(env, begin, end_at(number), not service) for number in range(BROKERS)]
    links.extend(Link(env, servers[(number + 1) % BROKERS].arrive, LATENCY) for number in range(BROKERS))
    for token in range(tokens):
        servers[token % BROKERS].arrive(Token(hops))
    env.run()
    return processed, env.now


def transport(quick: bool, progress: Progress) -> list[Row]:
    hops = 100 if quick else 500
    rows: list[Row] = []
    for case, service in (("no service time", 0.0), ("with service time", SERVICE)):
        best: dict[str, float] = {}
        counts = {}
        for _ in range(REPEATS):  # interleaved, so that a busy machine slows both
            for name, pipeline in ((NAIVE, naive), (OURS, ours)):
                progress(f"{case}, {name}")
                counts[name], seconds = timed(partial(pipeline, TOKENS, hops, service))
                best[name] = min(best.get(name, seconds), seconds)
        for name, seconds in best.items():
            messages, finished = counts[name]
            row = {"case": case, "engine": name, "messages": messages, "simulated_ms": finished}
            ratio = best[NAIVE] / seconds
            rows.append(row | {"messages_per_s": round(messages / seconds), "ratio": ratio})
    return rows


def verdicts(rows: list[Row]) -> list[Row]:
    target, judged = f"at least {TARGET:g}× the naive pipeline", [row for row in rows if row["engine"] == OURS]
    return [verdict(f"{row['case']}: {target}", f"{row['ratio']:.1f}×", row["ratio"] >= TARGET) for row in judged]
