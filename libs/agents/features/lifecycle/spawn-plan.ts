import { causedError } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { AgentActor, AgentDefinition, AgentSpec, spawnAgent } from '@antiphon/contracts/agent';
import { coversTool, workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { forbidden, notFound, rejected } from '@antiphon/kernel';
import type { Ids } from '@antiphon/kernel';
import type { z } from 'zod';
import { digestOf } from '@antiphon/event-store';
import type { AgentDirectory } from './agent-directory.js';
import type { DirectoryAgent } from './directory-agent.js';
import { requireRights } from './agent-rights.js';
import { requireLimitsWithin } from './own-call-limits.js';
import { requireModel, requireProvider } from './model-choice.js';

export type SpawnAgentRequest = z.output<typeof spawnAgent.request> & {
  /** True for a model that a role file names: people write it, and agents do not. */
  readonly anyModel?: boolean;
};

export interface SpawnPlanDeps {
  readonly config: AntiphonConfig;
  readonly agents: AgentDirectory;
  readonly ids: Ids;
}

/** A request with all that it leaves open filled in. */
export interface SpawnPlan {
  readonly id: string;
  readonly definition: AgentDefinition;
  readonly parent: DirectoryAgent | null;
  readonly rootId: string;
  readonly depth: number;
}

const ROLES_WITH_ALL_TOOLS: ReadonlySet<AgentActor['role']> = new Set(['operator', 'admin']);
/** Length of the part of a new id that comes from the name, and of its random part. */
const SLUG_LENGTH = 40;
const SUFFIX_LENGTH = 8;

const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9]+/g, '-')
    .replace(/^-+|(?<!-)-+$/g, '')
    .toLowerCase()
    .slice(0, SLUG_LENGTH) || 'agent';

const notAllowed = (cause: Cause) => causedError(forbidden, 'AGENT.NOT_ALLOWED', cause);

/**
 * Returns the model of a spawned agent. A provider other than that of the base needs a model. An
 * operator chooses any; others choose one of the configuration.
 */
const chooseModel = async (
  { config, agents }: SpawnPlanDeps,
  { workspace, spec: { provider, model }, actor, anyModel = false }: SpawnAgentRequest,
  base: DirectoryAgent,
): Promise<{ provider: string; model: string }> => {
  const name = provider ?? base.provider;
  if (name !== base.provider) await requireProvider(agents, workspace, name);
  if (model === undefined && name !== base.provider)
    throw causedError(rejected, 'SESSION.NO_MODEL', { kind: 'model_unnamed', provider: name });
  const chosen = { provider: name, model: model ?? base.model };
  const isOperator = actor.agentId === null && ROLES_WITH_ALL_TOOLS.has(actor.role);
  if (!isOperator && !anyModel) requireModel(config, workspace, base, chosen);
  return chosen;
};

const chooseTools = (
  { tools }: AgentSpec,
  base: DirectoryAgent,
  { role }: AgentActor,
  spawner: DirectoryAgent | null,
): readonly string[] => {
  if (spawner) return requirePart('tool', tools, base.tools, spawner.tools, spawner.id);
  const wanted = tools ?? base.tools;
  if (ROLES_WITH_ALL_TOOLS.has(role)) return wanted;
  return requirePart('tool', wanted, [], base.tools, base.id);
};

/**
 * Returns the wanted names, all of which must be in `own`. Without wanted names, returns those of
 * `usual` that are in `own`.
 */
const requirePart = (
  noun: string,
  wanted: readonly string[] | undefined,
  usual: readonly string[],
  own: readonly string[],
  ownerId: string,
): readonly string[] => {
  const has = (name: string): boolean => (noun === 'tool' ? coversTool(own, name) : own.includes(name));
  if (!wanted) return usual.filter(has);
  const extra = wanted.find((name) => !has(name));
  if (extra === undefined) return wanted;
  throw notAllowed({ kind: 'spawner_without', agentId: ownerId, noun, name: extra });
};

/** The capabilities of an agent that an agent spawns are a part of the spawning agent's own. */
const chooseCapabilities = (
  { capabilities }: AgentSpec,
  base: DirectoryAgent,
  spawner: DirectoryAgent | null,
): readonly string[] =>
  spawner
    ? requirePart('capability', capabilities, base.capabilities, spawner.capabilities, spawner.id)
    : (capabilities ?? base.capabilities);

/** An agent that is limited to some agents limits the agents that it spawns to a part of them. */
const chooseContacts = (
  { contacts }: AgentSpec,
  spawner: DirectoryAgent | null,
): Pick<AgentDefinition, 'contacts'> => {
  const own = spawner?.ownContacts;
  if (!own) return contacts ? { contacts } : {};
  return { contacts: [...requirePart('contact', contacts, own, own, spawner.id)] };
};

/** Only an operator may give limits beyond those of the base. */
const chooseCallLimits = (
  config: AntiphonConfig,
  { spec: { callLimits }, actor }: SpawnAgentRequest,
  base: DirectoryAgent,
  chosen: Pick<AgentDefinition, 'provider' | 'model'>,
): Pick<AgentDefinition, 'callLimits'> => {
  if (!callLimits) return {};
  const isOperator = actor.agentId === null && ROLES_WITH_ALL_TOOLS.has(actor.role);
  if (!isOperator) requireLimitsWithin(config, callLimits, base, chosen);
  return { callLimits };
};

const identityOf = ({ identity }: AgentSpec): AgentDefinition['identity'] =>
  identity
    ? {
        soul: identity.soul ?? null,
        agent: identity.agent ?? null,
        identity: identity.identity ?? null,
        user: identity.user ?? null,
      }
    : null;

/** Returns the configured agent to start from. An agent starts from its own base only. */
const requireBase = async (
  { agents, config }: SpawnPlanDeps,
  { workspace, spec: { base }, actor }: SpawnAgentRequest,
): Promise<DirectoryAgent> => {
  if (actor.agentId !== null) {
    const own = (await agents.require(workspace, actor.agentId)).base;
    if (base !== undefined && base !== own)
      throw notAllowed({ kind: 'base_not_own', agentId: actor.agentId, base: own });
    return agents.require(workspace, own);
  }
  const configured = workspaceConfig(config, workspace).agents;
  const id = base ?? configured[0]?.id ?? '';
  if (!configured.some((agent) => agent.id === id))
    throw causedError(notFound, 'AGENT.NOT_FOUND', { kind: 'base_missing', agentId: id });
  return agents.require(workspace, id);
};

const definitionOf = async (
  deps: SpawnPlanDeps,
  request: SpawnAgentRequest,
  base: DirectoryAgent,
  spawner: DirectoryAgent | null,
  { spec, actor } = request,
): Promise<AgentDefinition> => {
  const chosen = await chooseModel(deps, request, base);
  return {
    ...{ name: spec.name, role: spec.role ?? base.role, ...chosen },
    systemPrompt: spec.systemPrompt ?? base.systemPrompt,
    capabilities: [...chooseCapabilities(spec, base, spawner)],
    tools: [...chooseTools(spec, base, actor, spawner)],
    project: spec.project ?? null,
    position: spec.position ?? base.position,
    maxIterations: spec.maxIterations ?? base.maxIterations,
    fallback: base.fallback,
    identity: identityOf(spec) ?? base.identity,
    base: base.base,
    budget: spec.budget ?? null,
    ...(spec.thinking === undefined ? {} : { thinking: spec.thinking }),
    ...chooseContacts(spec, spawner),
    ...chooseCallLimits(deps.config, request, base, chosen),
  };
};

/**
 * Checks a request and fills in what it leaves open. Throws `AGENT.NOT_ALLOWED`, `AGENT.NOT_FOUND`
 * (base or parent), `AGENT.TERMINATED`, `PROVIDER.NOT_FOUND`, `SESSION.NO_MODEL`.
 */
export const planSpawn = async (deps: SpawnPlanDeps, request: SpawnAgentRequest): Promise<SpawnPlan> => {
  const { workspace, spec, actor, idempotencyKey } = request;
  const { agents, ids } = deps;
  const parentId = spec.parent ?? actor.agentId ?? null;
  await requireRights(agents, workspace, actor, parentId);
  if (parentId !== null && spec.limits)
    throw causedError(rejected, 'AGENT.NOT_ALLOWED', { kind: 'tree_limits_of_child' });
  const parent = parentId === null ? null : await agents.require(workspace, parentId);
  const spawner = actor.agentId === null ? null : await agents.require(workspace, actor.agentId);
  const definition = await definitionOf(deps, request, await requireBase(deps, request), spawner);
  // A repeated request with a key derives the same id, so that it finds the first one's agent.
  const seed = idempotencyKey === undefined ? ids.next() : `${actor.caller}\n${idempotencyKey}`;
  const suffix = digestOf({ seed, workspace }).slice(0, SUFFIX_LENGTH);
  const id = spec.id ?? `${slugOf(spec.name)}-${suffix}`;
  return { id, definition, parent, rootId: parent?.rootId ?? id, depth: parent ? parent.depth + 1 : 0 };
};
