/** Amounts of a budget, as a person reads them. */
type Standing = Readonly<Record<'scope' | 'used' | 'limit', string>>;

/** Fields of the causes of calls of models, and of their budgets. */
export interface ProviderFields {
  provider_timeout: unknown;
  /** A wait for a provider ended without what it waited for, by the limit of a setting. */
  provider_wait: {
    readonly awaited: string;
    readonly ms: number;
    /** Setting with the place that it belongs to, such as `first_byte_s of provider x`. */
    readonly setting: string;
  };
  circuit_open: { readonly provider: string; readonly until: string; readonly failures: number };
  provider_unknown: { readonly provider: string };
  /** `variable` is the one that should hold the key. `problem` is one of `KEY_PROBLEMS`. */
  provider_key: Readonly<Record<'provider' | 'variable' | 'problem', string>>;
  /** The stored key cannot be read. The code is null for an unexpected error. */
  provider_credential: { readonly provider: string; readonly code: string | null; readonly text: string };
  /** No call can take the way to the provider. `problem` is one of `ROUTE_PROBLEMS`. */
  provider_route: Readonly<Record<'provider' | 'problem' | 'setting' | 'detail', string>>;
  /** No connection. `problem` is one of `CONNECTION_PROBLEMS`. An empty address is not named. */
  provider_unreachable: Readonly<Record<'problem' | 'address' | 'proxy' | 'code', string>>;
  /**
   * A response with an error. `said` is the provider's text or the target of a redirect, as `form`
   * says. `advice` is one of `ADVICE` or empty.
   */
  provider_refused: Readonly<Record<'said' | 'advice' | 'model' | 'endpoint', string>> & {
    readonly status: number;
    readonly form: 'text' | 'redirect' | 'html';
    /** Wait that the provider asks for, seconds. */
    readonly waitS?: number;
  };
  /** An error within a stream that had begun, with the provider's text. Old ones have no advice. */
  provider_stream_error: { readonly said: string; readonly advice?: string };
  /** A response that breaks the format of its protocol. */
  provider_answer_broken: { readonly problem: AnswerProblem; readonly detail: string | number };
  /** `type` is empty for an answer without one. */
  provider_wrong_type: Readonly<Record<'type' | 'expected' | 'endpoint', string>>;
  /** A local program did not start, ended without an answer, or reported an error. */
  cli_not_started: Readonly<Record<'provider' | 'detail', string>>;
  cli_ended: Readonly<Record<'provider' | 'status' | 'detail', string>>;
  cli_refused: Readonly<Record<'provider' | 'said', string>>;
  model_call_cancelled: unknown;
  /** The model takes no images. Nothing was sent. */
  images_not_taken: Readonly<Record<'provider' | 'model' | 'paths', string>>;

  budget_exceeded: Standing & { readonly unit: string };
  budget_without_price: Standing & { readonly provider: string; readonly model: string };
  budget_frozen: Standing & { readonly reservationId: string };
}

const showStanding = ({ scope, used, limit }: Standing): string => `${scope}: ${used}/${limit}`;

/** Text of a problem with its detail, or the fixed text of one. */
type ProblemText = string | ((detail: string | number) => string);

const KEY_PROBLEMS: Readonly<Record<string, string>> = {
  unset: 'is not set',
  unusable: 'holds what cannot be a key',
};

const ROUTE_PROBLEMS: Readonly<Record<string, ProblemText>> = {
  proxy_invalid: 'is not the URL of an http or https proxy (not shown)',
  file_unreadable: (code) => `cannot be read (${code})`,
  certificate_unreadable: 'holds a certificate that cannot be read',
  no_certificate: 'holds no certificate in PEM form',
  no_region: 'names no region: use https://bedrock-runtime.REGION.amazonaws.com, or set AWS_REGION',
};

type Connection = ProviderFields['provider_unreachable'];

const through = ({ proxy }: Connection): string => (proxy === '' ? '' : ` through the proxy ${proxy}`);
const suffix = ({ code }: Connection): string => (code === '' ? '' : ` (${code})`);

/** Texts of problems of a connection, with the remedy of each. */
const CONNECTION_PROBLEMS: Readonly<Record<string, (fields: Connection) => readonly [string, string]>> = {
  other_name: ({ address }) => [`the certificate of ${address} is for another name`, 'check base_url'],
  out_of_date: (at) => [
    `the certificate of ${at.address} is out of date${suffix(at)}`,
    'check the clock and the server',
  ],
  untrusted: (at) => [
    `the certificate of ${at.address} is not trusted${suffix(at)}`,
    'set ca_file of the provider to the PEM file of its authority',
  ],
  no_tls: (at) => [
    `${at.address} does not speak TLS${suffix(at)}`,
    'check base_url: http:// for a server without TLS',
  ],
  proxy_refused: ({ proxy, address, code }) => [
    `the proxy ${proxy} refused the connection to ${address} with status ${code}`,
    code === '407'
      ? 'put the user and password of the proxy into its URL'
      : 'check the rules of the proxy, or add the host to NO_PROXY',
  ],
  none: (at) => [`no connection to ${at.address}${through(at)}${suffix(at)}`, remedyOf(at)],
  none_local: (at) => [`no connection to ${at.address}${suffix(at)}`, LOCAL_REMEDY],
  broken: (at) => [
    `the connection to ${at.address}${through(at)} broke before a response${suffix(at)}`,
    remedyOf(at),
  ],
  broken_local: (at) => [
    `the connection to ${at.address} broke before a response${suffix(at)}`,
    LOCAL_REMEDY,
  ],
};
const LOCAL_REMEDY = 'check base_url, and that the server runs';
const remedyOf = ({ proxy }: Connection): string =>
  proxy === ''
    ? 'check base_url and the network; where only a proxy leads out, set proxy or HTTPS_PROXY'
    : 'check the proxy and base_url';

const ANOTHER = 'or give the agent a fallback';

/** Texts of remedies for a refusal. */
const ADVICE: Readonly<Record<string, string>> = {
  no_credit: 'the account at the vendor has no credit: add some, or use another provider',
  refused_key: 'the provider refused the key: set its key, and check that it may use the model',
  not_found: 'check the name of the model and base_url',
  no_version: 'check the name of the model and base_url, which ends in /v1 for most servers',
  redirect: 'a redirect is not followed: set base_url to the final address',
  not_accepted: 'the provider does not accept this request',
  too_long:
    'the request is longer than the model accepts: attach less, begin a new session, or choose a model with a larger window',
  quota_used_up: `the account's quota for this period is used up: wait for the next one, raise it at the vendor, ${ANOTHER}`,
  rate_limited: `the account is over its rate at the vendor: send again later, lower concurrent_calls, ${ANOTHER}`,
  overloaded: `the provider is overloaded: send again later, ${ANOTHER}`,
  loading: 'the server is loading its model: send again when it is ready',
  failed: `the fault is at the provider: send again later, ${ANOTHER}`,
};

const showWait = (seconds: number | undefined): string =>
  seconds === undefined || seconds <= 0 ? '' : `; it asks to wait ${seconds} s`;

const adviceOf = (advice: string): string => (advice === '' ? '' : `; ${ADVICE[advice] ?? advice}`);

/** Texts of problems of an answer. */
const ANSWER_PROBLEMS = {
  said: (text: string | number) => String(text),
  cut: 'the provider closed the connection before its answer was complete',
  incomplete: (skipped: string | number) =>
    `the provider ended its answer before it was complete${skipped ? `; ${skipped} of its events were not valid JSON` : ''}`,
  not_http: 'the provider did not answer in HTTP',
  not_json: "the provider's answer is not valid JSON",
  unreadable: "the provider's answer could not be read",
  unknown_encoding: (name: string | number) => `the provider's answer has the unknown encoding ${name}`,
  invalid_encoding: (name: string | number) => `the provider's answer is not valid ${name}`,
  too_many_bytes: (max: string | number) => `the provider's answer is over ${max} bytes`,
  too_many_characters: (max: string | number) => `the provider's answer is over ${max} characters`,
  too_complex: "the provider's answer nests too deep, or has too many values",
  event_too_long: (max: string | number) => `an event of the provider's answer is over ${max} characters`,
  ended_by_error: 'the provider broke its answer off with an error',
  not_completion: "the provider's answer is not a completion",
  not_message: "the provider's answer is not a message",
  message_damaged: "a message of the provider's stream is damaged",
  message_length: (bytes: string | number) => `a message of the provider's stream has ${bytes} bytes`,
  not_gemini: "the provider's answer is not a response of Gemini",
  too_many_parts: (max: string | number) => `the answer has over ${max} parts`,
  too_many_blocks: (max: string | number) => `the answer has over ${max} content blocks`,
  block_twice: 'a content block began twice',
  delta_alone: 'a delta without its content block',
  invalid_call: (said: string | number) => `the model wrote a tool call that is not valid (${said})`,
  invalid_answer: (said: string | number) => `the model wrote an answer that is not valid (${said})`,
  unexpected_call: (said: string | number) =>
    `the model called a tool that the request does not have (${said})`,
  missing_signature: (said: string | number) => `the provider misses the signature of a tool call (${said})`,
  too_many_calls: (max: string | number) => `the model asked for over ${max} tool calls at once`,
  arguments_too_long: 'the arguments of the tool calls are too long',
} as const satisfies Readonly<Record<string, ProblemText>>;

/** Problem of an answer that breaks its format. */
export type AnswerProblem = keyof typeof ANSWER_PROBLEMS;

const render = (texts: Readonly<Record<string, ProblemText>>, problem: string, detail: string | number) => {
  const text = texts[problem] ?? problem;
  return typeof text === 'string' ? text : text(detail);
};

/** Texts of what a wait for a provider waits for. */
const AWAITED: Readonly<Record<string, string>> = {
  connection: 'connection',
  first_byte: 'first byte',
  next_byte: 'further byte',
  whole_answer: 'whole answer',
  free_place: 'free place among its concurrent calls',
};

/** Texts of the causes of calls of models. */
export const PROVIDER_TEXTS: {
  readonly [K in keyof ProviderFields]: (fields: ProviderFields[K]) => string;
} = {
  cli_not_started: ({ provider, detail }) =>
    `the program of the provider ${provider} did not start: ${detail}`,
  cli_ended: ({ provider, status, detail }) =>
    `the program of the provider ${provider} ended without an answer (${status}): ${detail}`,
  cli_refused: ({ provider, said }) => `the program of the provider ${provider} reported an error: ${said}`,
  provider_timeout: () => 'provider timeout',
  provider_wait: ({ awaited, ms, setting }) =>
    `provider timeout: no ${AWAITED[awaited] ?? awaited} within ${ms / 1_000} s (${setting})`,
  circuit_open: ({ provider, until, failures }) =>
    `provider ${provider} is paused until ${until}, after ${failures} failures in a row`,
  provider_unknown: ({ provider }) => `no provider is named ${JSON.stringify(provider)}`,
  provider_key: ({ provider, variable, problem }) =>
    `provider ${provider} has no key: the environment variable ${variable} ${KEY_PROBLEMS[problem] ?? problem}`,
  provider_credential: ({ provider, code, text }) =>
    `provider ${provider}: ${code === null ? 'the stored credential cannot be read' : text}`,
  provider_route: ({ provider, problem, setting, detail }) =>
    `provider ${provider} cannot be reached: ${setting} ${render(ROUTE_PROBLEMS, problem, detail)}`,
  provider_unreachable: (fields) => {
    const { address, problem } = fields;
    const parts = CONNECTION_PROBLEMS[problem]?.(fields) ?? [problem];
    return address === '' ? 'provider unreachable' : `provider unreachable: ${parts.join('; ')}`;
  },
  provider_refused: ({ status, said, form, advice, model, endpoint, waitS }) => {
    const message = form === 'html' ? 'an HTML page instead of an error message' : said;
    const text = form === 'redirect' ? `redirects to ${said || 'an address that is no URL'}` : message;
    const where = advice === '' ? '' : ` (model ${model} at ${endpoint})`;
    return `provider error ${status}${text === '' ? '' : `: ${text}`}${showWait(waitS)}${adviceOf(advice)}${where}`;
  },
  provider_stream_error: ({ said, advice = '' }) =>
    `provider error in the stream: ${said}${adviceOf(advice)}`,
  provider_answer_broken: ({ problem, detail }) => render(ANSWER_PROBLEMS, problem, detail),
  provider_wrong_type: ({ type, expected, endpoint }) =>
    `the provider answered with ${type || 'no content type'} instead of ${expected}: check base_url (${endpoint})`,
  model_call_cancelled: () => 'cancelled',
  images_not_taken: ({ provider, model, paths }) =>
    `the model ${model} of provider ${provider} takes no images, so ${paths} was not sent. ` +
    `What to do: use a model that takes images, or set images = true for it in [[parameters]]`,

  budget_exceeded: ({ unit, ...standing }) =>
    `${unit === 'tokens' ? 'token' : 'cost'} budget exceeded (${showStanding(standing)})`,
  budget_without_price: ({ provider, model, ...standing }) =>
    `no price is set for ${provider}/${model}, which a cost budget needs (${showStanding(standing)}): add it under [[prices]]`,
  budget_frozen: ({ reservationId, ...standing }) =>
    `budget frozen (${showStanding(standing)}): reservation ${reservationId} used more than its bound and overspent it; ` +
    'an operator must look at it and unfreeze the scope',
};
