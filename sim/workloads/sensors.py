"""Sensors with places: stations report what they measure and where, people ask about a region.

A subscription names a quantity, a threshold, and a square around a city (from a neighbourhood to a county), so
that wishes for the same city nest; some ask for any quantity of stations whose battery is low. Most would rather hear
of stations near the middle of their city (`near`, Hu et al., SSTD 2015), which counts where matching ranks by place.
Stations are around the same cities. Values have the unit of their quantity.
"""

from __future__ import annotations

from typing import Annotated

from broker.language import Near, Subscription
from broker.language.schema import Schema, Value, categorical, continuous, degrees, integer
from coverlay import Key
from sim.workloads.contract import Generator
from sim.workloads.options import NotNegative
from sim.workloads.scenario import Luck, at_least, at_most, between, one_of, popularity, rounded, written

# Quantity → usual value, spread, whether people worry about high values.
QUANTITIES = {
    "temperature": (15.0, 7.0, True),  # °C
    "humidity": (60.0, 12.0, True),  # %
    "fine dust": (18.0, 8.0, True),  # µg/m³
    "noise": (55.0, 9.0, True),  # dB
    "water level": (2.0, 0.7, False),  # m
}
NAMES = tuple(QUANTITIES)
CITIES = {
    "Berlin": (52.52, 13.40), "Paris": (48.86, 2.35), "Madrid": (40.42, -3.70), "Rome": (41.90, 12.50),
    "Vienna": (48.21, 16.37), "Prague": (50.08, 14.44), "Lisbon": (38.72, -9.14), "Oslo": (59.91, 10.75),
}  # fmt: skip
PLACES = tuple(CITIES.values())
REACHES = (0.1, 0.2, 0.5, 1.0)  # degrees from the middle of a city to the edge of the square
ALPHAS = (0.3, 0.5, 0.8)  # how much nearness counts against the reading
STATIONS = 0.4  # degrees: the scatter of stations around a city

SCHEMA = Schema(
    (
        categorical("quantity", NAMES),
        continuous("value", -40.0, 150.0),
        integer("battery", 0, 100),  # per cent
        degrees("latitude", "latitude", 30.0, 70.0),
        degrees("longitude", "longitude", -15.0, 30.0),
    )
)


def sensors(*, skew: Annotated[NotNegative, Key("Zipf parameter of the popularity of cities")] = 0.8) -> Generator:
    law = popularity(len(PLACES), skew)

    def subscribe(luck: Luck) -> Subscription:
        (latitude, longitude), reach = luck.popular(PLACES, law), luck.pick(REACHES)
        where = [
            between("latitude", round(latitude - reach, 2), round(latitude + reach, 2)),
            between("longitude", round(longitude - reach, 2), round(longitude + reach, 2)),
        ]
        if luck.chance(0.15):
            wish = [at_most("battery", int(rounded(luck.number(5, 30), 5)))]
        else:
            quantity = luck.pick(NAMES)
            usual, spread, high = QUANTITIES[quantity]
            limit = rounded(usual + (1 if high else -1) * luck.number(0.0, 1.5) * spread, 5.0 if spread > 5 else 0.5)
            wish = [one_of("quantity", [quantity])]
            wish.append(at_least("value", limit) if high else at_most("value", limit))
        near = Near(latitude, longitude, luck.pick(ALPHAS)) if luck.chance(0.8) else None
        return Subscription((*wish, *where), score=rounded(luck.number(0.0, 1.0), 0.01), near=near)

    def publish(luck: Luck) -> dict[str, Value]:
        quantity, (latitude, longitude) = luck.pick(NAMES), luck.popular(PLACES, law)
        usual, spread, _ = QUANTITIES[quantity]
        return {
            "quantity": quantity,
            "value": round(luck.around(usual, spread), 1),
            "battery": int(luck.number(0, 101)),
            "latitude": round(luck.around(latitude, STATIONS), 4),
            "longitude": round(luck.around(longitude, STATIONS), 4),
        }

    return written(SCHEMA, subscribe, publish)
