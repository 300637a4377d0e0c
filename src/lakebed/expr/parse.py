"""Reading a predicate from SQL text: `ts >= '2026-01-01' and sensor_id in ('a', 'b')`.

    predicate  = term {(AND | OR) term}          AND binds tighter; NOT tighter still
    term       = NOT term | "(" predicate ")" | comparison
    comparison = operand op operand              op is = == != <> < <= > >=
               | column [NOT] IN "(" literal {"," literal} ")"
               | column [NOT] BETWEEN literal AND literal
               | column [NOT] LIKE text [ESCAPE text]
               | column IS [NOT] (NULL | NAN)
               | isnan(column) | starts_with(column, text)
               | column | TRUE | FALSE | NULL    a bare column is a boolean one

A number is an exact integer or decimal; with an exponent it is a double. Words are read in any
case; `"a b"` and `` `a b` `` quote a column, `'it''s'` quotes text. Chains and nesting are read
with stacks of our own, so no text can exhaust Python's.
"""

from lakebed.errors import PredicateError
from lakebed.expr.literals import Literal
from lakebed.expr.nodes import (
    FLIPPED,
    And,
    Compare,
    Constant,
    In,
    IsNan,
    IsNull,
    Like,
    Node,
    Not,
    Op,
    Or,
    starts_with,
)
from lakebed.expr.tokens import Token, TokenKind, failure, tokenize
from lakebed.limits import PREDICATE_DEPTH_MAX

_OPS = {"=": Op.EQ, "==": Op.EQ, "!=": Op.NE, "<>": Op.NE} | {
    op.value: op for op in (Op.LT, Op.LE, Op.GT, Op.GE)
}
_PRECEDENCE = {"(": 0, "or": 1, "and": 2, "not": 3}


def parse_predicate(text: str) -> Node:
    """Read SQL text as a predicate, or raise PredicateError that points at the flaw."""
    return _Parser(text).predicate()


def as_predicate(where: object) -> Node | None:
    """Accept what users pass as `where`: SQL text, a built predicate, or nothing."""
    if where is None or isinstance(where, Node):
        return where
    if isinstance(where, str):
        return parse_predicate(where)
    kind = type(where).__name__
    raise PredicateError(
        f"a predicate is SQL text or built with col(), not a value of type {kind}",
        hint="Write where=\"flag\" or col('flag') == True for a boolean column",
    )


class _Parser:
    """One pass over the tokens; operators wait on a stack until what follows is known."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.operands: list[Node] = []
        self.operators: list[Token] = []
        self.nesting = 0

    def predicate(self) -> Node:
        while True:
            self._term()
            while self._token.is_symbol(")") and self._close():
                self.at += 1
            if self._token.is_word("and", "or"):
                token = self._next()
                self._reduce(_PRECEDENCE[token.word] + 1)
                self.operators.append(token)
                continue
            break
        if self._token.kind is not TokenKind.END:
            raise self._expected("AND, OR or the end")
        self._reduce(1)
        if self.operators:
            raise failure(self.text, self.operators[-1].at, "this parenthesis is never closed")
        assert len(self.operands) == 1, "every operator took its operands"
        return self.operands[0]

    def _term(self) -> None:
        while self._token.is_word("not") or self._token.is_symbol("("):
            self.nesting += 1
            if self.nesting > PREDICATE_DEPTH_MAX:
                message = f"the predicate is nested more than {PREDICATE_DEPTH_MAX} deep"
                raise failure(self.text, self._token.at, message)
            self.operators.append(self._next())
        self.operands.append(self._comparison())

    def _close(self) -> bool:
        self._reduce(1)
        if not self.operators:
            raise self._expected("AND, OR or the end", "no parenthesis is open here")
        self.operators.pop()
        self.nesting -= 1
        return True

    def _reduce(self, precedence_min: int) -> None:
        """Apply waiting operators that bind at least so tightly; a chain becomes one node."""
        while self.operators and _PRECEDENCE[self.operators[-1].key] >= precedence_min:
            word = self.operators.pop().key
            if word == "not":
                self.nesting -= 1
                self.operands.append(Not(self.operands.pop()))
                continue
            count = 2
            while self.operators and self.operators[-1].key == word:
                self.operators.pop()
                count += 1
            joined = tuple(self.operands[-count:])
            del self.operands[-count:]
            self.operands.append(And(joined) if word == "and" else Or(joined))

    # ------------------------------------------------------------------------- comparisons

    def _comparison(self) -> Node:
        token = self._token
        if token.is_word("isnan", "starts_with") and self.tokens[self.at + 1].is_symbol("("):
            return self._function()
        if token.kind is TokenKind.LITERAL:
            return self._literal_first()
        column = self._column()
        if (op := self._operator()) is not None:
            return Compare(column, op, self._literal())
        if self._accept("is"):
            return self._is(column)
        if self._token.is_word("not") and self.tokens[self.at + 1].is_word("in", "between", "like"):
            self.at += 1
            return Not(self._listed(column))
        if self._token.is_word("in", "between", "like"):
            return self._listed(column)
        return Compare(column, Op.EQ, value=True)

    def _literal_first(self) -> Node:
        token = self._next()
        if (op := self._operator()) is not None:
            if self._token.kind is TokenKind.LITERAL:
                raise self._expected("a column", "one side of a comparison names a column")
            return Compare(self._column(), FLIPPED[op], token.value)
        if token.value is None or isinstance(token.value, bool):
            return Constant(token.value)
        raise self._expected("a comparison such as = or <")

    def _is(self, column: str) -> Node:
        negated = self._accept("not")
        if self._token.kind is TokenKind.LITERAL and self._token.key in ("null", "nan"):
            node = IsNull(column) if self._next().key == "null" else IsNan(column)
            return Not(node) if negated else node
        raise self._expected("NULL or NAN")

    def _listed(self, column: str) -> Node:
        word = self._next().word
        if word == "like":
            return self._like(column)
        if word == "between":
            low = self._literal()
            if not self._accept("and"):
                raise self._expected("AND and the upper end of the range")
            return And((Compare(column, Op.GE, low), Compare(column, Op.LE, self._literal())))
        self._symbol("(")
        values = [self._literal()]
        while self._token.is_symbol(","):
            self.at += 1
            values.append(self._literal())
        self._symbol(")")
        return In(column, tuple(values))

    def _like(self, column: str) -> Node:
        start = self._token.at
        pattern = self._string()
        escape = self._string() if self._accept("escape") else None
        try:
            return Like(column, pattern, escape)
        except PredicateError as error:
            raise failure(self.text, start, error.message, error.hint) from error

    def _function(self) -> Node:
        name = self._next().word
        self._symbol("(")
        column = self._column()
        if name == "isnan":
            self._symbol(")")
            return IsNan(column)
        self._symbol(",")
        prefix = self._string()
        self._symbol(")")
        return starts_with(column, prefix)

    # ------------------------------------------------------------------------------ tokens

    @property
    def _token(self) -> Token:
        return self.tokens[self.at]

    def _next(self) -> Token:
        token = self._token
        self.at += 1
        return token

    def _operator(self) -> Op | None:
        if self._token.kind is TokenKind.SYMBOL and self._token.text in _OPS:
            return _OPS[self._next().text]
        return None

    def _accept(self, *words: str) -> bool:
        if self._token.is_word(*words):
            self.at += 1
            return True
        return False

    def _symbol(self, symbol: str) -> None:
        if not self._token.is_symbol(symbol):
            raise self._expected(f"{symbol!r}")
        self.at += 1

    def _column(self) -> str:
        if self._token.kind is TokenKind.NAME or self._token.is_free_word():
            name = self._next()
            if self._token.is_symbol("."):
                hint = 'Predicates take whole columns; quote a name that has a dot: "a.b"'
                raise self._expected("a comparison", hint)
            return name.text
        raise self._expected("a column")

    def _literal(self) -> Literal:
        if self._token.kind is TokenKind.LITERAL:
            return self._next().value
        hint = ""
        if self._token.kind is TokenKind.NAME or self._token.is_free_word():
            hint = "Text goes in single quotes; a column is compared with constants only"
        raise self._expected("a constant", hint)

    def _string(self) -> str:
        value = self._token.value
        if self._token.kind is TokenKind.LITERAL and isinstance(value, str):
            self.at += 1
            return value
        raise self._expected("text in single quotes")

    def _expected(self, what: str, hint: str = "") -> PredicateError:
        return failure(self.text, self._token.at, f"expected {what}", hint)
