// Typed requests to the node. Paths, bodies and answers come from the OpenAPI description.

import type { components, paths } from './schema';
import { endSession, secret } from './session';

export type Schemas = components['schemas'];

type Method = 'get' | 'post' | 'put' | 'patch';
type Json<T> = T extends { content: { 'application/json': infer B } } ? B : never;
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends { [K in M]: infer O } ? O : never;
type Answer<O> = O extends { responses: { 200: infer R } } ? Json<R> : never;
type RequestBody<O> = O extends { requestBody: infer R } ? Json<R> : undefined;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type PathValues<O> = O extends { parameters: { path: infer V } } ? V : Record<string, never>;

interface Options<O> {
  path?: PathValues<O>;
  query?: Query<O>;
  body?: RequestBody<O>;
  signal?: AbortSignal;
}

/** An error that the node reported, or the loss of the connection (`kind` is `unreachable`). */
export class ApiError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly hint?: string | null,
  ) {
    super(message);
  }

  /** True if the node wants the signature of the person's key, which only a terminal can give. */
  get needsTerminal(): boolean {
    return this.kind === 'refused' && /person's key|passphrase/.test(`${this.message} ${this.hint ?? ''}`);
  }
}

function address(path: string, values: object | undefined, query: object | undefined): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((values as Record<string, unknown> | undefined)?.[name] ?? '')),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${filled}?${text}` : filled;
}

/** The headers of every request: the secret of this session, never a cookie. */
export function headers(): Record<string, string> {
  return { authorization: `Bearer ${secret() ?? ''}`, accept: 'application/json' };
}

async function send(method: string, url: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
  const init: RequestInit = {
    method,
    headers: headers(),
    credentials: 'omit',
    cache: 'no-store',
    referrerPolicy: 'no-referrer',
  };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...headers(), 'content-type': 'application/json' };
  }
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new ApiError('unreachable', 'The node does not answer.', 'Check with klnode status.');
  }
  if (response.status === 401 && response.headers.get('klnode-page') === 'session-ended') endSession();
  const text = await response.text();
  const parsed = text ? (JSON.parse(text) as unknown) : undefined;
  if (!response.ok) {
    const detail = (parsed as { error?: { kind: string; message: string; hint?: string } } | undefined)?.error;
    throw new ApiError(detail?.kind ?? 'failed', detail?.message ?? `The node answered ${response.status}.`, detail?.hint);
  }
  return parsed;
}

function requester<M extends Method>(method: M) {
  return <P extends PathsWith<M>>(
    path: P,
    options: Options<Operation<P, M>> = {},
  ): Promise<Answer<Operation<P, M>>> => {
    const url = address(path as string, options.path as object, options.query as object);
    return send(method.toUpperCase(), url, options.body, options.signal) as Promise<Answer<Operation<P, M>>>;
  };
}

export const get = requester('get');
export const post = requester('post');
export const put = requester('put');
export const patch = requester('patch');
