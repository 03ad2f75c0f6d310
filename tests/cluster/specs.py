"""Runs specs of upstream's own suite (e2e.test) and reads its reports."""
import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A spec that changes the node or counts all pods wants nobody beside it.
ALONE = re.compile(r"\[(Serial|Disruptive)\]")


def program(*names):
    """The path of the first; all are built if need be."""
    folder = subprocess.run([ROOT / "tools" / "cluster", *names], stdout=subprocess.PIPE, text=True,
                            check=True).stdout.strip()
    return f"{folder}/{names[0]}"


class Result:
    """How one spec ended: "passed", "failed" or "skipped" (by itself, where it finds that it cannot run)."""

    def __init__(self, outcome, seconds, message):
        self.outcome, self.seconds, self.message = outcome, seconds, message

    @property
    def passed(self):
        return self.outcome == "passed"


def read_report(folder, wanted):
    """{name: Result} of the specs whose name `wanted` accepts."""
    results = {}
    for report in pathlib.Path(folder).glob("junit*.xml"):
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            # "[It] [sig-x] name [sig-x, labels]"
            name = re.sub(r" \[sig-[a-z-]+(, [^\]]*)?\]$", "", re.sub(r"^\[It\] ", "", case.get("name")))
            if not name.startswith("[sig-") or not wanted(name):
                continue
            failure = case.find("failure") if case.find("failure") is not None else case.find("error")
            skipped = case.find("skipped")
            outcome = "failed" if failure is not None else "skipped" if skipped is not None else "passed"
            words = failure if failure is not None else skipped if skipped is not None else case
            message = (words.get("message") or "").strip() or (words.text or "").strip()
            results[name] = Result(outcome, float(case.get("time")), message)
    return results


def list_specs(focus, skip="^$"):
    """The names of the specs that `focus` means; runs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program("e2e.test"), "--provider=skeleton", "--kubeconfig=/dev/null", "--ginkgo.dry-run",
                        f"--ginkgo.focus={focus}", f"--ginkgo.skip={skip}", f"--report-dir={folder}"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        found = read_report(folder, lambda name: re.search(focus, name) and not re.search(skip, name))
        return sorted(name for name, result in found.items() if result.passed)


def run_specs(kubeconfig, focus, out, skip="^$", timeout="40m", nodes="-1", more=()):
    """One process of the suite; {name: Result}. Its output goes to the file `out`."""
    with tempfile.TemporaryDirectory() as folder:
        with open(out, "w") as log:
            subprocess.run([program("e2e.test"), "--provider=skeleton", f"--kubeconfig={kubeconfig}",
                            f"--ginkgo.focus={focus}", f"--ginkgo.skip={skip}", "--ginkgo.v",
                            f"--ginkgo.timeout={timeout}", "--ginkgo.no-color", f"--allowed-not-ready-nodes={nodes}",
                            "--minStartupPods=0", "--disable-log-dump", f"--report-dir={folder}", *more],
                           stdout=log, stderr=log)
        return read_report(folder, lambda name: re.search(focus, name) and not re.search(skip, name))


def exactly(names):
    """A focus that means these specs."""
    return "|".join(re.escape(name) for name in names)
