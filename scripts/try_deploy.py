"""Start the files of ``deploy/``, use them as a person would, and take everything down again.

    python scripts/try_deploy.py [--image NAME] [--override FILE]

It runs in the environment of ``scripts/test``, and tries two things. Each is skipped, with the reason, where it
cannot start:

- *compose*: ``deploy/compose.yaml`` by Docker or Podman, as a project of its own.
- *kind*: the chart, installed by Helm into a cluster that is made for it and deleted.

In each, the first owner signs in with a code from a stand-in for a mail server and makes a key; a decision, its
feedback, rows added to a dataset and an evaluation go through the proxy; every server is asked for the same
probabilities; one server is stopped, the proxy goes on without it, and it comes back.

The exit status is 0 where all that started held, 1 where something did not, 2 where nothing could start.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from project.test_deploy import CHART, COMPOSE
from steelyard.client import Client, ClientOptions
from support.tree.repository import ROOT

OWNER = "sam@example.org"
NAME = "steelyard-try"
#: Seconds that everything may take to start; a server with a busy machine to itself takes 20.
START_S = 600
QUESTION = {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}
CONTEXT = "Invoice 118 was paid twice."
SIGN_IN = {
    "STEELYARD_FIRST_OWNER": OWNER,
    "STEELYARD_SMTP_URL": "smtp://mail:2525",
    "STEELYARD_MAIL_FROM": "console@example.org",
}
#: A server of mail that prints its letters, run by the Python of the image.
MAIL = """
import os, signal, socketserver

class Mail(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 mail\\r\\n")
        while line := self.rfile.readline():
            verb = line[:4].strip().upper()
            if verb == b"DATA":
                self.wfile.write(b"354 go on\\r\\n")
                while (line := self.rfile.readline()) not in (b".\\r\\n", b""):
                    print(line.decode().rstrip(), flush=True)
            self.wfile.write(b"221 mail\\r\\n" if verb == b"QUIT" else b"250 mail\\r\\n")
            if verb == b"QUIT":
                return

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
socketserver.ThreadingTCPServer(("", 2525), Mail).serve_forever()
"""
#: Ask a server, from within its container, whether it takes requests.
READY = "import urllib.request as u; u.urlopen('http://127.0.0.1:8420/v1/health?for=traffic', timeout=10)"


class SkippedError(Exception):
    """Something that cannot be tried here, with the reason."""


class FailedError(Exception):
    """Something that did not hold."""


def run(command: Sequence[str], *, text: str | None = None, timeout: float = 1800) -> str:
    """Run a command and return what it printed; fail with the end of that."""
    # In a session of its own: Ctrl-C ends this script alone, which then takes everything down.
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise FailedError(f"{' '.join(command)[:300]} took {timeout:g} s") from None
    if done.returncode:
        printed = (done.stdout + done.stderr).strip()[-2000:]
        raise FailedError(f"{' '.join(command)[:300]} ended with {done.returncode}:\n{printed}")
    return done.stdout


def works(*command: str) -> bool:
    """Return whether a command is there and succeeds."""
    with contextlib.suppress(FailedError, OSError):
        run(command, timeout=60)
        return True
    return False


def step(words: str) -> None:
    """Print a step that held."""
    print(f"  {words}", flush=True)


def check(is_so: object, words: str) -> None:
    """Fail with these words where something is not so."""
    if not is_so:
        raise FailedError(words)


def wait_for(words: str, is_so: Callable[[], object], seconds: float = START_S) -> float:
    """Wait until something is so; return the seconds that it took."""
    began = time.monotonic()
    last = ""
    while time.monotonic() - began < seconds:
        try:
            if is_so():
                return time.monotonic() - began
        except (FailedError, httpx.HTTPError) as error:
            last = f"\nlast: {error}"
        time.sleep(2)
    raise FailedError(f"{words}: not within {seconds} s{last}")


def free_port() -> int:
    """Return a port of loopback that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Place:
    """Where Steelyard runs: how its servers are reached, stopped and started."""

    port: int
    servers: tuple[str, ...]
    #: Run a command in a server's container, and return what it prints.
    run_in: Callable[..., str]
    #: All letters that were sent.
    letters: Callable[[], str]
    #: Stop the last server, and start it again.
    stop: Callable[[], object]
    start: Callable[[], object]

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    def is_ready(self, server: str) -> bool:
        """Return whether a server says of itself that it takes requests."""
        self.run_in(server, "python", "-c", READY)
        return True


def takes_traffic(url: str) -> bool:
    """Return whether a server behind the proxy takes requests."""
    # With the header of a key, without which the proxy counts the caller as a stranger.
    headers = {"Authorization": "Bearer none"}
    answer = httpx.get(f"{url}/v1/health?for=traffic", headers=headers, timeout=30)
    return answer.status_code == 200


def sign_in(place: Place) -> Client:
    """Sign in as the first owner, by the code of a letter."""
    client = Client(ClientOptions(place.url, session=""))
    codes = re.compile(r"^([A-Z0-9]{4}-[A-Z0-9]{4})\r?$", re.MULTILINE)
    before = len(codes.findall(place.letters()))
    challenge = client.auth.start(OWNER)
    wait_for("a letter with a code", lambda: len(codes.findall(place.letters())) > before, 120)
    signed_in = client.auth.verify(challenge.challenge_id, codes.findall(place.letters())[-1])
    check(signed_in.user.email == OWNER, f"{signed_in.user.email} is signed in, not {OWNER}")
    return client


def rows(first: int, last: int) -> list[dict[str, Any]]:
    """Return rows to evaluate on."""
    return [
        {
            "context": f"Invoice {number} was paid {'twice' if number % 2 else 'in time'}.",
            "decisions": [QUESTION],
            "targets": {"refund": "yes" if number % 2 else "no"},
        }
        for number in range(first, last)
    ]


def same_probabilities(place: Place, key: str) -> str:
    """Ask every server by itself; return the probabilities that they agree on."""
    answers = {}
    for server in place.servers:
        printed = place.run_in(
            server,
            "env",
            f"STEELYARD_API_KEY={key}",
            "steelyard",
            "decide",
            "--json",
            "--url",
            "http://127.0.0.1:8420",
            "--context",
            CONTEXT,
            "--kind",
            "binary",
            "--question",
            QUESTION["question"],
        )
        [decision] = json.loads(printed)["decisions"].values()
        answers[server] = json.dumps(decision["probabilities"])
    check(len(set(answers.values())) == 1, f"servers answer apart: {answers}")
    return next(iter(answers.values()))


def use(place: Place) -> None:
    """Use an installation as a person would, and stop one of its servers."""
    took = wait_for("readiness through the proxy", lambda: takes_traffic(place.url))
    for server in place.servers:
        took += wait_for(f"readiness of {server}", lambda server=server: place.is_ready(server))
    step(f"ready: {', '.join(place.servers)}, after {took:.0f} s more")
    printed = place.run_in(place.servers[0], "steelyard", "key", "create", "--name", "first")
    check("steelyard_sk_" in printed, f"the documented command shows no first key: {printed}")
    step("first key, by the documented command")
    with sign_in(place) as session:
        step(f"signed in as {OWNER}")
        key = session.account.create_key("tried", "full").secret
        step("a key, made by the owner")
    with Client(ClientOptions(place.url, api_key=key, max_retries=0)) as client:
        answer = client.decide(CONTEXT, [QUESTION], store=True)
        step(f"decided through the proxy: {answer.decisions['refund'].top}")
        client.feedback(answer.id, {"refund": "yes"})
        check(client.stored_decision(answer.id).feedback, "the feedback is not there")
        step("wrote feedback")
        dataset = client.datasets.create(f"tried {uuid.uuid4().hex[:8]}", rows(0, 20))
        dataset = client.datasets.add_rows(dataset.id, rows(20, 30))
        check(dataset.version == 2, f"the dataset has version {dataset.version}, not 2")
        step("added rows to a dataset: version 2")
        [submitted] = client.evaluations.create(dataset.id, [answer.model]).data
        evaluation = client.evaluations.wait(submitted, timeout_s=START_S)
        check(evaluation.status == "succeeded", f"the evaluation is {evaluation.status}")
        step("a worker evaluated it")
        agreed = same_probabilities(place, key)
        step(f"every server answers {agreed}")
        place.stop()
        for _ in range(20):
            answers = client.decide(CONTEXT, [QUESTION], store=True)
            check(client.stored_decision(answers.id), "an answer is not found again")
        step(f"stopped {place.servers[-1]}: 20 decisions answered, each found again")
        place.start()
        wait_for(f"readiness of {place.servers[-1]}", lambda: place.is_ready(place.servers[-1]))
        check(same_probabilities(place, key) == agreed, "a server that came back answers apart")
        step(f"{place.servers[-1]} came back, and answers alike")


def compose_services(files: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return the services of compose files, each laid over the one before."""
    services: dict[str, dict[str, Any]] = {}
    for file in files:
        for name, service in yaml.safe_load(file.read_text(encoding="utf-8"))["services"].items():
            before = services.setdefault(name, {})
            environment = before.get("environment", {}) | service.get("environment", {})
            before |= service | {"environment": environment}
    return services


@contextlib.contextmanager
def composed(files: Sequence[Path], engine: str, _image: str) -> Iterator[Place]:
    """Run the compose file, as a project of its own."""
    ways = [[engine, "compose"], *([["podman-compose"]] if engine == "podman" else [])]
    program = next((way for way in ways if works(*way, "version")), None)
    if program is None:
        raise SkippedError(f"neither of these answers: {', '.join(' '.join(way) for way in ways)}")
    port = free_port()
    chosen = [part for file in files for part in ("-f", str(file))]

    def compose(*arguments: str) -> str:
        published = f"STEELYARD_PUBLISHED_PORT={port}"
        return run(["env", published, *program, "-p", NAME, *chosen, *arguments])

    def take_down() -> None:
        """Remove all of the project; again where a container that restarts came between."""
        label = f"label=com.docker.compose.project={NAME}"
        for _ in range(3):
            compose("down", "--volumes")
            if not run([engine, "ps", "--all", "--quiet", "--filter", label]).strip():
                return
        raise FailedError(f"containers are left: {engine} ps --all --filter {label}")

    def run_in(server: str, *command: str) -> str:
        return compose("exec", "-T", server, *command)

    last = "server-3"
    try:
        compose("up", "--detach", "--no-build")
        yield Place(
            port,
            ("server-1", "server-2", last),
            run_in=run_in,
            letters=lambda: compose("logs", "--no-color", "--no-log-prefix", "mail"),
            stop=lambda: compose("stop", last),
            start=lambda: compose("start", last),
        )
    except FailedError:
        with contextlib.suppress(FailedError):
            print(
                compose("logs", "--no-color", "--tail", "5", "server-1", "worker-1", "proxy"),
                flush=True,
            )
        raise
    finally:
        take_down()


def pod_of(name: str, service: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that runs a service of the compose file, for what the chart leaves to others."""
    container = {
        "name": name,
        "image": service["image"],
        "env": [{"name": key, "value": value} for key, value in service["environment"].items()],
    }
    for ours, theirs in (("entrypoint", "command"), ("command", "args")):
        if ours in service:
            container[theirs] = service[ours]
    metadata = {"name": name, "labels": {"app": name}}
    spec = {"containers": [container], "restartPolicy": "OnFailure"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def values_of(services: dict[str, dict[str, Any]], image: str) -> dict[str, Any]:
    """Return values for the chart that have little of everything, and the stores of the compose file."""
    repository, _, tag = image.rpartition(":")
    environment = services["server-1"]["environment"]
    little = {"resources": {"requests": {"cpu": "50m", "memory": "128Mi"}}}
    return {
        "image": {"repository": repository, "tag": tag},
        "stateUrl": environment["STEELYARD_STATE_URL"],
        "framesUrl": environment["STEELYARD_FRAMES_URL"],
        "settings": {name: value for name, value in SIGN_IN.items() if "SMTP" not in name},
        "secretSettings": {"STEELYARD_SMTP_URL": {"name": "mail", "key": "url"}},
        "servers": {"replicas": 2, **little},
        "workers": {"replicas": 1, **little},
        "proxy": {"replicas": 1, "image": services["proxy"]["image"], **little},
    }


MAIL_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "mail"},
    "stringData": {"url": SIGN_IN["STEELYARD_SMTP_URL"]},
}
STORES = ("database", "store", "bucket", "mail")
#: The chart's servers .
SERVERS = ("acme-server-0", "acme-server-1")


def written(manifests: Iterable[dict[str, Any]]) -> str:
    """Return manifests as a file."""
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)


@contextlib.contextmanager
def clustered(files: Sequence[Path], engine: str, image: str) -> Iterator[Place]:
    """Run the chart in a cluster that kind makes."""
    missing = [name for name in ("kind", "helm", "kubectl") if shutil.which(name) is None]
    if missing:
        raise SkippedError(f"not on the path: {', '.join(missing)}")
    services = compose_services(files)
    values = values_of(services, image)
    port = free_port()
    forward = None

    def kubectl(*arguments: str, text: str | None = None) -> str:
        return run(["kubectl", "--context", f"kind-{NAME}", *arguments], text=text)

    def run_in(server: str, *command: str) -> str:
        return kubectl("exec", server, "--", *command)

    def scale(replicas: int) -> None:
        kubectl("scale", "statefulset", "acme-server", "--replicas", str(replicas))
        if replicas == 1:
            kubectl("wait", "--for=delete", f"pod/{SERVERS[-1]}", "--timeout=120s")

    kind = ["env", f"KIND_EXPERIMENTAL_PROVIDER={engine}", "kind"]
    try:
        run([*kind, "create", "cluster", "--name", NAME, "--wait", "300s"])
        needed = {image, values["proxy"]["image"], *(services[name]["image"] for name in STORES)}
        with tempfile.TemporaryDirectory() as folder:
            archive = str(Path(folder) / "images.tar")
            for name in sorted(needed):
                run([engine, "save", "--output", archive, name])
                run([*kind, "load", "image-archive", archive, "--name", NAME])
                Path(archive).unlink()
        ports = {"database": 5432, "store": 9000, "mail": 2525}
        kubectl(
            "create",
            "-f",
            "-",
            text=written(
                [
                    MAIL_SECRET,
                    *(pod_of(name, services[name]) for name in STORES),
                    *(
                        {
                            "apiVersion": "v1",
                            "kind": "Service",
                            "metadata": {"name": name},
                            "spec": {"selector": {"app": name}, "ports": [{"port": port}]},
                        }
                        for name, port in ports.items()
                    ),
                ]
            ),
        )
        kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/bucket", "--timeout=300s")
        run(
            [
                "helm",
                "--kube-context",
                f"kind-{NAME}",
                "install",
                "acme",
                str(CHART),
                "--values",
                "-",
                "--wait",
                "--timeout",
                "10m",
            ],
            text=json.dumps(values),
        )
        forward = subprocess.Popen(
            [
                shutil.which("kubectl") or "kubectl",
                "--context",
                f"kind-{NAME}",
                "port-forward",
                "service/acme",
                f"{port}:8420",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        yield Place(
            port,
            SERVERS,
            run_in=run_in,
            letters=lambda: kubectl("logs", "mail"),
            stop=lambda: scale(1),
            start=lambda: scale(2),
        )
    finally:
        if forward is not None:
            forward.terminate()
            forward.wait()
        run([*kind, "delete", "cluster", "--name", NAME])


def find_engine(chosen: str | None) -> str:
    """Return the program of containers that answers here."""
    names = [chosen] if chosen else ["podman", "docker"]
    for name in names:
        if works(name, "info"):
            return name
    raise SkippedError(f"{' and '.join(names)}: not on the path, or no answer to `info`")


def write_override(folder: Path, image: str) -> Path:
    """Write what the trial changes in the compose file: the image, and a stand-in for a mail server."""
    servers = {
        name: {"image": image, "environment": SIGN_IN}
        for name, service in compose_services([COMPOSE]).items()
        if "build" in service
    }
    mail = {
        "image": image,
        "entrypoint": ["python", "-c", MAIL],
        "healthcheck": {"disable": True},
        "tmpfs": ["/var/lib/steelyard"],
    }
    file = folder / "try.yaml"
    file.write_text(yaml.safe_dump({"services": {**servers, "mail": mail}}), encoding="utf-8")
    return file


def stop(number: int, _frame: object) -> None:
    """Take down what runs, and end; a second signal does not interrupt that."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    print("  interrupted: taking down", flush=True)
    sys.exit(128 + number)


def main() -> int:
    """Try what can be tried here."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("podman", "docker"), help="the program of containers")
    parser.add_argument("--image", help="an image to try; without it one is built")
    parser.add_argument(
        "--override",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a compose file over the shipped one, such as with images that are here; repeat it",
    )
    parser.add_argument(
        "--only", choices=TRIALS, action="append", help="try this alone; repeat it for another"
    )
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    skipped, failed = {}, []
    held = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            engine = find_engine(options.engine)
            image = options.image or f"localhost/{NAME}:latest"
            if options.image is None:
                print(f"build {image}", flush=True)
                run([engine, "build", "--file", "deploy/Containerfile", "--tag", image, str(ROOT)])
        except SkippedError as error:
            print(f"skipped: everything: {error}")
            return 2
        except FailedError as error:
            print(f"failed: {error}")
            return 1
        files = [COMPOSE, write_override(Path(folder), image), *options.override]
        for name in options.only or TRIALS:
            print(name, flush=True)
            try:
                with TRIALS[name](files, engine, image) as place:
                    step("started")
                    use(place)
                step("taken down")
                held.append(name)
            except SkippedError as error:
                skipped[name] = error
            except (FailedError, httpx.HTTPError) as error:
                print(f"  failed: {error}", flush=True)
                failed.append(name)
    for name, why in skipped.items():
        print(f"skipped: {name}: {why}")
    for name in failed:
        print(f"failed: {name}")
    for name in held:
        print(f"held: {name}")
    return 1 if failed else 0 if held else 2


TRIALS = {"compose": composed, "kind": clustered}

if __name__ == "__main__":
    sys.exit(main())
