"""The text form of subscriptions and events: a hand-written recursive-descent parser.

    subscription = ( "true" | term { "and" term } ) [ "score" number ]
    term         = predicate | "near" "(" latitude "," longitude ")" [ "alpha" number ]
    predicate    = name test [ "weight" number ]
    test         = ( "<" | "<=" | "=" | "!=" | ">=" | ">" ) value
                 | [ "not" ] "in" "{" [ value { "," value } ] "}"
                 | "between" value "and" value
                 | "prefix" value
    event        = [ assignment { "," assignment } ] [ "at" "(" latitude "," longitude ")" ]
    assignment   = name "=" value [ "weight" number ]
    value        = number | text in double or single quotes

`≤ ≥ ≠ == <>` and round or square brackets around sets are read as well; keywords may be in any case. `near`, `alpha`,
`prefix` and `at` are keywords only where nothing else fits, so attributes may have these names. One token of look-ahead
decides everything else. An error shows the line, with a caret under the mistake.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from broker.language.predicates import (
    DEFAULT_ALPHA,
    DEFAULT_SCORE,
    DEFAULT_WEIGHT,
    EVERYTHING,
    Event,
    Near,
    Operator,
    Predicate,
    Subscription,
    degrees,
)
from broker.language.schema import KEYWORDS, NAME, Value
from coverlay import QUOTED, CoverlayError, quoted, shortened

# Digits match possessively (++, *+): backtracking digit by digit would take quadratic time.
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
    |(?P<number>[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?(?![\w.]))
    |(?P<name>{NAME.pattern})
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<sign><=|>=|!=|<>|==|[<>=≤≥≠{{}}()\[\],])""",
    re.VERBOSE | re.DOTALL,
)
_COMPARISONS = {
    "<": Operator.LESS,
    "<=": Operator.AT_MOST,
    "≤": Operator.AT_MOST,
    "=": Operator.EQUAL,
    "==": Operator.EQUAL,
    "!=": Operator.DIFFERENT,
    "<>": Operator.DIFFERENT,
    "≠": Operator.DIFFERENT,
    ">=": Operator.AT_LEAST,
    "≥": Operator.AT_LEAST,
    ">": Operator.GREATER,
}
_BRACKETS = {"{": "}", "(": ")", "[": "]"}
_SHOWN = QUOTED // 2  # characters of a long line shown on either side of a mistake


@dataclass(frozen=True)
class Token:
    kind: str  # number | name | keyword | text | sign | end
    text: str
    place: int


def parse_subscription(text: str, *, id: int = 0) -> Subscription:
    """Read a subscription, or raise a CoverlayError that points at the first mistake."""
    return _Parser(text).subscription(id)


def parse_event(text: str) -> Event:
    """Read an event such as `price = 12.5, issue = "MSFT"`."""
    return _Parser(text).event()


def pointing(text: str, place: int, message: str) -> CoverlayError:
    """An error that shows the line of `text` with a caret under `place`."""
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    line = text[start : len(text) if end < 0 else end]
    column = place - start
    row = text.count("\n", 0, place) + 1
    where = f"column {column + 1}" if "\n" not in text else f"line {row}, column {column + 1}"
    first = max(0, column - _SHOWN)
    shown = ("…" if first else "") + line[first : column + _SHOWN].replace("\t", " ")
    caret = " " * (column - first + (1 if first else 0)) + "^"
    return CoverlayError(f"{where}: {message}\n  {shown}\n  {caret}")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.position = 0

    def _split(self) -> list[Token]:
        tokens, place = [], 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None:
                raise pointing(self.text, place, self._unreadable(place))
            kind = str(match.lastgroup)
            if kind == "name" and match.group().lower() in KEYWORDS:
                tokens.append(Token("keyword", match.group().lower(), place))
            elif kind != "space":
                tokens.append(Token(kind, match.group(), place))
            place = match.end()
        tokens.append(Token("end", "", len(self.text)))
        return tokens

    def _unreadable(self, place: int) -> str:
        if self.text[place] in "\"'":
            return "this text has no closing quote"
        if self.text[place] in "+-.0123456789":
            return "this is not a number"
        return f"the character {self.text[place]!r} has no meaning here"

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def taken(self, text: str) -> bool:
        """Skip this keyword or sign if it is next."""
        if self.token.kind in ("keyword", "sign") and self.token.text == text:
            self.position += 1
            return True
        return False

    def must_take(self, text: str, expected: str) -> None:
        if not self.taken(text):
            raise self.expected(expected)

    def expected(self, what: str) -> CoverlayError:
        found = "the end" if self.token.kind == "end" else quoted(self.token.text)
        return pointing(self.text, self.token.place, f"expected {what}, found {found}")

    def subscription(self, id: int) -> Subscription:
        predicates: list[Predicate] = []
        near: Near | None = None
        more = not self.taken(EVERYTHING)
        while more:
            if self.word("near", "("):
                if near is not None:
                    raise pointing(self.text, self.token.place, "a subscription is near one place only")
                near = self.near()
            else:
                predicates.append(self.predicate())
            more = self.taken("and")
        score = self.number() if self.taken("score") else DEFAULT_SCORE
        if self.token.kind != "end":
            raise self.expected('"and", "score" or the end')
        return Subscription(tuple(predicates), id, score, near, self.text)

    def word(self, text: str, after: str = "") -> bool:
        """Is this word next, followed by the sign `after`? For words that are keywords only in some places."""
        token, following = self.token, self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        return token.kind == "name" and token.text.lower() == text and after in ("", following.text)

    def near(self) -> Near:
        place = self.take().place
        latitude, longitude = self.coordinates()
        alpha = DEFAULT_ALPHA
        if self.word("alpha"):
            self.take()
            at = self.token.place
            alpha = self.number()
            if not 0 <= alpha <= 1:
                raise pointing(self.text, at, f"alpha {alpha:g} must be from 0 to 1")
        return Near(latitude, longitude, alpha, place)

    def coordinates(self) -> tuple[float, float]:
        self.must_take("(", '"(" and a latitude')
        at = self.token.place
        latitude = self.number()
        self.must_take(",", '"," and a longitude')
        longitude = self.number()
        self.must_take(")", '")"')
        try:
            degrees(latitude, longitude)
        except CoverlayError as error:
            raise pointing(self.text, at, str(error)) from None
        return latitude, longitude

    def predicate(self) -> Predicate:
        name = self.name()
        places = [name.place]
        values: list[Value] = []

        def value() -> None:
            places.append(self.token.place)
            values.append(self.value())

        if self.token.kind == "sign" and self.token.text in _COMPARISONS:
            operator = _COMPARISONS[self.take().text]
            value()
        elif self.taken("between"):
            operator = Operator.BETWEEN
            value()
            self.must_take("and", '"and" and the upper bound')
            value()
        elif self.word("prefix"):
            self.take()
            operator = Operator.PREFIX
            value()
        elif (negated := self.taken("not")) or self.taken("in"):
            operator = Operator.NOT_IN if negated else Operator.IN
            if negated:
                self.must_take("in", '"in"')
            self.set(value)
        else:
            raise self.expected("<, <=, =, !=, >=, >, in, not in, between or prefix")
        weight = self.weight() if self.taken("weight") else DEFAULT_WEIGHT
        return Predicate(name.text, operator, tuple(values), weight, tuple(places))

    def set(self, value: Callable[[], None]) -> None:
        opening = self.token.text if self.token.kind == "sign" else ""
        if opening not in _BRACKETS:
            raise self.expected("a set such as {1, 2}")
        self.take()
        closing = _BRACKETS[opening]
        if self.taken(closing):
            return
        value()
        while self.taken(","):
            value()
        self.must_take(closing, f'"," or "{closing}"')

    def name(self) -> Token:
        if self.token.kind != "name":
            raise self.expected("the name of an attribute")
        return self.take()

    def value(self) -> Value:
        token = self.token
        if token.kind == "number":
            return self.literal()
        if token.kind == "text":
            return self.quoted()
        if token.kind == "name":
            message = f'expected a number or a text; texts are quoted: "{shortened(token.text)}"'
            raise pointing(self.text, token.place, message)
        raise self.expected("a number or a quoted text")

    def literal(self) -> float | int:
        token = self.take()
        # The limit on digits keeps Python's own refusal of huge integers from reaching the user.
        if re.fullmatch(r"[+-]?\d{1,300}", token.text):
            return int(token.text)
        number = float(token.text)
        if not math.isfinite(number):
            raise pointing(self.text, token.place, f"{shortened(token.text)} is too large a number")
        return number

    def number(self) -> float:
        if self.token.kind != "number":
            raise self.expected("a number")
        return float(self.literal())

    def weight(self) -> float:
        place = self.token.place
        weight = self.number()
        if weight < 0:
            raise pointing(self.text, place, f"weight {weight:g} must not be negative")
        return weight

    def quoted(self) -> str:
        token = self.take()
        body = token.text[1:-1]
        if token.text[0] == "'":
            body = body.replace("\\'", "'")
            body = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', body)
        try:
            # Not strict: a line break or tab within quotes means itself.
            return str(json.loads(f'"{body}"', strict=False))
        except json.JSONDecodeError:
            message = 'this text has an escape that is none of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX'
            raise pointing(self.text, token.place, message) from None

    def event(self) -> Event:
        values: dict[str, Value] = {}
        weights: dict[str, float] = {}
        more = self.token.kind != "end" and not self.word("at", "(")
        while more:
            name = self.name()
            if name.text in values:
                raise pointing(self.text, name.place, f"{shortened(name.text)} has a value already")
            if not (self.taken("=") or self.taken("==")):
                raise self.expected('"="')
            values[name.text] = self.value()
            if self.taken("weight"):
                weights[name.text] = self.weight()
            more = self.taken(",")
        at = None
        if self.word("at"):
            self.take()
            at = self.coordinates()
        if self.token.kind != "end":
            raise self.expected('"," or the end')
        return Event(values, at, weights)
