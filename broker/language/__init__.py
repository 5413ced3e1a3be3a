"""What clients speak: subscriptions and events as text, and their compiled form.

    from broker.language import parse_subscription, compile_subscription
    subscription = parse_subscription('price between 10 and 50 and year >= 1990 and issue = "MSFT"')
    filter = compile_subscription(schema, subscription)
    parse_subscription("price < 10 weight 0.6 and near (48.14, 11.58) alpha 0.5")
    parse_event('price = 9.5, kind = "cafe" at (48.2, 11.5)')

`schema`: the attributes; `predicates` holds the values and prints them, `parser` reads them, `compiler` makes filters,
`text_code` makes numbers of strings.
"""

from broker.language.compiler import compile_subscription
from broker.language.parser import parse_event, parse_subscription
from broker.language.predicates import Event, Near, Operator, Predicate, Subscription

__all__ = [
    "Event",
    "Near",
    "Operator",
    "Predicate",
    "Subscription",
    "compile_subscription",
    "parse_event",
    "parse_subscription",
]
