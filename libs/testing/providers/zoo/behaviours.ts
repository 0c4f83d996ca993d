import { PROBLEMS, ZOO_USAGE, type Problem, type Refusal, type ZooReply, type ZooServer } from './reply.js';

/** Outcome of a call, as the port of models returns it: an answer or a failure. */
export interface ZooOutcome {
  readonly failed: boolean;
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly { readonly name: string; readonly input: unknown; readonly problem?: string }[];
  readonly finish?: string;
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number } | null;
  readonly refused?: boolean;
  readonly retryable?: boolean;
  readonly dispatched?: boolean;
  readonly message?: string;
  readonly retryAfterMs?: number;
}

/** Response of a server: a stream in chunks of bytes, or one body. */
export type ZooResponse =
  | { readonly pieces: readonly (string | Uint8Array)[]; readonly cut?: boolean; readonly type?: string }
  | Refusal;

export interface Behaviour {
  readonly name: string;
  /** Returns the response, undefined where the server does not behave so. */
  readonly respond: (server: ZooServer) => ZooResponse | undefined;
  /** True for a request without streaming. */
  readonly whole?: true;
  /** `held`: the answer is used. `refused`: the call fails, with a clear reason. */
  readonly as: 'held' | 'refused';
  /** Returns what is wrong with an outcome; undefined for nothing. */
  readonly problem: (outcome: ZooOutcome, server: ZooServer) => string | undefined;
}

const differs = (what: string, actual: unknown, expected: unknown): string | undefined =>
  JSON.stringify(actual) === JSON.stringify(expected)
    ? undefined
    : `${what} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`;

const firstOf = (...problems: readonly (string | undefined)[]): string | undefined =>
  problems.find((problem) => problem !== undefined);

const holds = (
  { failed, message, ...outcome }: ZooOutcome,
  expected: Partial<Pick<ZooOutcome, 'text' | 'thought' | 'finish' | 'usage'>> & { calls?: unknown },
): string | undefined =>
  failed
    ? `it failed: ${message}`
    : firstOf(
        ...Object.entries(expected).map(([key, value]) =>
          differs(key, outcome[key as keyof typeof outcome], value),
        ),
      );

const TEXT = ['Low ', 'tide at ', '6:10 — 低潮 🌊', '.'];
const WHOLE = TEXT.join('');
const USAGE = { inputTokens: ZOO_USAGE.input, outputTokens: ZOO_USAGE.output };
const CALL = { name: 'calculator', json: ['{"expression"', ':"6*7"}'] };
const CALLED = { name: 'calculator', input: { expression: '6*7' } };

/** Returns the response of a stream, whose pieces may be bytes. */
const responseOf = (
  { binaryMedia }: ZooServer,
  pieces: readonly (string | Uint8Array)[],
  more: { readonly cut?: true } = {},
): ZooResponse => {
  if (binaryMedia === undefined) return { pieces, ...more };
  const toBytes = (piece: string | Uint8Array): Uint8Array =>
    typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece;
  return { pieces: pieces.map(toBytes), type: binaryMedia, ...more };
};

type Change = (pieces: readonly string[], server: ZooServer) => readonly (string | Uint8Array)[];

const streamed =
  (reply: ZooReply, change: Change = (all) => all) =>
  (server: ZooServer): ZooResponse =>
    responseOf(server, change(server.stream(reply), server));

const sendsLines = ({ binaryMedia }: ZooServer): boolean => binaryMedia === undefined;

const answered = (
  name: string,
  reply: ZooReply,
  expected: Parameters<typeof holds>[1],
  change?: Parameters<typeof streamed>[1],
  applies: (server: ZooServer) => boolean = () => true,
): Behaviour => ({
  ...{ name, as: 'held' },
  respond: (server) => (applies(server) ? streamed(reply, change)(server) : undefined),
  problem: (outcome) => holds(outcome, expected),
});

const inBytes: Change = (pieces, { binaryMedia }) =>
  [...Buffer.from(pieces.join(''), binaryMedia === undefined ? 'utf8' : 'latin1')].map((byte) =>
    Uint8Array.of(byte),
  );

/** Puts a text between the pieces of a stream. */
const between = (text: string) => (pieces: readonly string[]) => pieces.flatMap((piece) => [piece, text]);

const called = (
  name: string,
  json: readonly string[] | object,
  expected: object,
  applies?: (server: ZooServer) => boolean,
): Behaviour =>
  answered(
    name,
    { calls: [{ name: 'calculator', json }] },
    { calls: [{ name: 'calculator', ...expected }] },
    undefined,
    applies,
  );

const sendsText = ({ shows }: ZooServer): boolean => shows.argumentText;

const refusedWith = (
  name: string,
  respond: Behaviour['respond'],
  expected: Partial<Pick<ZooOutcome, 'refused' | 'retryable' | 'dispatched'>>,
): Behaviour => ({
  ...{ name, respond, as: 'refused' },
  problem: ({ failed, message = '', ...outcome }) => {
    if (!failed) return 'it did not fail';
    if (message.trim().length < 8 || /<\w|undefined|\[object/.test(message)) return `it says "${message}"`;
    return firstOf(
      ...Object.entries(expected).map(([key, value]) =>
        differs(key, outcome[key as keyof typeof outcome] ?? false, value),
      ),
    );
  },
});

const RETRYABLE: ReadonlySet<Problem> = new Set(['too many requests', 'overloaded']);

const cut =
  (count: (all: number) => number) =>
  (server: ZooServer): ZooResponse => {
    const pieces = server.stream({ text: TEXT, usage: null });
    return responseOf(server, pieces.slice(0, count(pieces.length)), { cut: true });
  };

/** Behaviours of servers that Antiphon meets, each for every server of the zoo. */
export const BEHAVIOURS: readonly Behaviour[] = [
  answered('text in pieces', { text: TEXT }, { text: WHOLE, finish: 'stop' }),
  answered('text in one piece', { text: [WHOLE] }, { text: WHOLE, finish: 'stop' }),
  answered('one byte at a time', { text: TEXT }, { text: WHOLE, usage: USAGE }, inBytes),
  answered('everything at once', { text: TEXT }, { text: WHOLE }, (all) => [all.join('')]),
  answered('an emoji in halves', { text: ['a\ud83c', '\udf0ab'] }, { text: 'a🌊b' }),
  answered('empty pieces of text', { text: ['', 'a', '', 'b', ''] }, { text: 'ab' }),
  answered(
    'lines that end in CR LF',
    { text: TEXT },
    { text: WHOLE },
    (all) => all.map((piece) => piece.replaceAll(/\r?\n/g, '\r\n')),
    sendsLines,
  ),
  answered('a byte order mark', { text: TEXT }, { text: WHOLE }, (all) => ['\ufeff', ...all], sendsLines),
  {
    ...{ name: 'keep-alives of its kind', as: 'held' },
    respond: (server) =>
      server.keepAlive === ''
        ? undefined
        : { pieces: between(server.keepAlive)(server.stream({ text: TEXT })) },
    problem: (outcome) => holds(outcome, { text: WHOLE }),
  },
  answered('keep-alives as data', { text: TEXT }, { text: WHOLE }, between('data: : ping\n\n'), sendsLines),
  answered(
    'comments and unknown fields of events',
    { text: TEXT },
    { text: WHOLE },
    between(': c\nid: 1\nretry: 9\n\n'),
    sendsLines,
  ),
  answered('a text of 600,000 characters', { text: ['x'.repeat(600_000)] }, { finish: 'stop' }),
  answered('text that a database cannot store', { text: ['a\0b'] }, { text: 'a\ufffdb' }),
  answered('no text at all', { text: [] }, { text: '', finish: 'stop' }),
  answered('usage as reported', { text: TEXT }, { usage: USAGE }),
  answered('no usage', { text: TEXT, usage: null }, { usage: null, text: WHOLE }),
  answered('an answer cut by its length', { text: TEXT, end: 'length' }, { finish: 'length', text: WHOLE }),
  answered(
    'an answer stopped by a filter',
    { text: TEXT, end: 'filter' },
    { finish: 'content_filter' },
    undefined,
    (server) => server.shows.filter,
  ),
  answered(
    'reasoning apart from the text',
    { thought: ['First ', 'the moon.'], text: TEXT },
    { thought: 'First the moon.', text: WHOLE },
    undefined,
    (server) => server.shows.thought,
  ),
  answered('a call of a tool', { calls: [CALL] }, { calls: [CALLED], finish: 'tool_calls' }),
  answered('text, and then a call', { text: TEXT, calls: [CALL] }, { text: WHOLE, calls: [CALLED] }),
  answered(
    'two calls at once',
    { calls: [CALL, { name: 'echo', json: ['{"say":"hé"}'] }] },
    { calls: [CALLED, { name: 'echo', input: { say: 'hé' } }] },
    undefined,
    (server) => server.shows.parallel,
  ),
  answered(
    'two calls of one tool',
    { calls: [CALL, { name: 'calculator', json: ['{"expression":"1"}'] }] },
    { calls: [CALLED, { name: 'calculator', input: { expression: '1' } }] },
    undefined,
    (server) => server.shows.parallel,
  ),
  called('a call without arguments', [''], { input: {} }),
  called('arguments that are null', ['null'], { input: {} }),
  called('arguments one character at a time', [...'{"expression":"6*7"}'], { input: { expression: '6*7' } }),
  called('arguments with a line break and an emoji', ['{"a":"x\\ny🌊"}'], { input: { a: 'x\ny🌊' } }),
  called('arguments that are no JSON', ['{"expression": 6*'], { input: {}, problem: 'not_json' }, sendsText),
  called('arguments that are no object', ['[1]'], { input: {}, problem: 'not_object' }),
  answered(
    'arguments as an object',
    { calls: [{ name: 'calculator', json: { expression: '6*7' } }] },
    { calls: [CALLED] },
    undefined,
    (server) => server.shows.objects,
  ),
  answered(
    'a call cut by the length',
    { calls: [{ name: 'calculator', json: ['{"expr'] }], end: 'length' },
    { calls: [{ name: 'calculator', input: {}, problem: 'cut' }], finish: 'length' },
    undefined,
    sendsText,
  ),
  {
    ...{ name: 'an answer without a stream', as: 'held', whole: true },
    respond: (server) => ({ status: 200, body: server.whole({ text: TEXT, calls: [CALL] }) }),
    problem: (outcome) => holds(outcome, { text: WHOLE, calls: [CALLED], usage: USAGE }),
  },
  ...PROBLEMS.map((problem) =>
    refusedWith(problem, (server) => server.refuse(problem), {
      refused: true,
      retryable: RETRYABLE.has(problem),
    }),
  ),
  refusedWith('a page of a proxy', () => ({ status: 502, body: '<html><h1>Bad Gateway</h1></html>' }), {
    ...{ refused: true, retryable: true },
  }),
  refusedWith('an error without a body', () => ({ status: 500, body: '' }), {
    refused: true,
    retryable: true,
  }),
  refusedWith('an error as the first event', (server) => responseOf(server, [server.broken('not now')]), {
    refused: true,
  }),
  refusedWith(
    'an error after some text',
    (server) =>
      responseOf(server, [
        ...server.stream({ text: TEXT, usage: null }).slice(0, 4),
        server.broken('it broke'),
      ]),
    { refused: false, dispatched: true },
  ),
  refusedWith(
    'a connection cut in mid-answer',
    cut((all) => Math.ceil(all / 2)),
    {
      ...{ refused: false, dispatched: true, retryable: true },
    },
  ),
  refusedWith(
    'a connection cut before the first byte',
    cut(() => 0),
    { refused: false, dispatched: true },
  ),
  refusedWith('a stream without an event', () => ({ pieces: ['\n'] }), { dispatched: true }),
  refusedWith('an answer of another type', () => ({ pieces: ['hello'], type: 'text/plain' }), {
    dispatched: true,
  }),
];
