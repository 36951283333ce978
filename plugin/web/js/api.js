// The server: actions, catalogue, conversations. Every failure is an `ApiError`
// that says whether the call may have happened.

// Relative to this file, so that a prefix before the server's paths is kept.
const ROOT = new URL('../../../../../', import.meta.url);
const PLUGIN = 'api/plugins/community.agent-teams/actions/';

export const at = (path) => new URL(path, ROOT).href;

/** A refusal of the server, or a failure on the way. */
export class ApiError extends Error {
  constructor(code, message, more = {}) {
    super(message);
    this.code = code;
    this.status = more.status ?? 0;
    this.field = more.field ?? '';
    this.facts = more.facts ?? null;
    /** Nothing is known about the outcome: the same call may be repeated. */
    this.unknown = more.unknown ?? false;
  }
}

async function call(path, options = {}) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), options.timeout ?? 45_000);
  let response;
  let body;
  try {
    response = await fetch(at(path), {
      method: options.body === undefined ? 'GET' : 'POST',
      headers: options.body === undefined ? {} : { 'content-type': 'application/json' },
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      credentials: 'same-origin',
      cache: 'no-store',
      signal: abort.signal,
    });
    body = await response.text();
  } catch {
    throw new ApiError('network', '', { unknown: true });
  } finally {
    clearTimeout(timer);
  }
  let parsed = null;
  try {
    parsed = body ? JSON.parse(body) : {};
  } catch {
    throw new ApiError('bad_answer', '', { status: response.status, unknown: true });
  }
  if (!response.ok) {
    throw new ApiError(parsed.code ?? `http_${response.status}`, parsed.detail ?? '', {
      status: response.status,
      field: parsed.field,
      facts: parsed.facts,
      unknown: response.status === 504 || response.status === 500,
    });
  }
  return parsed;
}

/** One action of the component. */
export const action = (name, payload = {}, options = {}) => call(PLUGIN + name, { ...options, body: payload });
export const agents = () => call('api/agents').then((reply) => reply.agents ?? []);
export const me = () => call('api/me');
export const signOut = () => call('api/sign-out', { body: {} });
export const conversation = (thread, after) =>
  call(`api/conversations/${encodeURIComponent(thread)}?limit=200${after === undefined ? '' : `&after=${after}`}`);
export const say = (thread, messageId, text) =>
  call(`api/conversations/${encodeURIComponent(thread)}/messages`, { body: { message_id: messageId, text } });
/** Ends the run that is at work in a conversation, or that waits there for an approval. */
export const stopRun = (thread, run) => call(`api/conversations/${encodeURIComponent(thread)}/stop`, { body: { run } });

/** A new id. `crypto.randomUUID` is missing outside secure contexts. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
