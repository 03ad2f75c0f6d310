"""Finds names that two files of a library declare, each for itself."""
import os
import re

# A token of C++; comments, literals and directives are matched, too, but have no `token`.
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'|\d[\w']*|(?P<token>[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*|\S)|\n", re.S | re.M)
LOCAL_CONSTANT = re.compile(
    r"^[ \t]+(?:static )?(?:const|constexpr)\b[^;=(]*?\b(k[A-Z]\w*)(?=\s*[={\[;(])", re.M)


def declared_name(head):
    """What a declaration at namespace level declares; "" for nothing that could clash. `head` is
    the declaration without what is inside of its brackets."""
    flat, depth = [], 0
    for token in head:  # Without the arguments of templates.
        depth += (token == "<") - (token == ">")
        if token not in "<>" and depth == 0:
            flat.append(token)
    while flat and flat[0] in ("template", "static", "inline", "constexpr", "constinit", "extern"):
        flat.pop(0)
    # GoogleTest asks for the name PrintTo; it is told apart by its parameters, as operators are.
    if not flat or {"operator", "PrintTo", "namespace", "friend"} & set(flat):
        return ""
    if flat[0] in ("TEST", "TEST_F", "TEST_P"):
        return "_".join([t for t in flat[2:] if t != ","][:2]) + "_Test"
    if flat[0] == "using":
        return flat[1].split("::")[-1]
    if flat[0] in ("struct", "class", "union", "enum") and not {"(", "="} & set(flat):
        words = [t for t in flat[1:] if t not in ("class", "struct")]
        return words[0] if words and "{" in flat and "::" not in words[0] else ""
    for i, token in enumerate(flat):
        if token in "(={[;" and i > (token == "("):
            plain = re.fullmatch(r"[A-Za-z_]\w*", flat[i - 1]) and flat[i - 2] != ":"
            return flat[i - 1] if plain else ""
    return ""


def names_of(text):
    """What a file declares at namespace level: (namespace, name, line, local to the file, what may
    be repeated in other files)."""
    stack, head, depth, line, start, ended = [], [], 0, 1, 1, False
    for m in TOKEN.finditer(text + "\n;"):
        line += m.group(0).count("\n")
        token = m.group("token")
        if not token:
            continue
        if depth == 0 and (token == ";" or (ended and (token[0].isalpha() or token in "}["))):
            name = declared_name(head + [";"])
            if name:
                # `using a::b` and `using A = B` may be said again, as long as they say the same.
                alias = " ".join(head) if head[0] == "using" else ""
                local = "" in stack or "static" in head or (alias and "=" not in head)
                yield tuple(s for s in stack if s), name, start, bool(local), alias
            head, ended = [], False
            if token == ";":
                continue
        ended = False
        if not head:
            start = line
        if depth == 0 and token == "{" and head and head[0] in ("namespace", "extern"):
            stack.append(head[-1] if len(head) > 1 else "" if head[0] == "namespace" else "extern")
            head = []
        elif depth == 0 and token == "}":
            del stack[-1:]
            head = []
        elif token in "([{":
            if depth == 0:
                head.append(token)
            depth += 1
        elif token in ")]}":
            depth -= 1
            ended = depth == 0 and token == "}"
        elif depth == 0 or (head[0].startswith("TEST") and len(head) < 5):
            head.append(token)


def libraries(texts):
    """The files of each library that are compiled in batches, and apart from them its tests."""
    for path, text in texts.items():
        m = os.path.basename(path) == "CMakeLists.txt" and re.search(r"\bskiff_library\(([^)]*)\)", text)
        if not m:
            continue
        lists, key = {}, "NAME"
        for word in m.group(1).split():
            if word in ("LINK", "TEST_LINK", "SUBFOLDERS", "ALONE"):
                key = word
            else:
                lists.setdefault(key, []).append(word)
        home = os.path.dirname(path)
        folders = [home] + [f"{home}/{sub}" for sub in lists.get("SUBFOLDERS", [])]
        alone = [f"{home}/{name}" for name in lists.get("ALONE", [])]
        files = [p for p in texts if os.path.dirname(p) in folders and p.endswith(".cc")
                 and not p.endswith(("_fuzz.cc", "_bench.cc")) and p not in alone]
        yield [p for p in files if not p.endswith("_test.cc")]
        yield [p for p in files if p.endswith("_test.cc")]


def check_unique_names(texts):
    """Files of a library are compiled in batches (SKIFF_UNITY), so what is local to one of them may
    not be declared by another, nor by a header in a namespace around it. `texts` has the text of
    every .h, .cc and CMakeLists.txt by its path."""
    names = {p: list(names_of(text)) for p, text in texts.items() if p.endswith((".h", ".cc"))}
    headers = {}  # (namespace, name): path
    for path, found in names.items():
        if path.endswith(".h"):
            headers.update({(ns, name): path for ns, name, _, _, alias in found if not alias})
    why = "files of a library are compiled in batches, so names in anonymous namespaces are unique"
    for files in libraries(texts):
        first, constants = {}, {}
        for path in files:
            for ns, name, line, local, alias in names[path]:
                other, other_local, other_alias = first.setdefault((ns, name), (path, local, alias))
                same = alias and alias == other_alias
                if other != path and (local or other_local) and not same:
                    yield path, line, f"name `{name}` is also defined in {other}; {why}"
                around = [headers[ns[:i], name] for i in range(len(ns) + 1) if (ns[:i], name) in headers]
                if local and around:
                    yield path, line, f"name `{name}` is also declared in {around[0]}; {why}"
                if local and name.startswith("k"):
                    constants[name] = path
        for path in files:
            for m in LOCAL_CONSTANT.finditer(texts[path]):
                if constants.get(m.group(1), path) != path:
                    yield (path, texts[path].count("\n", 0, m.start()) + 1,
                           f"constant `{m.group(1)}` hides that of {constants[m.group(1)]}; {why}")
            for m in re.finditer(r"^using namespace (?!std::)[\w:]+", texts[path], re.M):
                yield (path, texts[path].count("\n", 0, m.start()) + 1,
                       f"`{m.group(0)}` holds for all files of a batch; name what is used")
