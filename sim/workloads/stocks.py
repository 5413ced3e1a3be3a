"""Stock quotes: traders watch symbols, sectors and large trades.

Four kinds of wish: one symbol up to or from a price limit; a sector that falls or rises by some per cent; large trades
on an exchange; a basket of symbols that moves. Symbols have the same Zipf popularity among traders and in the
tape. Limits are round, so that many wishes contain others. The score is what the trader pays for service.
"""

from __future__ import annotations

from typing import Annotated

from broker.language import Subscription
from broker.language.schema import Schema, Value, categorical, continuous, integer
from coverlay import Key
from sim.workloads.contract import Generator
from sim.workloads.options import NotNegative
from sim.workloads.scenario import Luck, at_least, at_most, one_of, popularity, rounded, written

# Made-up companies: symbol → sector and usual price.
COMPANIES = {
    "ALDER": ("energy", 42.0), "BRISK": ("software", 310.0), "CORAL": ("health", 88.0), "DELTA": ("finance", 55.0),
    "EMBER": ("energy", 17.0), "FJORD": ("transport", 120.0), "GLINT": ("software", 720.0), "HAVEN": ("finance", 36.0),
    "IRIS": ("health", 205.0), "JUNO": ("software", 145.0), "KELP": ("food", 28.0), "LUMEN": ("energy", 64.0),
    "MAPLE": ("food", 73.0), "NOVA": ("software", 410.0), "OPAL": ("finance", 98.0), "PINE": ("food", 12.0),
    "QUARTZ": ("metals", 150.0), "RIDGE": ("metals", 33.0), "SABLE": ("transport", 58.0), "TERRA": ("metals", 240.0),
}  # fmt: skip
SYMBOLS = tuple(COMPANIES)
SECTORS = tuple(sorted({sector for sector, _ in COMPANIES.values()}))
EXCHANGES = ("New York", "London", "Tokyo", "Frankfurt")

SCHEMA = Schema(
    (
        categorical("symbol", SYMBOLS),
        categorical("sector", SECTORS),
        continuous("price", 0.01, 2000.0),
        continuous("change", -30.0, 30.0),  # per cent since yesterday
        integer("volume", 1, 10_000_000),
        categorical("exchange", EXCHANGES),
    )
)
TIERS = (1.0, 2.0, 3.0, 4.0, 5.0)


def stocks(*, skew: Annotated[NotNegative, Key("Zipf parameter of the popularity of symbols")] = 1.0) -> Generator:
    law = popularity(len(SYMBOLS), skew)

    def subscribe(luck: Luck) -> Subscription:
        kind, symbol, tier = luck.number(), luck.popular(SYMBOLS, law), luck.pick(TIERS)
        sector, usual = COMPANIES[symbol]
        if kind < 0.45:
            limit = rounded(usual * luck.number(0.85, 1.15), 1.0 if usual < 50 else 5.0)
            bound = at_most("price", limit) if luck.chance(0.5) else at_least("price", limit)
            wish = [one_of("symbol", [symbol]), bound]
        elif kind < 0.7:
            move = rounded(luck.number(1.0, 6.0), 1.0)
            wish = [one_of("sector", [sector])]
            wish.append(at_most("change", -move) if luck.chance(0.6) else at_least("change", move))
        elif kind < 0.85:
            wish = [at_least("volume", int(rounded(10 ** luck.number(4.5, 6.5), 10_000)))]
            wish += [one_of("exchange", [luck.pick(EXCHANGES)]), one_of("sector", [sector])]
        else:
            basket = [symbol, luck.popular(SYMBOLS, law), luck.popular(SYMBOLS, law)]
            wish = [one_of("symbol", basket), at_least("change", rounded(luck.number(1.0, 4.0), 0.5))]
        return Subscription(tuple(wish), score=tier)

    def publish(luck: Luck) -> dict[str, Value]:
        symbol = luck.popular(SYMBOLS, law)
        sector, usual = COMPANIES[symbol]
        change = round(luck.around(0.0, 2.5), 2)
        price = round(usual * (1 + change / 100) * luck.number(0.9, 1.1), 2)
        volume = int(10 ** luck.number(2.0, 6.8))
        quote: dict[str, Value] = {"symbol": symbol, "sector": sector, "price": price, "change": change}
        return {**quote, "volume": volume, "exchange": luck.pick(EXCHANGES)}

    return written(SCHEMA, subscribe, publish)
