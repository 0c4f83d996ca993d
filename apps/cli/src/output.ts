import { isAppError, type ErrorKind } from '@antiphon/kernel';
import type { Command } from 'commander';
import { escapeText } from './escape-text.js';
import type { HttpClient } from '@antiphon/client/http';
import type { GatewayAddress } from './connection/gateway-address.js';

/** Exit codes; `antiphon --help` lists them. */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3, refused: 4, unsigned: 5 } as const;

const BY_KIND: Partial<Record<ErrorKind, number>> = {
  unauthenticated: EXIT.refused,
  forbidden: EXIT.refused,
  exhausted: EXIT.refused,
};

/** Returns the exit code that tells a script which kind of failure it was. */
export const exitCodeOf = (error: unknown): number => {
  if (!isAppError(error)) return EXIT.failed;
  if (error.code === 'CLI.UNREACHABLE') return EXIT.unreachable;
  if (error.code === 'CLI.USAGE' || error.code.startsWith('CONFIG.')) return EXIT.usage;
  return BY_KIND[error.kind] ?? EXIT.failed;
};

/** Exit code of a command that Ctrl-C ended, as shells report SIGINT. */
export const INTERRUPTED = 130;

/** Codes of a write to a pipe whose reader is gone. */
const CLOSED_PIPE: ReadonlySet<string | undefined> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/**
 * Ends the process without a message when a reader such as `| head` closes its end of a pipe.
 * Without a reader of its messages a command continues.
 */
export const exitOnClosedPipe = (): void => {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!CLOSED_PIPE.has(error.code)) throw error;
      if (stream === process.stdout) process.exit();
    });
};

/** Output of a command: JSON documents (or JSON lines) with `--json`, else text. */
export interface Output {
  readonly json: boolean;
  /** Prints the document with `--json`, else the text. */
  result(document: unknown, text: string): void;
  /** Prints one line of a stream of lines. */
  line(document: unknown, text: string): void;
  /** Prints text without a line end; prints nothing with `--json`. */
  piece(text: string): void;
  /** Prints a line for the person at the terminal, to standard error. */
  note(text: string): void;
  failure(error: unknown): Promise<void>;
}

/** Dependencies of every command. */
export interface CommandContext {
  readonly output: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Finds the gateway's address; reads files, so only commands that need it call it. */
  readonly gateway: () => Promise<GatewayAddress>;
  /** Opens the HTTP routes of the gateway. */
  readonly http: () => Promise<HttpClient>;
}

export type ContextOf = (command: Command) => CommandContext;

const describe = (error: unknown): { code: string; message: string; data: unknown } => ({
  code: isAppError(error) ? error.code : 'INTERNAL.UNEXPECTED',
  message: error instanceof Error ? error.message : String(error),
  data: isAppError(error) ? error.data : {},
});

/**
 * Actions for failures whose message cannot know the command line; docs/errors.md has all codes.
 */
const ACTIONS: Readonly<Record<string, string>> = {
  'AGENT.NOT_FOUND':
    '`antiphon agent list` shows the agents; add `--state terminated` for those that have ended',
  'AGENT.STATE_CONFLICT': '`antiphon agent history ID` shows how the agent came into its state',
  'AGENT.LIMIT_REACHED':
    'terminate an agent of the tree, or spawn with `--queue` to wait for a place; `--max-agents` sets the limit of a new tree',
  'AGENT.EXISTS': 'choose another `--id`; the id of an ended agent is never used again',
  'TASK.NOT_FOUND': '`antiphon task list` shows the tasks',
  'TASK.QUEUE_FULL':
    'wait until tasks have ended, or spawn more agents; `antiphon task list` shows the queue',
  'MESSAGE.INVALID': 'send content of the message type; `/docs` on the gateway shows the schema of each',
  'PROVIDER.UNREACHABLE':
    "check that the provider runs and that `base_url` in antiphon.toml is right; `antiphon status` shows the provider's name",
  'PROVIDER.TIMEOUT':
    "check the provider's status page, or raise the setting that the message names; `antiphon provider show` prints all limits",
  'PROVIDER.PAUSED': 'wait a minute and send the message again, or give the agent a `fallback`',
};

const textOf = async (error: unknown): Promise<string> => {
  const { code, message } = describe(error);
  if (code.startsWith('CONFIG.')) {
    const { configProblems, renderConfigErrors } = await import('@antiphon/config');
    if (configProblems(error).length > 0) return renderConfigErrors(error);
  }
  const action = ACTIONS[code];
  return action === undefined ? message : `${message} (${code})\nWhat to do: ${action}`;
};

export const createOutput = (json: boolean): Output => {
  const print = (document: unknown, text: string): void =>
    void process.stdout.write(`${json ? JSON.stringify(document) : escapeText(text)}\n`);
  return {
    json,
    result: print,
    line: print,
    piece: (text) => void (json || process.stdout.write(escapeText(text))),
    note: (text) => void process.stderr.write(`${escapeText(text)}\n`),
    failure: async (error) => {
      if (json) process.stdout.write(`${JSON.stringify({ error: describe(error) })}\n`);
      else process.stderr.write(`antiphon: ${escapeText(await textOf(error))}\n`);
    },
  };
};
