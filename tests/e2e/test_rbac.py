"""Who may what, asked with the real kubectl: roles, impersonation, tokens of service accounts."""
import base64
import json

from skiff import wait_for


def forbidden(done):
    assert done.returncode, done.stdout
    assert "Forbidden" in done.stderr or "forbidden" in done.stderr, done.stderr
    return done.stderr


def test_can_i_and_whoami(skiff):
    assert skiff.kubectl("auth", "can-i", "*", "*").stdout.strip() == "yes"
    assert "skiff-admin" in skiff.kubectl("auth", "whoami").stdout
    no = skiff.kubectl("auth", "can-i", "get", "pods", "--as=ann", check=False)
    assert (no.returncode, no.stdout.strip()) == (1, "no")
    who = json.loads(skiff.kubectl("auth", "whoami", "--as=ann", "--as-group=team", "-o", "json").stdout)
    assert who["status"]["userInfo"] == {"username": "ann", "groups": ["team", "system:authenticated"]}
    rules = skiff.kubectl("auth", "can-i", "--list", "--as=ann").stdout
    assert "selfsubjectaccessreviews.authorization.k8s.io" in rules and "/openapi/*" in rules


def test_a_role_and_its_end(skiff):
    error = forbidden(skiff.kubectl("get", "pods", "--as=bob", check=False))
    assert ('pods is forbidden: User "bob" cannot list resource "pods" in API group "" '
            'in the namespace "default"') in error
    skiff.kubectl("create", "rolebinding", "bob-views", "--clusterrole=view", "--user=bob")
    skiff.kubectl("get", "pods", "--as=bob")
    forbidden(skiff.kubectl("get", "pods", "-A", "--as=bob", check=False))
    forbidden(skiff.kubectl("get", "secrets", "--as=bob", check=False))
    forbidden(skiff.kubectl("create", "configmap", "c", "--as=bob", check=False))
    skiff.kubectl("delete", "rolebinding", "bob-views")
    forbidden(skiff.kubectl("get", "pods", "--as=bob", check=False))


def test_nobody_gives_what_they_do_not_have(skiff):
    skiff.kubectl("create", "rolebinding", "cat-administers", "--clusterrole=admin", "--user=cat")
    skiff.kubectl("create", "role", "readers", "--verb=get", "--resource=pods", "--as=cat")
    error = forbidden(skiff.kubectl("create", "role", "nodes", "--verb=get", "--resource=nodes",
                                    "--as=cat", check=False))
    assert 'is attempting to grant RBAC permissions not currently held' in error
    assert '{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}' in error
    error = forbidden(skiff.kubectl("create", "rolebinding", "more", "--clusterrole=cluster-admin",
                                    "--user=cat", "--as=cat", check=False))
    assert 'is attempting to grant RBAC permissions not currently held' in error


def test_roles_gather_others_by_label(skiff):
    skiff.kubectl("create", "clusterrole", "boats", "--verb=get", "--resource=pods/exec")
    skiff.kubectl("label", "clusterrole", "boats", "rbac.authorization.k8s.io/aggregate-to-view=true")
    role = lambda: skiff.kubectl("get", "clusterrole", "view", "-o", "json").stdout  # noqa: E731
    wait_for(lambda: "pods/exec" in role())
    skiff.kubectl("delete", "clusterrole", "boats")
    wait_for(lambda: "pods/exec" not in role())


def test_tokens_of_service_accounts(skiff):
    skiff.kubectl("create", "namespace", "crew")
    skiff.kubectl("-n", "crew", "get", "serviceaccount", "default")  # there at once
    ca = skiff.kubectl("-n", "crew", "get", "configmap", "kube-root-ca.crt", "-o", "jsonpath={.data.ca\\.crt}").stdout
    assert ca.startswith("-----BEGIN CERTIFICATE-----")
    skiff.kubectl("-n", "crew", "create", "serviceaccount", "robot")
    token = skiff.kubectl("-n", "crew", "create", "token", "robot", "--duration=10m").stdout.strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == "system:serviceaccount:crew:robot"
    assert claims["exp"] - claims["iat"] == 600
    path = "/api/v1/namespaces/crew/configmaps"
    assert skiff.request("GET", path, token=token)[0] == 403
    skiff.kubectl("-n", "crew", "create", "rolebinding", "robot", "--clusterrole=view", "--serviceaccount=crew:robot")
    assert skiff.request("GET", path, token=token)[0] == 200
    assert skiff.request("GET", path, token=token[:-4] + "AAAA")[0] == 401
    status, jwks = skiff.request("GET", "/openid/v1/jwks", token=token)
    assert status == 200 and jwks["keys"][0]["alg"] in ("ES256", "RS256")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status, answer = skiff.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert status == 201 and answer["status"]["user"]["username"] == "system:serviceaccount:crew:robot"
    skiff.kubectl("-n", "crew", "delete", "serviceaccount", "robot")
    assert skiff.request("GET", path, token=token)[0] == 401


def test_tokens_survive_a_restart(skiff):
    token = skiff.kubectl("create", "token", "default").stdout.strip()
    assert skiff.request("GET", "/api", token=token)[0] == 200
    skiff.kill()
    skiff.start()
    assert skiff.request("GET", "/api", token=token)[0] == 200


def test_a_secret_that_carries_a_token(skiff, manifest):
    skiff.kubectl("apply", "-f", manifest({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "carried", "annotations": {"kubernetes.io/service-account.name": "default"}}}))
    secret = wait_for(lambda: (skiff.get("/api/v1/namespaces/default/secrets/carried").get("data") or {}).get("token"))
    token = base64.b64decode(secret).decode()
    assert skiff.request("GET", "/api", token=token)[0] == 200
    skiff.kubectl("delete", "secret", "carried")
    assert skiff.request("GET", "/api", token=token)[0] == 401
