"""A job site: seekers describe the job they want, an offer is sent to the best of those it suits.

Seekers name one or two professions, a minimum salary and where they would work; offers must not ask for more
experience than they have. In offers, salary grows with experience. The score is how well the site rates
the seeker; the k best are told.
"""

from __future__ import annotations

from typing import Annotated

from broker.language import Subscription
from broker.language.schema import Schema, Value, categorical, integer
from coverlay import Key
from sim.workloads.contract import Generator
from sim.workloads.options import NotNegative
from sim.workloads.scenario import Luck, at_least, at_most, one_of, popularity, rounded, written

# Profession → usual salary at the start of a career, thousands a year.
PROFESSIONS = {
    "nurse": 34, "programmer": 46, "teacher": 38, "electrician": 33, "accountant": 40, "cook": 27, "engineer": 48,
    "driver": 28, "designer": 36, "physician": 62, "carpenter": 31, "lawyer": 52,
}  # fmt: skip
NAMES = tuple(PROFESSIONS)
CITIES = ("Berlin", "Paris", "Madrid", "Rome", "Vienna", "Prague", "Lisbon", "Dublin", "Oslo", "Athens")
CONTRACTS = ("permanent", "temporary", "freelance")
PLACES = ("office", "hybrid", "remote")

SCHEMA = Schema(
    (
        categorical("profession", NAMES),
        integer("salary", 10, 250),  # thousands a year
        categorical("city", CITIES),
        integer("experience", 0, 40),  # years asked for
        categorical("contract", CONTRACTS),
        categorical("workplace", PLACES),
    )
)


def jobs(
    *, skew: Annotated[NotNegative, Key("Zipf parameter of the popularity of professions and cities")] = 0.7
) -> Generator:
    professions, cities = popularity(len(NAMES), skew), popularity(len(CITIES), skew)

    def subscribe(luck: Luck) -> Subscription:
        profession = luck.popular(NAMES, professions)
        wanted = [profession] if luck.chance(0.8) else [profession, luck.popular(NAMES, professions)]
        years = int(luck.number(0, 25))
        wish = [one_of("profession", wanted)]
        if luck.chance(0.8):
            pay = PROFESSIONS[profession] * (1 + 0.03 * years) * luck.number(0.7, 1.1)
            wish.append(at_least("salary", int(rounded(pay, 5))))
        if luck.chance(0.6):
            wish.append(one_of("city", [luck.popular(CITIES, cities) for _ in range(1 + luck.chance(0.3))]))
        if luck.chance(0.7):
            wish.append(at_most("experience", years))
        if luck.chance(0.4):
            wish.append(one_of("contract", ["permanent"] if luck.chance(0.7) else ["temporary", "freelance"]))
        if luck.chance(0.25):
            wish.append(one_of("workplace", ["remote"] if luck.chance(0.5) else ["remote", "hybrid"]))
        return Subscription(tuple(wish), score=rounded(luck.number(0.0, 1.0), 0.01))

    def publish(luck: Luck) -> dict[str, Value]:
        profession = luck.popular(NAMES, professions)
        years = int(20 * luck.number() ** 2)
        salary = int(PROFESSIONS[profession] * (1 + 0.03 * years) * luck.number(0.85, 1.25))
        offer: dict[str, Value] = {"profession": profession, "salary": salary, "city": luck.popular(CITIES, cities)}
        offer |= {"experience": years, "contract": CONTRACTS[0] if luck.chance(0.7) else luck.pick(CONTRACTS)}
        return {**offer, "workplace": luck.pick(PLACES)}

    return written(SCHEMA, subscribe, publish)
