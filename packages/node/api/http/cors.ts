/** What scripts may read of an answer beside its body. */
const EXPOSED = 'X-Next-Token, X-Total-Running, X-Request-Id, Retry-After';
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
/** Seconds for which a browser need not ask again; browsers take no more. */
const REMEMBERED = '7200';

/** Answers on loopback without a key, so the browser of whoever sits there must not hand it to any page. */
const NOT_FOR_SCRIPTS = new Set(['/metrics']);

/** Whether a browser asks beforehand if a script may send a request. */
export function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method');
}

/** Scripts of any origin may call: there are no cookies, the key in a header is all the access there is. */
export function preflightAnswer(request: Headers): Response {
  return new Response(null, {
    status: 204,
    headers: {
      'Access-Control-Allow-Methods': METHODS,
      // A star would not cover Authorization, so the wish is granted by name.
      'Access-Control-Allow-Headers': request.get('access-control-request-headers') ?? '*',
      'Access-Control-Max-Age': REMEMBERED,
      Vary: 'Access-Control-Request-Headers',
    },
  });
}

/** Lets a script of another origin read the answer of a route. */
export function allowOrigin(request: Headers, route: string, answer: Headers): void {
  if (!request.has('origin') || NOT_FOR_SCRIPTS.has(route)) return;
  answer.set('Access-Control-Allow-Origin', '*');
  answer.set('Access-Control-Expose-Headers', EXPOSED);
}
