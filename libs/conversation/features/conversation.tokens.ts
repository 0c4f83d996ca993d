/** Token of the dependencies of the request handlers. Each handler declares those that it uses. */
export const CONVERSATION_SERVICES = Symbol('CONVERSATION_SERVICES');
