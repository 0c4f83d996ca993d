import type { RegisteredDeclaration, RemoteToolEvent } from '@antiphon/contracts/sandbox';
import type { Decider } from '@antiphon/kernel';

/** Maximum number of remote tools of a workspace. */
export const MAX_REMOTE_TOOLS = 1_000;
/** Beginning of the names of tools of MCP servers, which no program may have. */
export const MCP_PREFIX = 'mcp__';

/** A registered tool. */
export interface RemoteTool {
  readonly declaration: RegisteredDeclaration;
  readonly version: number;
  readonly digest: string;
}

/** Remote tools of a workspace. */
export interface RemoteTools {
  readonly tools: ReadonlyMap<string, RemoteTool>;
  /** Newest version of each name, also of a removed tool. */
  readonly versions: ReadonlyMap<string, number>;
}

interface Origin {
  readonly by: string;
  /** ISO 8601, UTC. */
  readonly now: string;
}
export type RegisterRemoteTool = Origin & {
  readonly type: 'RegisterRemoteTool';
  readonly declaration: RegisteredDeclaration;
  readonly digest: string;
};
export type RemoveRemoteTool = Origin & { readonly type: 'RemoveRemoteTool'; readonly name: string };
export type RemoteToolCommand = RegisterRemoteTool | RemoveRemoteTool;

const schemaVersion = 1;

/** The same declaration again, and the removal of a tool that does not exist, add no fact. */
const decide = (command: RemoteToolCommand, { tools, versions }: RemoteTools): RemoteToolEvent[] => {
  if (command.type === 'RemoveRemoteTool') {
    const { name, by: removedBy, now: removedAt } = command;
    if (!tools.has(name)) return [];
    return [{ type: 'RemoteToolRemoved', schemaVersion, data: { name, removedBy, removedAt } }];
  }
  const { declaration, digest, by: registeredBy, now: registeredAt } = command;
  if (tools.get(declaration.name)?.digest === digest) return [];
  const version = (versions.get(declaration.name) ?? 0) + 1;
  const data = { ...declaration, version, digest, registeredBy, registeredAt };
  return [{ type: 'RemoteToolRegistered', schemaVersion, data }];
};

const toolOf = (data: Extract<RemoteToolEvent, { type: 'RemoteToolRegistered' }>['data']): RemoteTool => {
  const { version, digest, registeredBy: _by, registeredAt: _at, ...declaration } = data;
  return { declaration, version, digest };
};

const evolve = (state: RemoteTools, event: RemoteToolEvent): RemoteTools => {
  const tools = new Map(state.tools);
  if (event.type === 'RemoteToolRemoved') {
    tools.delete(event.data.name);
    return { ...state, tools };
  }
  const { name, version } = event.data;
  tools.set(name, toolOf(event.data));
  return { tools, versions: new Map(state.versions).set(name, version) };
};

export const remoteToolsDecider: Decider<RemoteTools, RemoteToolCommand, RemoteToolEvent> = {
  initialState: () => ({ tools: new Map(), versions: new Map() }),
  decide,
  evolve,
};

/** Reason for which a tool is not registered. */
export interface Refusal {
  readonly code: 'TOOL.NAME_TAKEN' | 'TOOL.DECLARATION_INVALID' | 'TOOL.TOO_MANY';
  readonly message: string;
}

const retriesUnsafely = ({ idempotent, retry }: RegisteredDeclaration): boolean =>
  !idempotent && retry !== undefined && (retry.maxAttempts > 1 || retry.onTimeout);

/** Returns why a tool is not registered, or null. `isTaken` is true for names of other tools. */
export const findRefusal = (
  declaration: RegisteredDeclaration,
  { tools }: RemoteTools,
  isTaken: (name: string) => boolean,
): Refusal | null => {
  const { name } = declaration;
  if (name.startsWith(MCP_PREFIX) || isTaken(name))
    return { code: 'TOOL.NAME_TAKEN', message: `another tool has the name ${name}: choose another name` };
  const known = tools.get(name);
  if (known && (known.declaration.endpoint === undefined) !== (declaration.endpoint === undefined))
    return {
      code: 'TOOL.NAME_TAKEN',
      message: `${name} is ${known.declaration.endpoint ? 'called over HTTP' : 'served over a socket'}: remove it first, or choose another name`,
    };
  if (retriesUnsafely(declaration))
    return {
      code: 'TOOL.DECLARATION_INVALID',
      message: `${name} declares "retry" without "idempotent": true; only an idempotent tool is retried`,
    };
  if (!known && tools.size >= MAX_REMOTE_TOOLS)
    return { code: 'TOOL.TOO_MANY', message: `a workspace has at most ${MAX_REMOTE_TOOLS} remote tools` };
  return null;
};
