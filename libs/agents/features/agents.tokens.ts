/** Token of the dependencies of the request handlers of agents. Each declares those that it uses. */
export const AGENTS_SERVICES = Symbol('AGENTS_SERVICES');
