/** Content of an answer, in a form common to all servers of the zoo. */
export interface ZooReply {
  /** Pieces of the text. */
  readonly text?: readonly string[];
  /** Pieces of the model's reasoning. */
  readonly thought?: readonly string[];
  readonly calls?: readonly ZooCall[];
  /** Default: `calls` or `stop`. */
  readonly end?: 'length' | 'filter';
  /** Tokens; null for a server that reports none this time. */
  readonly usage?: { readonly input: number; readonly output: number } | null;
}

export interface ZooCall {
  readonly name: string;
  /** Pieces of the arguments as JSON text; an object for a server that sends no text. */
  readonly json: readonly string[] | object;
  /** Default: an id in the form of the server. */
  readonly id?: string;
}

export const ZOO_USAGE = { input: 120, output: 34 };

/** Reasons for which a server refuses a request. */
export const PROBLEMS = [
  'wrong key',
  'no credit',
  'unknown model',
  'unsupported parameter',
  'context too long',
  'too many requests',
  'overloaded',
] as const;
export type Problem = (typeof PROBLEMS)[number];

/** An HTTP response with an error. */
export interface Refusal {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server as the zoo describes it, after the public sources that it names. */
export interface ZooServer {
  readonly name: string;
  /** Kind of provider with which Antiphon calls it. */
  readonly kind:
    'anthropic' | 'openai' | 'openai-compatible' | 'openrouter' | 'ollama' | 'gemini' | 'bedrock';
  readonly format: 'anthropic' | 'openai' | 'gemini' | 'bedrock';
  /** Media type of a stream of bytes that are no text. Its pieces have one character for a byte. */
  readonly binaryMedia?: string;
  /** Path of the base URL. */
  readonly path: string;
  readonly model: string;
  /** Public descriptions of the quirks below. */
  readonly sources: readonly string[];
  /** Returns the body of the stream, in pieces. */
  readonly stream: (reply: ZooReply) => readonly string[];
  /** Returns the body of an answer without a stream. */
  readonly whole: (reply: ZooReply) => unknown;
  /** Returns the refusal of a request; undefined for a problem that this server does not have. */
  readonly refuse: (problem: Problem) => Refusal | undefined;
  /** Returns the event by which the server breaks an answer off. */
  readonly broken: (message: string) => string;
  /** A line or event that keeps the connection open; empty where there is none. */
  readonly keepAlive: string;
  readonly shows: {
    /** The stream may carry reasoning. */
    readonly thought: boolean;
    /** It may report no usage. */
    readonly noUsage: boolean;
    /** It can ask for several tools at once. */
    readonly parallel: boolean;
    /** It may send the arguments of a call as an object. */
    readonly objects: boolean;
    /** It sends the arguments of a call as the model's text, which may be no JSON. */
    readonly argumentText: boolean;
    /** An answer can be stopped by a filter. */
    readonly filter: boolean;
  };
}
