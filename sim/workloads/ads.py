"""Targeted advertising: campaigns describe whom they want, each visit shows the few that fit best.

The application behind ranked matching (Machanavajjhala et al., VLDB 2008; Zhang et al., ICDE 2012): a
campaign does not have to fit in every respect. A weight says how much each respect counts; matching is relaxed,
and a broker shows its k best. The score is the bid, which counts where matching is exact.
"""

from __future__ import annotations

from typing import Annotated

from broker.language import Subscription
from broker.language.schema import Schema, Value, categorical, continuous, integer
from coverlay import Key
from sim.workloads.contract import Generator
from sim.workloads.options import NotNegative
from sim.workloads.scenario import Luck, at_least, between, one_of, popularity, rounded, written

INTERESTS = (
    "football", "travel", "cooking", "music", "gardening", "games", "fashion", "cars", "books", "finance", "cycling",
    "films",
)  # fmt: skip
COUNTRIES = ("Germany", "France", "Italy", "Spain", "Poland", "Sweden", "Greece", "Ireland")
DEVICES = ("phone", "laptop", "tablet", "television")

SCHEMA = Schema(
    (
        categorical("interest", INTERESTS),
        integer("age", 13, 90),
        categorical("country", COUNTRIES),
        integer("hour", 0, 23),
        continuous("income", 0.0, 200.0),  # thousands a year
        categorical("device", DEVICES),
    )
)
AGES = ((13, 17), (18, 24), (25, 34), (35, 49), (50, 64), (65, 90), (18, 34), (25, 49), (18, 64), (50, 90))
EVENING, DAYTIME = (18, 23), (9, 17)


def ads(
    *, skew: Annotated[NotNegative, Key("Zipf parameter of the popularity of interests and countries")] = 0.8
) -> Generator:
    interests, countries = popularity(len(INTERESTS), skew), popularity(len(COUNTRIES), skew)

    def subscribe(luck: Luck) -> Subscription:
        def weight() -> float:
            return rounded(luck.number(0.1, 1.0), 0.1)

        themes = [luck.popular(INTERESTS, interests) for _ in range(1 + luck.chance(0.4))]
        wish = [one_of("interest", themes, weight())]
        if luck.chance(0.7):
            wish.append(between("age", *luck.pick(AGES), weight()))
        if luck.chance(0.5):
            wish.append(one_of("country", [luck.popular(COUNTRIES, countries)], weight()))
        if luck.chance(0.3):
            wish.append(between("hour", *(EVENING if luck.chance(0.7) else DAYTIME), weight()))
        if luck.chance(0.25):
            wish.append(at_least("income", rounded(luck.number(20.0, 100.0), 10.0), weight()))
        if luck.chance(0.3):
            wish.append(one_of("device", [luck.pick(DEVICES)], weight()))
        return Subscription(tuple(wish), score=rounded(luck.number(0.05, 2.0), 0.05))

    def publish(luck: Luck) -> dict[str, Value]:
        visit: dict[str, Value] = {"interest": luck.popular(INTERESTS, interests), "age": int(luck.number(13, 91))}
        visit |= {"country": luck.popular(COUNTRIES, countries), "hour": int(luck.number(0, 24))}
        if luck.chance(0.6):  # the others do not say
            visit["income"] = rounded(max(0.0, luck.around(40.0, 18.0)), 0.5)
        return {**visit, "device": luck.pick(DEVICES)}

    return written(SCHEMA, subscribe, publish)
