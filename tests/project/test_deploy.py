"""The files for several machines: the proxy's configuration, the compose file, the chart."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import yaml

from faults.processes import free_port
from steelyard import __version__
from steelyard.http.access import TrustedProxies
from steelyard.scoring.assets import ENGINES
from steelyard.settings import SETTINGS, read_settings
from support.api.error_shape import assert_canonical_error
from support.servers.haproxy import HAPROXY, NEEDS_HAPROXY, haproxy, wait_for_servers
from support.servers.stand_ins import stand_in_server
from support.tree.repository import ROOT

CHART = ROOT / "deploy" / "chart"
COMPOSE = ROOT / "deploy" / "compose.yaml"
STORES = {
    "stateUrl": "postgresql+psycopg://steelyard:secret@database/steelyard",
    "framesUrl": "s3://key:secret@bucket/frames?region=eu-west-1",
}
NETWORKS = ["10.9.0.0/16", "fd00:9::/64"]
WORKLOADS = {"StatefulSet/acme-server", "Deployment/acme-worker", "Deployment/acme-proxy"}
VARIABLES = {setting.variable for setting in SETTINGS}


class StandIn(ThreadingHTTPServer):
    """A server that answers with its number, 401 to one key, and a set health."""

    daemon_threads = True

    def __init__(self, number: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.number = number
        self.forwarded: set[str] = set()

    def handle_error(self, *_: object) -> None:
        """Leave it: a probe of the proxy hung up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_GET(self) -> None:
        is_bad = self.headers.get("Authorization") == "Bearer bad"
        is_bad = is_bad and self.path != "/v1/health"
        self.server.forwarded.add(self.headers.get("X-Forwarded-For", ""))
        body = str(self.server.number).encode()
        self.send_response(401 if is_bad else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def behind_proxy(folder: Path, trusts: str = "") -> Iterator[tuple[str, list[StandIn]]]:
    """Run three servers behind HAProxy, which trusts who is in front of it."""
    with ExitStack() as stack:
        servers = [stack.enter_context(StandIn(number)) for number in range(3)]
        for server in servers:
            Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            stack.callback(server.shutdown)
        ports = [server.server_port for server in servers]
        url = stack.enter_context(haproxy(free_port(), ports, folder / "haproxy.log", trusts))
        wait_for_servers(url)
        yield url, servers


@pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY)
def test_the_proxy_shares_calls_and_counts_those_without_a_key(tmp_path: Path) -> None:
    keyed, bad = {"Authorization": "Bearer good"}, {"Authorization": "Bearer bad"}
    with behind_proxy(tmp_path) as (url, servers), httpx.Client(base_url=url, timeout=60) as http:
        shares = Counter(http.get("/v1/account", headers=keyed).text for _ in range(60))
        assert set(shares) == {"0", "1", "2"}
        # Who calls is told, whatever a caller says of itself.
        spoofed = {**keyed, "X-Forwarded-For": "198.51.100.1"}
        assert http.get("/v1/account", headers=spoofed).is_success
        for server in servers:
            assert server.forwarded <= {"127.0.0.1", ""}  # the probes of the proxy have none
        statuses = [http.get("/v1/models").status_code for _ in range(121)]
        assert statuses == [200] * 120 + [429]
        assert_canonical_error(http.get("/v1/models"), 429, "rate_limited", retryable=True)
        guesses = [http.get("/v1/account", headers=bad).status_code for _ in range(122)]
        assert set(guesses[:121]) == {401}
        assert guesses[-1] == 429


@pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY)
def test_the_proxy_believes_a_proxy_in_front_of_it(tmp_path: Path) -> None:
    def call(http: httpx.Client, told: str) -> set[str]:
        for server in servers:
            server.forwarded.clear()
        keyed = {"Authorization": "Bearer good", "X-Forwarded-For": told}
        assert http.get("/v1/account", headers=keyed).is_success
        return {one for server in servers for one in server.forwarded} - {""}

    with behind_proxy(tmp_path, "192.0.2.0/24 127.0.0.1") as (url, servers):
        with httpx.Client(base_url=url, timeout=60) as http:
            # One connection has the requests of many, whom the proxy in front adds at the right.
            assert call(http, "198.51.100.1") == {"198.51.100.1"}
            assert call(http, "127.0.0.1, 198.51.100.2") == {"198.51.100.2"}
            assert call(http, "2001:db8::7") == {"2001:db8::7"}
            assert call(http, "junk") == {"127.0.0.1"}
            told = [*["198.51.100.1"] * 121, "198.51.100.2"]
            asked = [http.get("/v1/models", headers={"X-Forwarded-For": one}) for one in told]
            assert [one.status_code for one in asked] == [200] * 120 + [429, 200]
        elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=url, timeout=60, transport=elsewhere) as http:
            assert call(http, "198.51.100.1") == {"127.0.0.2"}


@pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY)
def test_servers_behind_the_proxy_count_who_calls_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        settings = {"public_requests_per_minute": 2, "trusted_proxies": "127.0.0.1"}
        server = stack.enter_context(stand_in_server(**settings))
        url = stack.enter_context(haproxy(free_port(), [server.port] * 3, tmp_path / "log"))
        wait_for_servers(url)
        for address in ("127.0.0.2", "127.0.0.3"):
            transport = httpx.HTTPTransport(local_address=address)
            with httpx.Client(base_url=url, timeout=60, transport=transport) as http:
                spoofed = [
                    http.get("/openapi.json", headers={"X-Forwarded-For": f"198.51.100.{n}"})
                    for n in range(3)
                ]
                assert [one.status_code for one in spoofed] == [200, 200, 429]


@pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY)
def test_the_proxy_goes_on_without_a_server(tmp_path: Path) -> None:
    keyed = {"Authorization": "Bearer good"}
    with behind_proxy(tmp_path) as (url, servers):
        servers[1].shutdown()
        servers[1].server_close()
        answers = [httpx.get(f"{url}/v1/account", headers=keyed, timeout=60) for _ in range(30)]
        assert {answer.text for answer in answers} == {"0", "2"}


def test_the_compose_file_is_valid() -> None:
    composed = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    allowed = {"image", "build", "restart", "environment", "depends_on", "command", "volumes"}
    allowed |= {"ports", "healthcheck", "entrypoint", "stop_grace_period"}
    for name, service in composed["services"].items():
        assert service.keys() <= allowed, name
        assert all(isinstance(value, str) for value in service.get("environment", {}).values())
        conditions = service.get("depends_on", {})
        assert {condition["condition"] for condition in conditions.values()} <= {
            "service_started",
            "service_healthy",
        }, f"Podman does not restart {name} while it depends on a container that has ended"
        nested = [other for other in conditions if "depends_on" in composed["services"][other]]
        assert not nested, f"Podman 4.3 does not start {name}: what it depends on has dependencies"
    roles = Counter(name.partition("-")[0] for name in composed["services"])
    assert (roles["server"], roles["worker"], roles["proxy"]) == (3, 2, 1)
    # The proxy is of a network that the servers trust, and nobody from elsewhere is.
    [subnet] = composed["networks"]["default"]["ipam"]["config"]
    environ = composed["services"]["server-1"]["environment"]
    assert environ["STEELYARD_TRUSTED_PROXIES"] == subnet["subnet"]
    # Hosts that choose for themselves answer apart, and images that move start apart.
    assert environ["STEELYARD_ENGINE"] in ENGINES
    images = {service["image"] for service in composed["services"].values()}
    assert not [
        name for name in images - {"steelyard"} if not any(map(str.isdigit, name.partition(":")[2]))
    ]
    chart = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert chart["proxy"]["image"] in images
    # Nobody shares a home, and the proxy has every server by its name.
    homes = [
        service["volumes"]
        for name, service in composed["services"].items()
        if name.startswith(("server", "worker"))
    ]
    assert len(homes) == len({str(home) for home in homes})
    told = composed["services"]["proxy"]["environment"]
    named = {told[f"STEELYARD_SERVER_{number}"] for number in (1, 2, 3)}
    assert named == {f"server-{number}:8420" for number in (1, 2, 3)}


def test_docker_reads_the_compose_file() -> None:
    docker = shutil.which("docker")
    has_compose = (
        docker
        and not subprocess.run(
            [docker, "compose", "version"], capture_output=True, check=False
        ).returncode
    )
    if not has_compose:
        pytest.skip("needs docker compose")
    done = subprocess.run(
        [docker, "compose", "-f", str(COMPOSE), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


class Helm:
    """Rendering and linting, by the program or by its Python package."""

    def __init__(self) -> None:
        self._program = shutil.which("helm")
        if self._program is None:
            self._package = pytest.importorskip(
                "helm_python", reason="needs helm, or pip install steelyard[test-helm]"
            )

    def lint(self, values: dict[str, Any]) -> list[str]:
        """Return the chart's faults."""
        if self._program is None:
            report = self._package.lint(str(CHART), values, strict=True)
            return [
                *report["errors"],
                *(m["error"] for m in report["messages"] if m["severity"] > 1),
            ]
        done = self._run("lint", "--strict", str(CHART), values=values)
        return [] if done.returncode == 0 else [done.stdout + done.stderr]

    def render(self, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the manifests, by kind and name."""
        if self._program is None:
            chart = self._package.Chart.load(str(CHART))
            chart.validate_schema(values)
            texts = chart.render(values, name="acme", namespace="ns")
            text = "\n---\n".join(one for name, one in texts.items() if name.endswith(".yaml"))
        else:
            done = self._run("template", "acme", str(CHART), "--namespace", "ns", values=values)
            if done.returncode:
                raise ValueError(done.stderr)
            text = done.stdout
        found = [one for one in yaml.safe_load_all(text) if one]
        return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}

    def _run(self, *arguments: str, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        assert self._program is not None
        return subprocess.run(
            [self._program, *arguments, "--values", "-"],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def helm() -> Helm:
    return Helm()


def test_the_chart_has_no_faults(helm: Helm) -> None:
    assert helm.lint(STORES) == []


@pytest.mark.parametrize(
    "values",
    [
        {},
        {**STORES, "servers": {"replicas": 0}},
        {**STORES, "secretSettings": {"STEELYARD_STRIPE_KEY": {"name": "payments"}}},
        {**STORES, "ingress": {"enabled": True}},
        {**STORES, "settings": {"port": "1"}},
        {**STORES, "stateUrl": "sqlite:///state"},
        {**STORES, "colour": "red"},
    ],
)
def test_values_that_cannot_be_used_are_refused(helm: Helm, values: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"stateUrl|replicas|[sS]ettings|host|port|colour"):
        helm.render(values)


def test_the_chart_runs_commands_and_settings_that_there_are(helm: Helm) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    found = helm.render({**STORES, "settings": {"STEELYARD_TOKENS_PER_MINUTE": "5"}})
    servers, workers = found["StatefulSet/acme-server"], found["Deployment/acme-worker"]
    secret = found["Secret/acme-stores"]["stringData"]
    for workload, command in ((servers, "serve"), (workers, "worker")):
        spec = workload["spec"]["template"]["spec"]
        [container] = spec["containers"]
        assert container["args"] == [command]
        environ = {
            one["name"]: one.get("value") or secret[one["valueFrom"]["secretKeyRef"]["key"]]
            for one in container["env"]
        }
        assert environ.keys() <= VARIABLES
        assert environ["STEELYARD_ENGINE"] in ENGINES  # hosts that choose apart answer apart
        assert container["image"].partition(":")[2] == chart["appVersion"] == __version__
        settings = read_settings(environ=environ)
        assert (settings.accounts, settings.jobs, settings.tokens_per_minute) == ("on", "off", 5)
        assert settings.state_url == STORES["stateUrl"]
        proxies = TrustedProxies(settings.trusted_proxies)
        assert proxies.address_behind("10.244.1.7", ["192.0.2.7"]) == "192.0.2.7"
        assert spec["terminationGracePeriodSeconds"] > settings.leaving_s + settings.shutdown_s
        selector = workload["spec"]["selector"]["matchLabels"]
        assert selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items()


def test_the_proxy_alone_calls_the_servers(helm: Helm) -> None:
    scraper = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    found = helm.render(
        {**STORES, "servers": {"callers": [scraper]}, "proxy": {"trusts": NETWORKS}}
    )
    policy = found["NetworkPolicy/acme-server"]["spec"]
    [rule] = policy["ingress"]
    server = found["StatefulSet/acme-server"]["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= server["metadata"]["labels"].items()
    caller, other = rule["from"]
    proxy = found["Deployment/acme-proxy"]["spec"]["template"]
    assert caller["podSelector"]["matchLabels"].items() <= proxy["metadata"]["labels"].items()
    assert other == scraper
    [container] = proxy["spec"]["containers"]
    environ = {one["name"]: one["value"] for one in container["env"]}
    assert environ["STEELYARD_PROXY_TRUSTS"] == " ".join(NETWORKS)


def test_existing_secrets_are_used(helm: Helm) -> None:
    stripe = {"STEELYARD_STRIPE_KEY": {"name": "payments", "key": "stripe"}}
    found = helm.render({"existingSecret": "stores", "secretSettings": stripe})
    assert not [name for name in found if name.startswith("Secret/")]
    [container] = found["Deployment/acme-worker"]["spec"]["template"]["spec"]["containers"]
    references = {
        one["name"]: one["valueFrom"]["secretKeyRef"]
        for one in container["env"]
        if "valueFrom" in one
    }
    assert references["STEELYARD_STRIPE_KEY"] == {"name": "payments", "key": "stripe"}
    assert stripe.keys() <= VARIABLES
    assert references["STEELYARD_STATE_URL"]["name"] == "stores"


@pytest.mark.parametrize("name", [each.variable for each in SETTINGS if each.is_secret])
def test_a_secret_is_never_in_a_pods_specification(helm: Helm, name: str) -> None:
    with pytest.raises(Exception, match=r"secretSettings|stateUrl or framesUrl"):
        helm.render({**STORES, "settings": {name: "smtps://mail:plain@mail.example.com"}})


def test_every_pod_meets_the_restricted_standard(helm: Helm) -> None:
    """Kubernetes' pod security standard *restricted*, and further a root that cannot be written."""
    found = helm.render(
        {**STORES, "image": {"pullSecrets": ["registry"]}, "priorityClassName": "important"}
    )
    pods = [found[name]["spec"]["template"]["spec"] for name in found if name in WORKLOADS]
    assert len(pods) == len(WORKLOADS)
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod["automountServiceAccountToken"]
        assert f"ServiceAccount/{pod['serviceAccountName']}" in found
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["priorityClassName"] == "important"
        spread = {each["topologyKey"] for each in pod["topologySpreadConstraints"]}
        assert spread == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
        assert {next(iter(volume.keys() - {"name"})) for volume in pod["volumes"]} <= {
            "configMap",
            "emptyDir",
        }
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not container["image"].endswith(":latest")


def test_servers_grow_and_are_found_from_outside_and_by_prometheus(helm: Helm) -> None:
    found = helm.render(
        {
            **STORES,
            "servers": {"replicas": 2, "autoscaling": {"enabled": True, "max": 5}},
            "ingress": {"enabled": True, "host": "decide.example.com", "tlsSecret": "tls"},
            "serviceMonitor": {"enabled": True},
        }
    )
    scaler = found["HorizontalPodAutoscaler/acme-server"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 5)
    assert "replicas" not in found["StatefulSet/acme-server"]["spec"]
    configuration = found["ConfigMap/acme-proxy"]["data"]["haproxy.cfg"]
    servers = [line for line in configuration.splitlines() if "    server server-" in line]
    assert len(servers) == 5
    [rule] = found["Ingress/acme"]["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert path["backend"]["service"]["name"] == found["Service/acme"]["metadata"]["name"]
    selector = found["ServiceMonitor/acme"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= found["Service/acme-server"]["metadata"]["labels"].items()
    assert {"PodDisruptionBudget/acme-server", "PodDisruptionBudget/acme-proxy"} <= found.keys()


@pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY)
def test_the_charts_proxy_knows_every_server(helm: Helm, tmp_path: Path) -> None:
    found = helm.render({**STORES, "servers": {"replicas": 5}, "proxy": {"trusts": NETWORKS}})
    [container] = found["Deployment/acme-proxy"]["spec"]["template"]["spec"]["containers"]
    environ = {one["name"]: one["value"] for one in container["env"]}
    services = [environ[f"STEELYARD_SERVER_{number}"] for number in range(1, 6)]
    assert services == [
        f"acme-server-{index}.acme-server.ns.svc.cluster.local:8420" for index in range(5)
    ]
    configuration = tmp_path / "haproxy.cfg"
    configuration.write_text(found["ConfigMap/acme-proxy"]["data"]["haproxy.cfg"])
    assert HAPROXY is not None
    addresses = (name for name in environ if name != "STEELYARD_PROXY_TRUSTS")
    local = environ | dict.fromkeys(addresses, "127.0.0.1:1")
    done = subprocess.run(
        [HAPROXY, "-c", "-f", str(configuration)],
        env=local,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "server server-5 " in configuration.read_text()
