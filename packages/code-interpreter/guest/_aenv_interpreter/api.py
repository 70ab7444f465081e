"""The routes, as @e2b/code-interpreter calls them."""

from .contexts import ContextError
from .execution import Execution


class Api:
    """`handle(connection, request)` answers every request, at once or when a cell has run."""

    def __init__(self, loop, contexts, envd, warmth):
        self._loop = loop
        self._contexts = contexts
        self._warmth = warmth
        # None: nobody is asked, for tests
        self._envd = envd

    def handle(self, connection, request):
        try:
            self._route(connection, request)
        except ContextError as error:
            connection.answer(error.status, str(error), "text/plain; charset=utf-8")

    def _route(self, connection, request):
        method, path = request.method, request.path.rstrip("/") or "/"
        steps = path.split("/")[1:]
        if method == "OPTIONS":
            connection.answer(200, "OK", "text/plain")
        elif path == "/health":
            self._only(method, "GET")
            connection.answer(200, '"OK"')
        elif path == "/warm":
            self._only(method, "GET")
            self._warmth.complete(lambda: connection.fd >= 0 and connection.answer(200, '"OK"'))
        elif path == "/execute":
            self._only(method, "POST")
            self._execute(connection, request)
        elif path == "/contexts":
            self._only(method, "GET", "POST")
            if method == "GET":
                connection.answer(200, _json([_present(context) for context in self._contexts.list()]))
            else:
                body = _read_body(request, language=str, cwd=str)
                connection.answer(200, _json(_present(self._contexts.create(body["language"], body["cwd"]))))
        elif len(steps) == 2 and steps[0] == "contexts":
            self._only(method, "DELETE")
            self._contexts.remove(steps[1])
            connection.answer(200, "null")
        elif len(steps) == 3 and steps[0] == "contexts" and steps[2] == "restart":
            self._only(method, "POST")
            self._contexts.get(steps[1]).restart()
            connection.answer(200, "null")
        else:
            raise ContextError(404, "Not Found")

    def _only(self, method, *allowed):
        if method not in allowed:
            raise ContextError(405, "Method Not Allowed")

    def _execute(self, connection, request):
        body = _read_body(request, code=str, context_id=str, language=str, env_vars=dict)
        if body["code"] is None:
            raise ContextError(422, "code: required")
        if body["context_id"] and body["language"]:
            raise ContextError(400, "Only one of context_id or language can be provided")
        env_vars = body["env_vars"] or {}
        if not all(isinstance(value, str) and "\0" not in name + value for name, value in env_vars.items()):
            raise ContextError(422, "env_vars: not a map of strings")
        if not all(name and "=" not in name for name in env_vars):
            raise ContextError(422, "env_vars: a variable cannot have that name")
        # Unknown ones are told before anybody is asked anything.
        name = body["context_id"]
        context = self._contexts.get(name) if name else self._contexts.default(body["language"])

        def run(status, variables):
            if connection.fd < 0:
                return
            if status == 401:
                connection.answer(401, "The access token is missing or wrong", "text/plain")
            elif status != 200:
                connection.answer(503, "The sandbox does not tell its variables", "text/plain")
            else:
                context.submit(Execution(self._loop, connection, context, body["code"], variables, env_vars))

        if self._envd is None:
            run(200, None)
        else:
            self._envd.ask(request.headers.get("x-access-token"), run)


def _present(context):
    return {"id": context.id, "language": context.language, "cwd": context.cwd}


def _json(value):
    import json

    return json.dumps(value)


def _read_body(request, **fields):
    """@returns the fields, None for those that are absent; raises ContextError for what is no object of such fields"""
    import json

    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        raise ContextError(422, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise ContextError(422, "the body is not a JSON object")
    values = {name: body.get(name) for name in fields}
    for name, kind in fields.items():
        if values[name] is not None and not isinstance(values[name], kind):
            raise ContextError(422, f"{name}: not a {'string' if kind is str else 'map'}")
    return values
