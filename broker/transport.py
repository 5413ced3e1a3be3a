"""FIFO links and single-server brokers on SimPy, with one or two timeouts per message.

A Store and a process per broker cost several events and generator switches per message. Here a link is a queue of
messages in flight and a timeout per message, and a server is a queue and, where service takes time, one more timeout.
`coverlay bench engine` measures the difference. What happens at the same time happens in the order of scheduling.

Messages leave a link in the order they entered whatever the latencies do: the timeout says *when* a message
arrives, the queue says *which*, so neither jitter nor rounding can reorder them.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar, get_args

import numpy as np
import simpy

from coverlay import CoverlayError, Key, Registry, place_of, quoted, unknown_name
from routing.options import accepted, number


class Sized(Protocol):
    @property
    def size(self) -> int: ...


M = TypeVar("M", bound=Sized)


Overflow = Literal["drop", "shed", "hold"]
OVERFLOW: Overflow = "drop"  # the default


class Clock(simpy.Environment):
    """SimPy's environment, which also knows when the network itself is at rest: processes of clients may go on then."""

    busy_until = -math.inf  # when the last message arrives, or its service ends
    acted = -math.inf  # when anybody last did something to the network from outside

    @property
    def finished(self) -> float:
        """When the last thing happens that is under way now."""
        return max(self.busy_until, self.acted, 0.0)

    def after(self, delay: float, call: Callable[[simpy.Event], None]) -> simpy.Event:
        """Call a function in `delay` milliseconds; functions at the same time are called in the order of this."""
        self.busy_until = max(self.busy_until, self.now + delay)
        timeout = self.timeout(delay)
        timeout.callbacks.append(call)
        return timeout


@dataclass(frozen=True)
class LinkModel:
    """How links behave beyond their latency."""

    bandwidth: float | None = None  # bytes per millisecond; None: transmission takes no time
    jitter: float = 0.0  # up to this much more latency per message
    loss: float = 0.0  # the chance that a transmission is lost and has to be repeated
    retransmit_after: float = 50.0  # milliseconds until the sender notices

    @property
    def is_random(self) -> bool:
        return self.jitter > 0 or self.loss > 0

    @property
    def only_latency(self) -> bool:
        """Messages take the latency of their link and no more."""
        return self.bandwidth is None and not self.is_random


class Link(Generic[M]):
    """One direction of a link: reliable and in order while it is up, as over TCP; nothing while it is down."""

    def __init__(
        self,
        env: Clock,
        deliver: Callable[[M], bool | None],
        latency: float,
        model: LinkModel | None = None,
        rng: np.random.Generator | None = None,
        lose: Callable[[M], None] = lambda message: None,
        wait: Callable[[Callable[[], None]], None] = lambda resume: None,
    ) -> None:
        self._env = env
        self._deliver = deliver  # returns False if there is no room: keep the message and `wait`
        self._wait = wait
        self._held = False
        self._behind = 0  # messages that arrived behind one that is held
        self.latency = latency
        self._model = model or LinkModel()
        self._rng = rng if self._model.is_random else None
        self._lose = lose  # called with every message that will never arrive
        self._in_flight: deque[M] = deque()
        self._free_at = 0.0
        self._last = 0.0
        self._void = 0  # arrivals still in the calendar whose messages were lost
        self.up = True
        self.sent = 0  # sequence number of the next message
        self._only_latency = self._rng is None and self._model.bandwidth is None

    def send(self, message: M) -> None:
        self.sent += 1
        if not self.up:
            self._lose(message)
            return
        if self._only_latency:
            self._carry(message, self.latency)
            return
        now, model = self._env.now, self._model
        leaves = now
        if model.bandwidth is not None:
            self._free_at = leaves = max(now, self._free_at) + message.size / model.bandwidth
        arrival = leaves + self.latency
        if self._rng is not None:
            arrival += model.jitter * self._rng.random()
            while model.loss and self._rng.random() < model.loss:
                arrival += model.retransmit_after
            self._last = arrival = max(arrival, self._last)
        self._carry(message, arrival - now)

    def _carry(self, message: M, delay: float) -> None:
        self._in_flight.append(message)
        self._env.after(delay, self._arrive)

    def cut(self) -> None:
        """Go down; what is in flight is lost."""
        self.up = False
        self._void += len(self._in_flight) - self._behind - self._held  # these two have left the calendar
        self._held, self._behind = False, 0
        while self._in_flight:
            self._lose(self._in_flight.popleft())

    def _arrive(self, arrival: simpy.Event) -> None:
        if self._void:  # arrivals happen in the order of sending, so the void ones come first
            self._void -= 1
        elif self._held:
            self._behind += 1
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """Deliver the next message, or hold it until the receiver has room."""
        message = self._in_flight.popleft()
        if self._deliver(message) is False:
            self._in_flight.appendleft(message)
            self._held = True
            self._wait(self._resume)

    def _resume(self) -> None:
        """The receiver has room again; go on with what was held, and with what arrived behind it."""
        if not self._held:
            return  # the link was cut meanwhile
        self._held = False
        self._hand_over()
        while self._behind and not self._held:
            self._behind -= 1
            self._hand_over()


class Server(Generic[M]):
    """One worker with a queue in front; control messages are always admitted, events while there is room.

    A message is processed when its service begins (`begin`, which says how long the service takes); what it causes
    leaves when the service ends (`end`). A crash in between loses that, see `clear`. `instant`: nothing takes time,
    so both happen on arrival and nothing ever waits.

    `capacity` counts the messages at the broker, the one in service included. When it is reached: `drop` the event that
    arrives, `shed` the waiting one that is worth least to subscribers (ranked load shedding), or `hold` it on its
    link, and everything behind it, until there is room.
    """

    def __init__(
        self,
        env: Clock,
        begin: Callable[[M], float],
        end: Callable[[M], None],
        instant: bool,
        capacity: int | None = None,
        droppable: Callable[[M], bool] = lambda message: False,
        drop: Callable[[M], None] = lambda message: None,
        overflow: Overflow = OVERFLOW,
        worth: Callable[[M], float] = lambda message: 0.0,
    ) -> None:
        if overflow not in get_args(Overflow):
            raise unknown_name("overflow rule", overflow, get_args(Overflow))
        self._overflow = overflow
        self._worth = worth
        self._waiting: deque[Callable[[], None]] = deque()
        self._env = env
        self._begin_service, self._end_service = begin, end
        self._instant = instant
        self._capacity = capacity
        self._droppable = droppable
        self._drop = drop
        self._queue: deque[M] = deque()
        self.served: M | None = None  # the message in service
        self._end: simpy.Event | None = None  # of the present service

    def arrive(self, message: M) -> bool:
        """Take a message in; False if the sender has to hold it (see `wait`)."""
        if self._instant:
            self._begin_service(message)
            self._end_service(message)
        elif self.served is None:
            self._begin(message)
        elif self._has_room or not self._droppable(message):
            self._queue.append(message)
        elif self._overflow == "hold":
            return False
        elif self._overflow == "shed":
            self._shed(message)
        else:
            self._drop(message)
        return True

    @property
    def _has_room(self) -> bool:
        return self._capacity is None or len(self._queue) + (self.served is not None) < self._capacity

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once there is room again; first come, first served."""
        self._waiting.append(resume)

    def _shed(self, message: M) -> None:
        """Drop whichever event is worth least, the latest among equals; the newcomer takes the free slot."""
        candidates = [*(m for m in self._queue if self._droppable(m)), message]
        victim = min(reversed(candidates), key=self._worth)
        if victim is not message:
            self._queue.remove(victim)
            self._queue.append(message)
        self._drop(victim)

    def clear(self) -> list[M]:
        """Lose the message in service and the queue; returns the lost messages."""
        lost = [*([] if self.served is None else [self.served]), *self._queue]
        self._queue.clear()
        self.served = None
        self._end = None  # the one in the calendar is ignored from now on
        return lost

    def dismiss(self) -> None:
        """After a crash, once the links are cut: nobody waits for room any more.

        Links ignore it, because what they held is lost; publishers learn that the broker is down.
        """
        held, self._waiting = self._waiting, deque()
        for resume in held:
            resume()

    def _begin(self, message: M) -> None:
        self.served = message
        self._end = self._env.after(self._begin_service(message), self._finish)

    def _finish(self, end: simpy.Event) -> None:
        if end is not self._end:
            return
        assert self.served is not None
        self._end_service(self.served)
        self.served = None
        if self._queue:
            self._begin(self._queue.popleft())
        while self._waiting and self._has_room:
            self._waiting.popleft()()


@dataclass(frozen=True, slots=True)
class Work:
    """A message that a broker serves."""

    kind: Literal["request", "event"]  # a request: to subscribe, to leave, to learn what was lost
    bytes: int  # of the message
    now: float  # ms
    count: Callable[[], int]

    @property
    def entries(self) -> int:
        """Of the broker's tables."""
        return self.count()


ServiceTime = Callable[[Work], float]


def _constant(
    rng: np.random.Generator, *, value: Annotated[float, Key("service time of every message", "ms")]
) -> ServiceTime:
    """The same time for every message."""
    return lambda work: value


def _exponential(
    rng: np.random.Generator, *, mean: Annotated[float, Key("mean of the service times", "ms")]
) -> ServiceTime:
    """Times drawn from an exponential distribution."""
    return lambda work: mean * rng.standard_exponential()


def _linear(
    rng: np.random.Generator,
    *,
    base: Annotated[float, Key("service time with empty tables", "ms")],
    per_entry: Annotated[float, Key("added for each entry of the broker's tables", "ms")],
) -> ServiceTime:
    """Matching takes longer in a larger table: the case where covering also shortens latency."""
    return lambda work: base + per_entry * work.entries


SERVICE_MODELS: Registry[Callable[..., ServiceTime]] = Registry(
    "service model", {"constant": _constant, "exponential": _exponential, "linear": _linear}
)
NO_SERVICE, WORK = "none", "work"  # no time at all; by counted work and a profile, see work.py
Model = TypeVar("Model", bound=Callable[..., ServiceTime])


def register_service(model: Model) -> Model:
    """Add a service model of your own: f(rng, *, …) → a function from `Work` to milliseconds."""
    if model.__name__ in (NO_SERVICE, WORK):
        raise CoverlayError(f"{place_of(model)}: there is a service model {model.__name__!r} already")
    SERVICE_MODELS.add_function(model)
    return model


def service_options() -> dict[str, tuple[str, ...]]:
    """The options of each service model."""
    return {NO_SERVICE: (), WORK: ("profile",), **{name: accepted(model) for name, model in SERVICE_MODELS.items()}}


def needed(kind: str) -> set[str]:
    """The options of a service model that have no default."""
    if kind not in SERVICE_MODELS:
        return set(service_options()[kind])
    parameters = inspect.signature(SERVICE_MODELS[kind]).parameters
    return {name for name in accepted(SERVICE_MODELS[kind]) if parameters[name].default is inspect.Parameter.empty}


def service_model(spec: Mapping[str, Any], rng: np.random.Generator) -> ServiceTime | None:
    """The service times of one broker in milliseconds, from `{kind = …, …}`; None for `none` and `work`."""
    kind, known = spec.get("kind", NO_SERVICE), service_options()
    if kind not in known:
        raise unknown_name("service model", kind, known)
    given = {key: value for key, value in spec.items() if key != "kind"}
    if not needed(kind) <= set(given) <= set(known[kind]):
        listed = ", ".join(known[kind]) or "nothing else"
        raise CoverlayError(f"service model {quoted(kind)} takes {listed}; given: {', '.join(given) or 'nothing'}")
    if kind == WORK:
        if not isinstance(given["profile"], str):
            raise CoverlayError(f"profile is {quoted(given['profile'])}; it must be a name or the path of a file")
        return None
    if kind not in SERVICE_MODELS.written:
        for key, value in given.items():
            number(f"service {key}", value, 0.0)
    SERVICE_MODELS.check_options("broker.service", kind, given)
    return None if kind == NO_SERVICE else SERVICE_MODELS[kind](rng, **given)
