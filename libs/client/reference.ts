import type { RouteTable, SocketMethodTable, StreamFrameData } from '@antiphon/contracts/reference';

// Types of the calls, derived from the contracts. Nothing here exists at run time.

type Input<S> = S extends { readonly _zod: { readonly input: infer I } } ? I : never;
type Output<S> = S extends { readonly _zod: { readonly output: infer O } } ? O : never;
type Simplify<T> = { [K in keyof T]: T[K] };

/** Name of an HTTP route, such as `listAgents`. */
export type RouteName = keyof RouteTable & string;

interface RequestOptions {
  readonly signal?: AbortSignal;
  /** Default for an idempotent route: a new key, so that a repeated request is done once. */
  readonly idempotencyKey?: string;
  /** Time after which the request fails, ms. Default: 30,000. */
  readonly timeoutMs?: number;
}

type Part<R, Name extends 'params' | 'query' | 'body'> = R extends { readonly [N in Name]: infer S }
  ? undefined extends Input<S>
    ? { readonly [N in Name]?: Input<S> }
    : // An object without required fields may be absent.
      Record<string, never> extends Input<S>
      ? { readonly [N in Name]?: Input<S> }
      : { readonly [N in Name]: Input<S> }
  : unknown;

/** Bytes of an upload. Those of a file are read as they are sent, and not by the page. */
export type UploadBody = Uint8Array<ArrayBuffer> | Blob;

/** The body of a route: JSON, or for an upload bytes instead. */
type BodyPart<R> = R extends { readonly upload: true }
  ? Partial<Part<R, 'body'>> & {
      readonly upload?: UploadBody;
      /** Called with the number of bytes that are sent; outside browsers once, at the end. */
      readonly onProgress?: (sent: number) => void;
    }
  : Part<R, 'body'>;

/** Input of an HTTP route. */
export type RouteRequest<N extends RouteName> = Simplify<
  Part<RouteTable[N], 'params'> & Part<RouteTable[N], 'query'> & BodyPart<RouteTable[N]> & RequestOptions
>;

/** Result of an HTTP route: its JSON, or the text of another media type. */
export type RouteReply<N extends RouteName> = RouteTable[N] extends {
  readonly reply: { readonly media: string };
}
  ? string
  : Output<RouteTable[N]['reply']['schema']>;

/** A route whose reply is a text, or with `bytes` its bytes. */
interface TextRoute<N extends RouteName> {
  (request: RouteRequest<N> & { readonly bytes: true }): Promise<Uint8Array<ArrayBuffer>>;
  (request: RouteRequest<N>): Promise<string>;
}

/** Every HTTP route as a function. */
export type HttpClient = {
  readonly [N in RouteName]: N extends 'readFile'
    ? TextRoute<N>
    : Record<string, never> extends RouteRequest<N>
      ? (request?: RouteRequest<N>) => Promise<RouteReply<N>>
      : (request: RouteRequest<N>) => Promise<RouteReply<N>>;
};

/** Name of any method of `/ws`. */
export type MethodName = keyof SocketMethodTable & string;

/** Name of a method of `/ws` that returns one result, and not frames. */
export type CallName = {
  [N in MethodName]: SocketMethodTable[N]['answer'] extends string ? never : N;
}[MethodName];

export type MethodParams<N extends MethodName> = Input<SocketMethodTable[N]['params']>;
export type MethodResult<N extends CallName> = Output<SocketMethodTable[N]['answer']>;

/** Kind of a stream frame, such as `text`. */
export type FrameKind = keyof StreamFrameData;

/** One frame of a turn. `data` has the type of its `event`. */
export type TurnFrame = {
  readonly [E in FrameKind]: {
    readonly event: E;
    readonly data: StreamFrameData[E];
    /** Position in the session. Offsets of a session only grow. */
    readonly offset: number;
  };
}[FrameKind];

/** A tool call that waits for a decision. */
export type PendingApproval = StreamFrameData['approval'];

/** Names that a turn has once it is accepted. */
export type AcceptedTurn = StreamFrameData['accepted'];

/** An event of the log. */
export type LogEvent = RouteReply<'readEvents'>['events'][number];
