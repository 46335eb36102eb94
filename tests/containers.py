"""What `compose-smoke` asks of Docker and of the suite in its containers."""

import http.client
import json
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PORTS = {'rest-facade': 5300, 'graphql-bff': 5310, 'catalog': 5311, 'inventory': 5312, 'ordering': 5313}
METRICS_PORTS = {'rest-facade': 5395, 'graphql-bff': 5394, 'catalog': 5391, 'inventory': 5392, 'ordering': 5393}

PROJECT = 'bookstore-smoke'
ENVIRONMENT = {
    **os.environ,
    'COMPOSE_PROJECT_NAME': PROJECT,
    'BOOKSTORE_BOOKS': '1000',  # so many are asked for at once by some of the k6 scripts
    'BOOKSTORE_RESERVATION_TTL': '2',
}


def run(*command, show='failure', env=None):
    """Runs a command; its output is shown always, never, or when it fails."""
    command = [str(part) for part in command]
    out = {} if show == 'always' else {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
    done = subprocess.run(command, cwd=ROOT, env={**ENVIRONMENT, **(env or {})}, text=True, **out)
    if show == 'failure' and done.returncode != 0:
        print(f"      {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}", flush=True)
    return done


def compose(*arguments, **more):
    return run('docker', 'compose', *arguments, **more)


def containers(service):
    return compose('ps', '--all', '--quiet', service).stdout.split()


def inspect(container, template):
    return run('docker', 'inspect', '--format', template, container).stdout.strip()


def started(services):
    """When each container of these services was started last."""
    return {service: [inspect(each, '{{.State.StartedAt}}') for each in containers(service)] for service in services}


def published(container, port):
    """The port of this machine that is a container's."""
    return int(run('docker', 'port', container, f'{port}/tcp').stdout.split('\n')[0].rsplit(':', 1)[1])


def send(port, method, path, body=None):
    """One request: its status and its body; 0 and why when there is no reply."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=5)
    try:
        connection.request(method, path, body, {'content-type': 'application/json'} if body else {})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error)
    finally:
        connection.close()


def decoded(text):
    try:
        return json.loads(text)
    except ValueError:
        return {}


def rest(at, path):
    """How REST answers: `ok`, status and reason of a refusal, or what else came."""
    status, body = send(at['rest-facade'], 'GET', path)
    return 'ok' if status == 200 else f"{status} {decoded(body).get('reason', body[:200])}"


def graphql(at, query):
    """The same by GraphQL, which has no status."""
    status, body = send(at['graphql-bff'], 'POST', '/graphql', json.dumps({'query': query}))
    errors = decoded(body).get('errors')
    if status == 200 and not errors:
        return 'ok'
    return str(errors[0].get('extensions', {}).get('reason')) if errors else f'{status} {body[:200]}'


def ready(port):
    return send(port, 'GET', '/readyz')[0] == 200


def metrics(port):
    return send(port, 'GET', '/metrics')[1]


def wait_until(holds, seconds):
    """Seconds that it took, or none when it took longer."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if holds():
            return time.monotonic() - began
        time.sleep(0.02)
    return None


def took(seconds):
    return 'too long' if seconds is None else f'{seconds:.2f} s'
