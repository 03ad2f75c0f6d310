"""Planted faults for tools/tidy --self-test: each must be found, and what is just right must pass."""
import os
import tempfile

import changed
import compiling


def long(before, after, lines):
    """A definition of that many lines: `before`, statements, `after`."""
    return before + ["  g();"] * (lines - len(before) - len(after)) + after


SHAPES = {
    "a function": (["void f() {"], ["}"]),
    "a wrapped signature": (["std::vector<int> f(int a,", "                   int b) {"], ["}"]),
    "a trailing return type": (["auto f(int a)", "    -> std::map<int, int> {"], ["}"]),
    "a constructor": (["A::A(int a)", "    : a_(a),", "      b_{a, {1}} {"], ["}"]),
    "a template": (["template <typename T, int n = 3>", "T f(T a) {"], ["}"]),
    "an operator": (["bool operator()(int a) const {"], ["}"]),
    "an assignment": (["A& A::operator=(A&& other) noexcept {"], ["}"]),
    "a lambda": (["const auto f = [](int a) {"], ["};"]),
    "a lambda in a call": (["const bool done = add(1, [] {"], ["});"]),
    "after traps": (['const char* a = R"x(} " { )" )x"; char b = \'{\'; int c = 1\'000;  // {', "#define A {",
                     "void f() {"], ["}"]),
}
AROUND = {
    "alone": ([], []),
    "in a class": (["class A : public B {", " public:", "  A() = default;"], [" private:", "  int a_{0};", "};"]),
    "in a nested namespace": (["namespace a::b {", "namespace {"], ["}", "}"]),
    "in a class in a class": (["struct A {", "  int b = 1;", "  class B {"], ["  };", "};"]),
}
# Long, but none of them is a function that is too long.
HARMLESS = {
    "a table": ["const Row kRows[] = {"] + ["    {1, [] { return 2; }},"] * 90 + ["};"],
    "a braced table": ["const std::vector<std::function<void(int)>> kRows{"] + ["    {},"] * 90 + ["};"],
    "a class": ["class A {"] + ["  void f() { g(); }"] * 90 + ["};"],
    "an enum": ["enum class A : int {"] + ["  kA,"] * 90 + ["};"],
    "a test": ["TEST(A, b) {"] + ["  g();"] * 90 + ["}"],
    "a text": ['const char* kText = R"(void f() {'] + ["x"] * 90 + [')";'],
    "a comment": ["/* void f() {"] + ["x"] * 90 + ["} */"],
}


def function_cases(check):
    """(number of cases, what went wrong) of check_budgets."""
    bad, cases = [], 0
    for where, (begin, end) in AROUND.items():
        for shape, (before, after) in SHAPES.items():
            cases += 2
            name = f"{shape} {where}"
            # The traps of "after traps" stand before the function.
            extra = 2 if shape == "after traps" else 0
            for lines in (70, 71):
                found = list(check("src/base/a.cc", begin + long(before, after, lines + extra) + end))
                if bool(found) != (lines == 71):
                    bad.append(f"{check.__name__}: {name} of {lines} lines: {found}")
    for name, lines in HARMLESS.items():
        cases += 1
        if found := list(check("src/base/a_test.cc", lines)):
            bad.append(f"{check.__name__} wrongly rejects {name}: {found}")
    return cases, bad


def folder_cases(check):
    def folder(n):
        tests = ["src/a/x_test.cc", "src/a/x_fuzz.cc", "src/a/x_bench.cc", "src/a/README.md"]
        return [f"src/a/f{i}.{'h' if i % 2 else 'cc'}" for i in range(n)] + tests

    cases = [(41, {}, "at most 40"), (40, {}, ""), (45, {"src/a": 45}, ""), (46, {"src/a": 45}, "at most 45"),
             (44, {"src/a": 45}, "lower it to 44"), (40, {"src/a": 45}, "take it out"),
             (0, {"src/b": 45}, "take it out")]
    bad = []
    for n, large, expected in cases:
        said = " ".join(text for _, _, text in check(folder(n), large))
        if (expected not in said) if expected else said:
            bad.append(f"{check.__name__}: {n} files with {large}: {said}")
    return len(cases), bad


def subject_cases(check):
    bad = []
    for columns in (72, 73):
        if bool(list(check([("abc1234", "x" * columns)]))) != (columns == 73):
            bad.append(f"{check.__name__}: a subject of {columns} columns")
    return 2, bad


def name_cases(check):
    cmake = "skiff_library(a SUBFOLDERS sub LINK b ALONE alone.cc)\n"
    clash = [  # Each with the same in a second file, or with what the second one says.
        ("int f() { return 1; }",), ("struct S {\n  int x = 0;\n};",), ("constexpr int kA = 1;",),
        ("using T = int;", "using T = long;"), ("int f(int x) { return x; }", "bool f();"),
        ("using b::Field;", "struct Field {};"), ("template <class T>\nT f(T x) { return x; }",),
        ("constexpr int kA = 1;", "void g() {\n  constexpr int kA = 2;\n}"),
        ("TEST(Suite, Case) {}",), ("const std::map<int, long> kA = {{1, 2}};",),
        ("using namespace b;", ""), ('constexpr auto kA = R"(")";', "constexpr int kA = 1;"),
    ]
    fine = [
        ("int f() { return 1; }", "int g() { const int f = 2; return f; }"),
        ("void g() {\n  constexpr int kA = 2;\n}", "void f() {\n  constexpr int kA = 1;\n}"),
        ("using T = int;",), ("using b::Field;",), ("using namespace std::chrono_literals;",),
        ("struct A { int f; };", "struct B { int f; };"), ("// int f();", '#define X int f() { return "}"; }'),
        ("bool operator==(A, A) { return true; }", "bool operator==(B, B) { return true; }"),
        ("struct Outer::Impl {};", "struct Other::Impl {};"),
    ]

    def anonymous(text):
        return "namespace a {\nnamespace {\n" + text + "\n}  // namespace\n}  // namespace a\n"

    def found(one, two, second="src/a/sub/two.cc"):
        return list(check({"src/a/CMakeLists.txt": cmake, "src/a/one.cc": one, second: two}))

    must_clash = [found(anonymous(c[0]), anonymous(c[-1])) for c in clash]
    must_clash += [found("static int f() { return 1; }", "static int f() { return 2; }"),
                   found(anonymous("int f() { return 1; }"), "namespace a {\nint f() { return 2; }\n}\n"),
                   found(anonymous("int f() { return 1; }"), "namespace a {\nint f();\n}\n", "src/b/f.h")]
    may_pass = [found(anonymous(c[0]), anonymous(c[-1])) for c in fine]
    may_pass += [found(anonymous("int f() { return 1; }"), anonymous("int f() { return 2; }"), second)
                 for second in ("src/a/alone.cc", "src/a/one_test.cc", "src/b/two.cc")]
    may_pass += [found("namespace a {\nint f(int) { return 1; }\n}\n", "namespace a {\nint f() { return 2; }\n}\n")]
    bad = [f"check_unique_names missed case {i}" for i, found in enumerate(must_clash) if not found]
    bad += [f"check_unique_names wrongly rejects: {found}" for found in may_pass if found]
    return len(must_clash) + len(may_pass), bad


# path, text, what is said by the compiler, what by clang-tidy
COMPILED = [
    ("src/lacks.cc", "std::string f();\n", "std", "clang-diagnostic-error"),
    ("src/lacks.h", "#pragma once\nstd::string f();\n", "std", None),
    ("src/has.h", "#pragma once\n#include <string>\nstd::string f();\n", "", None),
    ("src/moved.cc", "#include <string>\n#include <utility>\nvoid g(std::string s);\nauto f(std::string s) {\n"
                     "  g(std::move(s));\n  return s.size();\n}\n", "", "bugprone-use-after-move"),
    ("src/good.cc", '#include "has.h"\nstd::string f() { return "good"; }\n', "", ""),
]


def compile_cases():
    bad = []
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "src"))
        for path, text, _, _ in COMPILED:
            with open(os.path.join(root, path), "w") as file:
                file.write(text)
        tree = compiling.Tree(root)
        alone = dict(compiling.check_standalone([c[0] for c in COMPILED], tree, cache=None))
        linted = dict(compiling.check_clang_tidy([c[0] for c in COMPILED if c[3] is not None], tree, cache=None))
    for path, _, compiler, linter in COMPILED:
        for expected, said in ((compiler, alone.get(path, "")), (linter, linted.get(path, ""))):
            if expected is not None and ((expected not in said) if expected else said):
                bad.append(f"{path}: expected '{expected}', not '{said}'")
    return len(COMPILED), bad + cache_cases()


def cache_cases():
    """A file is checked again when a header that it includes has changed, and only then."""
    calls = []
    with tempfile.TemporaryDirectory() as root:
        for name, text in (("a.cc", '#include "b.h"\n'), ("b.h", '#include "c.h"\n'), ("c.h", "int c;\n")):
            open(os.path.join(root, name), "w").write(text)
        for change in ("", "", "int d;\n"):
            open(os.path.join(root, "c.h"), "a").write(change)
            compiling.check_each(lambda _, path: calls.append(path), ["x"], compiling.Tree(root), ["a.cc"],
                                 os.path.join(root, "cache"))
    return [] if calls == ["a.cc"] * 2 else [f"the cache of compiling.py checked {calls}"]


def base_cases():
    """SKIFF_BASE is obeyed where HEAD descends from it; an unknown commit is no error."""
    before, bad = os.environ.get("SKIFF_BASE"), []
    head = changed.git("rev-parse", "HEAD")
    for given, expected in (("HEAD", head), ("0123456789abcdef", None), ("no-such-name", None)):
        os.environ["SKIFF_BASE"] = given
        base = changed.base_commit("tidy")
        if base != (expected or base) or changed.ancestor(base) is None:
            bad.append(f"base_commit with SKIFF_BASE={given} is {base}")
    os.environ.pop("SKIFF_BASE")
    if before is not None:
        os.environ["SKIFF_BASE"] = before
    return 3, bad
