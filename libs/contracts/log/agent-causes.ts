type Agent = Readonly<Record<'agentId', string>>;

/** Fields of the causes of refused messages, spawned agents and tasks. */
export interface AgentFields {
  /** The tree of `rootId` is full: `limit` is `size`, `children`, `depth` or `queue`. */
  tree_full: Readonly<Record<'rootId' | 'limit', string>> & { readonly max: number };
  /** `from` is the state of the parent. */
  parent_without_children: Agent & { readonly from: string };
  agent_cannot_change: Agent & Readonly<Record<'from' | 'to' | 'command', string>>;
  agent_exists: Agent;
  agent_has_ended: Agent;
  no_agent_configured: { readonly workspace: string };
  base_missing: Agent;
  base_not_own: Agent & { readonly base: string };
  tree_limits_of_child: unknown;
  sessions_not_own: Agent;
  viewer_changes_no_agent: unknown;
  agents_not_own: Agent;
  /** `noun` is `tool`, `capability` or `contact`. */
  spawner_without: Agent & Readonly<Record<'noun' | 'name', string>>;
  model_unnamed: { readonly provider: string };
  model_not_allowed: Readonly<Record<'name' | 'base', string>>;
  provider_missing: { readonly name: string };
  /** `allowed` is the limit in the unit of the field. */
  call_limit_over_base: Readonly<Record<'field' | 'base', string>> & { readonly allowed: number | boolean };
  /**
   * The agent may not make the `attempt` (one of `ATTEMPTS`) `to` another one. The list of `base`,
   * or of its spawn request, would need the entry `name`.
   */
  contact_not_allowed: Agent &
    Readonly<Record<'attempt' | 'to' | 'name' | 'base', string>> & { readonly isSpawnList: boolean };
  message_unlike_type: Readonly<Record<'type' | 'problem' | 'place', string>>;
  message_too_large: Readonly<Record<'bytes' | 'max', number>>;
  parent_task_archived: unknown;
  no_living_agent: Agent;
  too_many_tasks: unknown;
}

/** Texts of the ways in which an agent turns to others. */
const ATTEMPTS: Readonly<Record<string, (to: string) => string>> = {
  contact: (agentId) => `ask, message or delegate to "${agentId}", which may do more than it`,
  topic: (topic) => `send messages to the topic "${topic}"`,
  everyone: () => 'send messages to all agents',
};

/** Texts of the causes of refused messages, spawned agents and tasks. */
export const AGENT_TEXTS: { readonly [K in keyof AgentFields]: (fields: AgentFields[K]) => string } = {
  tree_full: ({ rootId, limit, max }) => `the tree of "${rootId}" has reached its limit of ${limit} (${max})`,
  parent_without_children: ({ agentId, from }) => `agent "${agentId}" is ${from}: it cannot have a child`,
  agent_cannot_change: ({ agentId, from, to, command }) =>
    `agent "${agentId}" cannot go from ${from} to ${to} (${command})`,
  agent_exists: ({ agentId }) => `there is or was an agent "${agentId}". What to do: choose another id`,
  agent_has_ended: ({ agentId }) => `agent "${agentId}" has ended. What to do: spawn another one`,
  no_agent_configured: ({ workspace }) => `no agent is configured for the workspace ${workspace}`,
  base_missing: ({ agentId }) => `there is no configured agent "${agentId}" to start from`,
  base_not_own: ({ agentId, base }) => `agent "${agentId}" may spawn agents with the base "${base}" only`,
  tree_limits_of_child: () => 'limits belong to the root of a tree: leave `limits` or `parent` out',
  sessions_not_own: ({ agentId }) => `agent "${agentId}" may use only sessions of itself and its descendants`,
  viewer_changes_no_agent: () => 'a viewer may not change agents',
  agents_not_own: ({ agentId }) => `agent "${agentId}" may change only itself and its descendants`,
  spawner_without: ({ agentId, noun, name }) =>
    `the agent "${agentId}" has no ${noun} "${name}", so this agent may not have it`,
  model_unnamed: ({ provider }) => `say which model of provider "${provider}"`,
  model_not_allowed: ({ name, base }) =>
    `no agent is configured with the model "${name}". What to do: name it in \`models\` of [[agents]] "${base}", or use a key of an operator`,
  provider_missing: ({ name }) =>
    `there is no provider "${name}". What to do: name one of antiphon.toml, or connect it`,
  call_limit_over_base: ({ field, base, allowed }) =>
    `callLimits.${field} is over the limit of the agent "${base}", ${allowed}. What to do: ask an operator, or use at most that`,
  contact_not_allowed: ({ agentId, attempt, to, name, base, isSpawnList }) => {
    const list = isSpawnList ? 'the `contacts` of its spawn request' : '`contacts`';
    const tried = ATTEMPTS[attempt]?.(to) ?? attempt;
    return `agent "${agentId}" may not ${tried}. What to do: name "${name}" in ${list} of [[agents]] "${base}"`;
  },
  message_unlike_type: ({ type, problem, place }) =>
    `the content is no ${type}: ${problem}${place === '' ? '' : ` at ${place}`}`,
  message_too_large: ({ bytes, max }) => `the content has ${bytes} bytes, more than ${max}`,
  parent_task_archived: () => 'the events of the parent task were archived. What to do: leave the parent out',
  no_living_agent: ({ agentId }) => `there is no living agent "${agentId}"`,
  too_many_tasks: () => 'the workspace has too many open tasks. What to do: send it later',
};
