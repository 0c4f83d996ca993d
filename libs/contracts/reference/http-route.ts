import type { z } from 'zod';
import type { Feature } from '../gateway/index.js';
import type { Access } from '../identity/index.js';

/** Sections of the API reference, in the order in which it shows them. */
export const ROUTE_TAGS = {
  Agents: 'Configured and spawned agents: their state, history and metrics.',
  Tasks: 'Pieces of work in a queue, which agents or external workers do. Nodes of runs are tasks too.',
  Plans: 'Plans of steps, which are files of the workspace too. An agent does the steps one by one.',
  Memory: 'What agents have learned from conversations, with the message behind each entry.',
  Messages: 'Messages between agents, and topics that agents subscribe to.',
  Budgets: 'Limits and cost of model calls, by session, agent, day and month.',
  Sessions:
    'Records of conversations: export, integrity check and fork. Messages are sent over the WebSocket.',
  Channels: 'Messengers and platforms by which people reach agents: deliveries, peers and dead letters.',
  Chats: 'Conversations that the files list as virtual `.chat` files, with commands and a stream of events.',
  Files: 'Files of a workspace, with all their versions.',
  Approvals: 'Tool calls that wait for a decision of a person.',
  Workflows: 'Saved definitions of directed acyclic graphs of agent turns.',
  Runs: 'Executions of workflows.',
  Keys: 'API keys: credentials with a workspace, a role, scopes and an expiry.',
  Workspaces: 'Tenants of the installation. Each has its own sessions, keys, agents and budgets.',
  Providers: 'Model providers: those of the configuration, and those that are connected at run time.',
  Credentials: 'Keys of model providers. They are stored encrypted and never returned.',
  Log: 'The append-only event log, which is the source of truth.',
  Operations: 'Health, metrics and status of the installation.',
  Dashboard: 'Sign-in and reports of the dashboard, which the gateway serves at `/`.',
  Reference: 'This reference, for people and for programs.',
} as const;

/** One HTTP route of the gateway. The controller and the reference are both built from it. */
export interface HttpRoute {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Path with `{name}` for each parameter. */
  readonly path: string;
  /** Name of the last parameter if it may have slashes, which need no percent-encoding. */
  readonly rest?: string;
  /** Rule of the route. The gateway denies every request that does not satisfy it. */
  readonly access: Access;
  /** True for a route of the whole installation: only operators of `default` may use it. */
  readonly isForOperators?: boolean;
  /** Feature that gates the route. While it is off, requests get `GATEWAY.FEATURE_OFF`. */
  readonly feature?: Feature;
  readonly tag: keyof typeof ROUTE_TAGS;
  /** Short title. */
  readonly summary: string;
  /** Effect of the route, with its units and limits. Markdown. */
  readonly description: string;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Further media types of the body; `application/json` is always accepted. */
  readonly bodyMedia?: readonly string[];
  /** True if a body of `application/octet-stream` is passed on unread instead of `body`. */
  readonly upload?: true;
  /** True if an `Idempotency-Key` joins a repeated request to the first one. */
  readonly idempotent?: boolean;
  /** Response of a success. `media` if it is not JSON, `status` if it is not 200. */
  readonly reply: { readonly schema: z.ZodType; readonly media?: string; readonly status?: number };
  /** Values that the reference shows. A spec parses each by its schema. */
  readonly example: {
    readonly params?: Readonly<Record<string, string>>;
    readonly query?: Readonly<Record<string, string | number>>;
    readonly body?: unknown;
    /** Absent for media that are not JSON and for empty responses. */
    readonly reply?: unknown;
  };
  /** Further statuses with a problem document, each with its cause. */
  readonly problems?: Readonly<Record<number, string>>;
  /** True for routes that the service host serves for every service. */
  readonly everywhere?: boolean;
}

/** Returns the path of a route as the router declares it. */
export const routerPath = ({ path, rest }: Pick<HttpRoute, 'path' | 'rest'>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === rest ? '*' : `:${name}`));

/** Declares a route with the types of its schemas. */
export const defineRoute = <const R extends HttpRoute>(route: R): R => route;

/** Media type of an upload. */
export const UPLOAD_MEDIA = 'application/octet-stream';

/** Body of an upload, before a byte of it is read. */
export interface Upload {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Number of bytes that the client declares; undefined if it declares none. */
  readonly size: number | undefined;
}

type BodyOf<R extends HttpRoute> = R extends { readonly body: infer S extends z.ZodType }
  ? z.output<S> | (R extends { readonly upload: true } ? undefined : never)
  : undefined;

/** Parsed input of a route's handler. */
export interface RouteInput<R extends HttpRoute> {
  readonly params: R extends { readonly params: infer S extends z.ZodType } ? z.output<S> : undefined;
  readonly query: R extends { readonly query: infer S extends z.ZodType } ? z.output<S> : undefined;
  readonly body: BodyOf<R>;
  /** On a route for uploads: the bytes, if the request has them instead of JSON. */
  readonly upload?: R extends { readonly upload: true } ? Upload | undefined : undefined;
  /** Value of the `Idempotency-Key` header, on a route that is idempotent. */
  readonly idempotencyKey: string | undefined;
}
