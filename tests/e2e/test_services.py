"""What stands behind a Service, as kubectl shows it."""
import json

from skiff import wait_for

POD = {"terminationGracePeriodSeconds": 1,
       "containers": [{"name": "main", "image": "skiff.dev/host",
                       "command": ["sh", "-c", "sleep 600"],
                       "ports": [{"name": "web", "containerPort": 8080}]}]}


def deployment(replicas):
    return json.dumps({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD}}})


def service(**spec):
    return json.dumps({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "web"}], **spec}})


def get(skiff, *what):
    return json.loads(skiff.kubectl("get", *what, "-o", "json").stdout)


def addresses(skiff):
    return sorted(a["ip"] for subset in get(skiff, "endpoints", "web").get("subsets", [])
                  for a in subset.get("addresses", []))


def slices(skiff):
    return get(skiff, "endpointslices", "-l", "kubernetes.io/service-name=web")["items"]


def pod_ips(skiff):
    return sorted(pod["status"]["podIP"] for pod in skiff.pods(selector="app=web")
                  if pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"])


def test_endpoints_follow_the_pods_of_a_service(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=service())
    wait_for(lambda: len(slices(skiff)) == 1)
    assert addresses(skiff) == []
    skiff.kubectl("apply", "-f", "-", stdin=deployment(2))
    skiff.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    wait_for(lambda: len(addresses(skiff)) == 2 and addresses(skiff) == pod_ips(skiff))

    # They are written one after the other.
    wait_for(lambda: [len(s["endpoints"]) for s in slices(skiff)] == [2])
    found = slices(skiff)
    assert found[0]["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert sorted(e["addresses"][0] for e in found[0]["endpoints"]) == addresses(skiff)
    wait_for(lambda: all(e["conditions"] == {"ready": True, "serving": True, "terminating": False}
                         for e in slices(skiff)[0]["endpoints"]))
    assert found[0]["metadata"]["labels"]["team"] == "a"
    assert "8080" in skiff.kubectl("describe", "service", "web").stdout.split("Endpoints:")[1]

    skiff.kubectl("scale", "deployment/web", "--replicas=1")
    wait_for(lambda: len(pod_ips(skiff)) == 1 and addresses(skiff) == pod_ips(skiff))
    wait_for(lambda: len(slices(skiff)[0]["endpoints"]) == 1)

    before = [get(skiff, "endpoints", "web")["metadata"]["resourceVersion"],
              slices(skiff)[0]["metadata"]["resourceVersion"]]
    skiff.kubectl("annotate", "service", "web", "note=x")
    skiff.kubectl("annotate", "pod", "-l", "app=web", "note=x")
    skiff.kubectl("scale", "deployment/web", "--replicas=0")
    wait_for(lambda: addresses(skiff) == [])
    after = int(get(skiff, "endpoints", "web")["metadata"]["resourceVersion"])
    assert after > int(before[0])

    skiff.kubectl("delete", "service", "web")
    wait_for(lambda: slices(skiff) == [])
    wait_for(lambda: skiff.get("/api/v1/namespaces/default/endpoints/web") is None)


def test_a_pod_that_is_not_ready_is_listed_apart(skiff):
    pod = json.loads(json.dumps(POD))
    pod["readinessGates"] = [{"conditionType": "example.com/warm"}]
    skiff.kubectl("apply", "-f", "-", stdin=service(clusterIP="None"))
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cold", "labels": {"app": "web"}},
         "spec": pod}))

    def unready():
        return [a["targetRef"]["name"] for s in get(skiff, "endpoints", "web").get("subsets", [])
                for a in s.get("notReadyAddresses", [])]

    wait_for(lambda: unready() == ["cold"])
    assert addresses(skiff) == []
    wait_for(lambda: [e["conditions"]["ready"] for s in slices(skiff) for e in s["endpoints"] or []] == [False])
    skiff.kubectl("patch", "service", "web", "-p", '{"spec":{"publishNotReadyAddresses":true}}')
    wait_for(lambda: addresses(skiff) == pod_ips(skiff) != [])
    wait_for(lambda: unready() == [])
