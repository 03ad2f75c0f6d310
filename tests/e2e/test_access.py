"""Who may talk to Skiff (tokens, certificates, the same user on this machine)."""
import http.client
import subprocess

from skiff import Skiff


def test_local_trust_and_its_limits(skiff):
    assert skiff.request("GET", "/api/v1/pods")[0] == 200  # the same user on loopback
    assert skiff.request("GET", "/api/v1/pods", headers={"Origin": "http://evil.example"})[0] in (401, 403)
    assert skiff.request("GET", "/api/v1/pods", headers={"Sec-Fetch-Site": "cross-site"})[0] in (401, 403)
    connection = http.client.HTTPConnection("127.0.0.1", skiff.http)
    connection.request("GET", "/api/v1/pods", headers={"Host": "evil.example"})
    assert connection.getresponse().status in (401, 403)


def test_another_user_needs_a_token(skiff):
    def as_nobody(*more):
        return subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "curl", "-s", "-o", "/dev/null",
                               "-w", "%{http_code}", *more, f"http://127.0.0.1:{skiff.http}/api/v1/pods"],
                              capture_output=True, text=True).stdout
    assert as_nobody() == "403"
    assert as_nobody("-H", f"Authorization: Bearer {skiff.token()}") == "200"
    assert as_nobody("-H", "Authorization: Bearer wrong") == "401"


def test_https_takes_tokens_and_certificates_only(skiff):
    def curl(*more):
        return subprocess.run(["curl", "-s", "-k", "-o", "/dev/null", "-w", "%{http_code}", *more,
                               f"https://127.0.0.1:{skiff.https}/api/v1/pods"], capture_output=True, text=True).stdout
    assert curl() == "403"
    assert curl("-H", f"Authorization: Bearer {skiff.token()}") == "200"
    assert curl("-u", f"any:{skiff.token()}") == "200"
    assert skiff.kubectl("get", "pods").returncode == 0  # by client certificate


def test_health_is_open_and_token_in_address_signs_a_browser_in(skiff):
    assert skiff.request("GET", "/readyz", headers={"Origin": "http://x.example"}) == (200, "ok")
    connection = http.client.HTTPConnection("127.0.0.1", skiff.http)
    connection.request("GET", f"/?token={skiff.token()}", headers={"Host": f"127.0.0.1:{skiff.http}"})
    answer = connection.getresponse()
    assert answer.status in (200, 302, 303)
    assert "HttpOnly" in (answer.getheader("Set-Cookie") or "")


def test_no_local_trust():
    server = Skiff("--no-local-trust").start()
    try:
        assert server.request("GET", "/api/v1/pods")[0] == 403
        assert server.request("GET", "/api/v1/pods", token=server.token())[0] == 200
    finally:
        server.stop()
