"""Makes mutants of C++ sources by rule: every condition negated, every bound moved by one, every
statement left out, and so on. Used by tools/mutants.

All mutants of a file are compiled at once. A statement S becomes

    { if (skiff_mutant(7)) { S as mutant 7 has it } else if (...) ... else { S } }

and a condition or initializer a chain of ?: of the same kind, so that the program chooses its bug
when it starts (SKIFF_MUTANT=7) and three hundred bugs need one build. What does not compile (a minus
between strings) is found by the compiler and dropped.

This is no parser of C++: it reads the tokens of code that clang-format has laid out, finds function
bodies, statements and conditions, and leaves alone what it does not understand.
"""

import re

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)
      | (?P<text>R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')
      | (?P<number>\d[\w'.]*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign><=>|\.\.\.|::|->|\+\+|--|<<|>=|<=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.X | re.S | re.M)

SWAPS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
    " && ": " || ", " || ": " && ", " + ": " - ", " - ": " + ", " += ": " -= ",
}
WORDS = {
    "true": ["false"], "false": ["true"], "min": ["max"], "max": ["min"], "any_of": ["all_of"],
    "all_of": ["any_of"],
    # Enumerators and conditions: another of their kind; those of another kind do not compile.
    "kRunning": ["kPending", "kRestarting"], "kPending": ["kRunning"], "kSucceeded": ["kFailed"],
    "kFailed": ["kSucceeded"], "kNone": ["kAll"], "kAll": ["kRunning"], "kReplace": ["kFinal"],
    "kFinal": ["kReplace"], "kAlways": ["kNever"], "kNever": ["kOnFailure"],
    "kOnFailure": ["kExitCode"], "kExitCode": ["kAlways"], "kCreated": ["kSuspended"],
    "kSuspended": ["kCreated"], "kRestarting": ["kRunning"],
}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


class Token:
    __slots__ = ("kind", "text", "line", "tight")

    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line
        self.tight = False  # nothing stands between it and the token before


def tokens_of(source):
    out, line, tight = [], 1, False
    for match in TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if kind != "space":
            token = Token(kind, text, line)
            token.tight = tight
            out.append(token)
        tight = kind != "space"
        line += text.count("\n")
    return out


def words(tokens):
    """The tokens as text, with a space wherever there was one."""
    return "".join(("" if t.tight or i == 0 else " ") + t.text for i, t in enumerate(tokens))


class Mutant:
    def __init__(self, file, line, what, text):
        self.file, self.line, self.what, self.text = file, line, what, text
        self.number = 0

    def key(self):
        return f"{self.file}: {self.text}"


class Mutator:
    """Rewrites one file. `dropped` are texts of mutants that do not compile."""

    def __init__(self, name, source, dropped=()):
        self.name, self.tokens, self.dropped = name, tokens_of(source), set(dropped)
        self.mutants, self.first = [], 1
        self.out = []
        # Not the lines of a script that stands in the source as a text.
        self.source_includes = [m.group() for m in TOKEN.finditer(source)
                                if m.lastgroup == "space" and m.group().startswith("#")]

    def rewrite(self, first):
        self.first = first
        self.mutants, self.out = [], list(self.source_includes)
        self.at = 0
        while self.at < len(self.tokens):
            self.top()
        return "\n".join(self.out) + "\n"

    # -- walking

    def emit(self, tokens):
        if tokens:
            self.out.append(words(tokens))

    def close_of(self, start):
        """The index of the bracket that closes the one at `start`."""
        depth = 0
        for i in range(start, len(self.tokens)):
            if self.tokens[i].text in OPENING:
                depth += 1
            elif self.tokens[i].text in CLOSING:
                depth -= 1
                if depth == 0:
                    return i
        raise ValueError(f"{self.name}:{self.tokens[start].line}: a bracket is not closed")

    def top(self):
        """A piece outside of functions: copies up to a function's body, and mutates that."""
        start = self.at
        while self.at < len(self.tokens):
            text = self.tokens[self.at].text
            if text == "{" and self.is_body(start, self.at):
                self.emit(self.tokens[start:self.at])
                return self.block()
            if text == "{" and not self.is_scope(start, self.at):
                self.at = self.close_of(self.at)
            self.at += 1
            if text in ("{", "}", ";"):
                break
        self.emit(self.tokens[start:self.at])

    def is_scope(self, start, brace):
        head = [t.text for t in self.tokens[start:brace]]
        return any(w in head for w in ("namespace", "class", "struct")) and "(" not in head

    def is_body(self, start, brace):
        """Whether a brace opens a function: it follows the parameters, or a list of initializers."""
        if brace == 0 or self.is_scope(start, brace):
            return False
        before = self.tokens[brace - 1].text
        if before in (")", "const", "override", "noexcept", "mutable"):
            return True
        if before == "}":  # : a_{1}, b_(2) {
            return ":" in [t.text for t in self.tokens[start:brace]]
        # -> Type {
        for i in range(brace - 1, max(start, brace - 12), -1):
            if self.tokens[i].text == "->":
                return self.tokens[i - 1].text == ")"
            if self.tokens[i].text in (";", "{", "}", "="):
                break
        return False

    def block(self):
        self.out.append("{")
        self.at += 1
        while self.tokens[self.at].text != "}":
            self.statement()
        self.out.append("}")
        self.at += 1

    def statement(self):
        token = self.tokens[self.at]
        if token.text == "{":
            return self.block()
        if token.text in ("if", "while", "for", "switch"):
            return self.headed(token.text)
        if token.text in ("else", "do"):
            self.out.append(token.text)
            self.at += 1
            return self.statement()
        if token.text in ("case", "default"):
            start = self.at
            while self.tokens[self.at].text != ":":
                self.at += 1
            self.at += 1
            return self.emit(self.tokens[start:self.at])
        self.simple()

    def headed(self, word):
        start = self.at
        if self.tokens[start + 1].text == "constexpr":
            word, start = "constexpr", start + 1
        opening = start + 1
        closing = self.close_of(opening)
        inside = self.tokens[opening + 1:closing]
        parts = self.split(inside, ";")
        head, tail = self.tokens[self.at:opening + 1], []
        if word in ("if", "while"):
            head, condition = head + sum((p + [self.semicolon(p)] for p in parts[:-1]), []), parts[-1]
        elif word == "for" and len(parts) == 3:
            head, condition = head + parts[0] + [self.semicolon(inside)], parts[1]
            tail = [self.semicolon(inside)] + parts[2]
        else:
            head, condition = head + inside, []
        self.emit(head)
        if condition and not self.declares(condition) and not self.has_body(condition):
            self.chain(condition, True)
        else:
            self.emit(condition)
        self.emit(tail)
        self.out.append(")")
        self.at = closing + 1
        self.statement()

    @staticmethod
    def semicolon(near):
        return Token("sign", ";", near[0].line if near else 0)

    @staticmethod
    def split(tokens, separator):
        parts, depth = [[]], 0
        for token in tokens:
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if token.text == separator and depth == 0:
                parts.append([])
            else:
                parts[-1].append(token)
        return parts

    @staticmethod
    def has_body(tokens):
        """Whether a lambda with a body stands in it."""
        return any(t.text == "{" and i > 0 and tokens[i - 1].text in (")", "mutable")
                   for i, t in enumerate(tokens))

    @staticmethod
    def declares(tokens):
        """Whether it is a declaration: a type and a name side by side before anything happens."""
        for i, token in enumerate(tokens):
            if token.text in ("(", "=", "{", "[") or token.text.endswith("="):
                return token.text == "[" and tokens[0].text in ("const", "auto")
            if token.kind == "word" and i > 0 and not token.tight and (
                    tokens[i - 1].kind == "word" or tokens[i - 1].text in (">", "*", "&")):
                return True
        return tokens[0].text in ("const", "auto", "static", "constexpr", "using")

    def simple(self):
        """A statement that ends with a semicolon."""
        start = self.at
        end = start
        while self.tokens[end].text != ";":
            end = self.close_of(end) + 1 if self.tokens[end].text in OPENING else end + 1
        body = self.tokens[start:end]
        if self.has_body(body):
            return self.through_lambdas(end)
        self.at = end + 1
        if body[0].text in ("return", "continue", "break"):
            return self.choose(body, removable=len(body) == 1)
        if not self.declares(body):
            return self.choose(body, removable=True)
        equals = next((i for i, t in enumerate(body) if t.text in ("=", "{", "(")), 0)
        fixed = {"static", "constexpr", "using"} & {t.text for t in body[:equals]}
        if body[equals].text == "=" and not fixed and body[equals + 1].text != "{":
            self.emit(body[:equals + 1])
            self.chain(body[equals + 1:], False)
            self.out.append(";")
            return
        self.emit(body + [self.semicolon(body)])

    def through_lambdas(self, end):
        """A statement with lambdas: only their bodies are mutated."""
        start = self.at
        while self.at < end:
            if self.tokens[self.at].text == "{" and self.tokens[self.at - 1].text in (")", "mutable"):
                self.emit(self.tokens[start:self.at])
                self.block()
                start = self.at
            else:
                self.at += 1
        self.emit(self.tokens[start:end + 1])
        self.at = end + 1

    # -- mutating

    def variants(self, tokens):
        """(what was done, the text) for every change of one token, once each."""
        seen = {words(tokens)}
        for i, token in enumerate(tokens):
            for what, replaced in self.changes(tokens, i):
                text = words(tokens[:i] + replaced + tokens[i + 1:])
                if text in seen:
                    continue
                seen.add(text)
                yield what, token.line, text

    @staticmethod
    def changes(tokens, i):
        token = tokens[i]

        def become(text, kind="sign"):
            new = Token(kind, text, token.line)
            new.tight = token.tight
            return [new]

        spaced = f" {token.text} " if not token.tight and i + 1 < len(tokens) and not tokens[i + 1].tight else ""
        if spaced in SWAPS and i > 0:
            yield f"{token.text} becomes {SWAPS[spaced].strip()}", become(SWAPS[spaced].strip())
        elif token.kind == "word" and token.text in WORDS:
            for other in WORDS[token.text]:
                yield f"{token.text} becomes {other}", become(other, "word")
        elif token.kind == "number" and re.fullmatch(r"\d[\d']*", token.text):
            more = str(int(token.text.replace("'", "")) + 1)
            yield f"{token.text} becomes {more}", become(more, "number")
        elif token.text == "!":
            yield "the negation is left out", become("")
        elif token.text == "++":
            yield "++ becomes --", become("--")

    @staticmethod
    def negated_already(tokens):
        """Whether the change of one sign says the opposite: a == b, !a."""
        signs = [t.text for t in tokens]
        if "&&" in signs or "||" in signs or "?" in signs:
            return False
        return "==" in signs or "!=" in signs or signs[0] == "!"

    def add(self, what, line, text):
        if text in self.dropped:
            return None
        mutant = Mutant(self.name, line, what, text)
        mutant.number = self.first + len(self.mutants)
        self.mutants.append(mutant)
        return mutant.number

    def chain(self, tokens, condition):
        """A condition or an initializer: c1 ? m1 : c2 ? m2 : original."""
        plain = words(tokens)
        cast = "static_cast<bool>" if condition else ""
        lines = []
        choices = list(self.variants(tokens))
        if condition and not self.negated_already(tokens):
            choices.append(("the condition is negated", tokens[0].line, f"!({plain})"))
        for what, line, text in choices:
            number = self.add(what, line, text)
            if number:
                lines.append(f"/*m{number}*/ skiff_mutant({number}) ? {cast}({text}) :")
        self.out += lines
        self.out.append(f"{cast}({plain})" if lines else plain)

    def choose(self, tokens, removable):
        """A statement: if (chosen) { mutant } else { original }."""
        plain = words(tokens)
        lines = []
        for what, line, text in self.variants(tokens):
            number = self.add(what, line, text)
            if number:
                lines.append(f"/*m{number}*/ if (skiff_mutant({number})) {{ {text}; }} else")
        if removable:
            number = self.add("the statement is left out", tokens[0].line, f"/* {plain} */")
            if number:
                lines.append(f"/*m{number}*/ if (skiff_mutant({number})) {{ }} else")
        if not lines:
            self.out.append(plain + ";")
            return
        self.out += ["{"] + lines + ["{ " + plain + "; } }"]
