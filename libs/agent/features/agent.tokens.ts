/** Token of the agent's runtime (`AgentRuntime`). */
export const AGENT_RUNTIME = Symbol('AGENT_RUNTIME');

/** Token of the dependencies of the request handlers. Each handler declares those that it uses. */
export const AGENT_SERVICES = Symbol('AGENT_SERVICES');
