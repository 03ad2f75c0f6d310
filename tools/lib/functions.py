"""Finds the function bodies of a C++ file: at namespace and class scope, whatever their signature
looks like. It reads tokens, not a grammar: what it cannot place is skipped as an initializer."""
import re

TOKEN = re.compile(r"""
    (?P<skip> (?: \s+ | //[^\n]* | /\*.*?\*/ | \#(?:[^\n]*\\\n)*[^\n]* )+ )
  | (?P<text> (?:u8|[uUL])?R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)" | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
            | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
  | \.?\d(?:'?[\w.])* | \w+ | :: | -> | .
""", re.X | re.S)
OPEN = {"(": ")", "[": "]", "{": "}"}
# What stands before the bracket of a lambda; anything else makes it a subscript.
BEFORE_LAMBDA = {"return", "=", "(", ",", "{", "&", "?", ":"}


def tokens(text):
    """(token, line) of what is neither comment nor directive; a literal is the token `""`."""
    line = 1
    for m in TOKEN.finditer(text):
        if m.group("text"):
            yield '""', line
        elif not m.group("skip"):
            yield m.group(), line
        line += m.group().count("\n")


class Reader:
    """Walks over the tokens once. `functions` gets (first line, last line, name)."""

    def __init__(self, text):
        self.all = list(tokens(text))
        self.at = 0
        self.functions = []
        self.scope()

    def scope(self):
        """Reads declarations until the brace that closes this namespace or class."""
        head = []  # Indexes of the tokens of this declaration, groups in parentheses left out.
        while self.at < len(self.all):
            token = self.all[self.at][0]
            if token == "}":
                self.at += 1
                return
            if token == ";":
                head, self.at = [], self.at + 1
            elif token == ":" and self.words(head) in (["public"], ["private"], ["protected"]):
                head, self.at = [], self.at + 1
            elif token == "<" and self.words(head)[-1:] == ["template"]:
                self.angles()
            elif token == "[" and self.opens_lambda(head):
                self.lambda_(head)
            elif token in ("(", "[") or token == "{" and self.initializes(head):
                head.append(self.at)
                self.group()
            elif token == "{":
                self.braces(head)
                head = []
            else:
                head.append(self.at)
                self.at += 1

    def words(self, head):
        return [self.all[i][0] for i in head]

    def outer(self, head):
        """The words outside of angle brackets: std::function<void()> has no parameters."""
        out, depth = [], 0
        for before, word in zip(["", *self.words(head)], self.words(head)):
            depth += word == "<" and before != "operator"
            if depth == 0:
                out.append(word)
            depth -= word == ">" and depth > 0
        return out if depth == 0 else self.words(head)

    def angles(self):
        """Skips the parameters of a template."""
        depth = 0
        while self.at < len(self.all):
            token = self.all[self.at][0]
            if token in OPEN:
                self.group()
                continue
            depth += {"<": 1, ">": -1}.get(token, 0)
            self.at += 1
            if depth == 0:
                return

    def group(self):
        """Skips from an opening bracket to its end; lambdas on the way are functions."""
        close = OPEN[self.all[self.at][0]]
        self.at += 1
        while self.at < len(self.all):
            token = self.all[self.at][0]
            if token == close:
                self.at += 1
                return
            if token == "[" and self.opens_lambda([self.at - 1]):
                self.lambda_([])
            elif token in OPEN:
                self.group()
            else:
                self.at += 1

    def opens_lambda(self, head):
        """Whether the bracket here begins a lambda: not a subscript, not an attribute."""
        before = self.words(head)[-1:]
        return self.all[self.at + 1][0] != "[" and before != [] and before[0] in BEFORE_LAMBDA

    def lambda_(self, head):
        """From the bracket of a lambda to the brace that ends it."""
        first = self.all[head[0] if head else self.at][1]
        words = self.words(head)
        name = words[words.index("=") - 1] if "=" in words else "a lambda"
        self.group()
        while self.all[self.at][0] not in ("{", ";", ")", "}"):
            if self.all[self.at][0] in OPEN:
                self.group()
            else:
                self.at += 1
        if self.all[self.at][0] == "{":
            self.body(first, name)

    def initializes(self, head):
        """Whether the brace here is a value, `x{1}` or `= {1}`, and not a body."""
        words = self.outer(head)
        if not words or words[0] in ("namespace", "extern") or words[:2] == ["inline", "namespace"]:
            return False
        if "enum" in words:
            return True
        if {"class", "struct", "union"} & set(words) and "(" not in words:
            return False
        if "=" in words and "operator" not in words or words[-1] == "=":
            return True
        if "(" not in words or words[-2:] == ["requires", "("]:
            return True
        # After `Name(...) :` comes a list of members: a brace after a name belongs to it.
        parameters = words.index("(")
        return ":" in words[parameters:] and words[-1] not in ("(", "{", ")")

    def braces(self, head):
        """At the brace of a namespace, a class or a function."""
        words = self.outer(head)
        if "(" not in words or words[0] in ("namespace", "extern"):
            self.at += 1
            self.scope()
        else:
            self.body(self.all[head[0]][1], self.name(words))

    def name(self, words):
        if "operator" in words:
            return "".join(words[words.index("operator"):][:2])
        end = words.index("(")
        begin = end - 1
        while begin >= 2 and words[begin - 1] in ("::", "~"):
            begin -= 2 if words[begin - 1] == "::" else 1
        return "".join(words[max(begin, 0):end])

    def body(self, first, name):
        depth = 0
        while self.at < len(self.all):
            token, line = self.all[self.at]
            depth += {"{": 1, "}": -1}.get(token, 0)
            self.at += 1
            if depth == 0:
                self.functions.append((first, line, name))
                return


def functions(lines):
    """(first line, last line, name) of each function, its signature included."""
    return Reader("\n".join(lines) + "\n").functions
