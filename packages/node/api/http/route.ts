import type { z } from '@hono/zod-openapi';
import type { AuthenticatedCaller } from '../../auth/authenticate.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What a handler answers: JSON in `body`, or text, or neither. */
export interface Answer {
  readonly status: 200 | 201 | 202 | 204;
  readonly body?: unknown;
  readonly text?: { readonly type: string; readonly content: string };
  readonly headers?: Readonly<Record<string, string>>;
}

/** One success answer as the reference describes it. */
export interface AnswerDoc {
  readonly status: Answer['status'];
  readonly description: string;
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One line of the API: what is taken, what is answered, who may ask, and the work. */
export interface Route {
  readonly method: Method;
  /** with parameters in braces: `/sandboxes/{sandboxID}` */
  readonly path: string;
  readonly summary: string;
  readonly deprecated?: boolean;
  /** needs no key */
  readonly open?: boolean;
  /** left out of the reference */
  readonly hidden?: boolean;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  /** an absent body is the empty object */
  readonly bodyOptional?: boolean;
  readonly answers: readonly AnswerDoc[];
  /** statuses of errors beside 400, 401 and 500 */
  readonly errors?: readonly number[];
  handle(input: RouteInput<unknown, unknown>): Promise<Answer> | Answer;
}

export interface RouteInput<Query, Body> {
  /** a parameter of the path, decoded */
  param(name: string): string;
  readonly query: Query;
  readonly body: Body;
  /** absent on open routes */
  readonly caller: AuthenticatedCaller | undefined;
  readonly headers: Headers;
  readonly peer: string | undefined;
}

type Output<T> = T extends z.ZodType ? z.output<T> : undefined;

/**
 * A route whose handler is typed by its schemas. The types are dropped afterwards: whoever calls `handle` has put query
 * and body through the schemas of the same route.
 */
export function route<Q extends z.ZodType | undefined = undefined, B extends z.ZodType | undefined = undefined>(
  spec: Omit<Route, 'query' | 'body' | 'handle'> & {
    readonly query?: Q;
    readonly body?: B;
    handle(input: RouteInput<Output<Q>, Output<B>>): Promise<Answer> | Answer;
  },
): Route {
  return spec as Route;
}
