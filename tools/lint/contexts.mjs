/**
 * The contexts of the agent service, by the `scope:` of their projects, with the contexts that each
 * may import (docs/adr/0186). A context imports the index of another one, never its files. Specs
 * import any of them, because they run the whole service. All other libraries meet in contracts.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const CONTEXTS = {
  'agent-log': [],
  providers: ['agent-log'],
  files: ['agent-log'],
  agents: ['agent-log', 'files'],
  // The bundle of all Temporal workflows: contexts import their types and signals.
  'agent-workflows': [],
  conversation: ['agent-log', 'agent-workflows', 'agents', 'files', 'providers'],
  channels: ['agent-log', 'agents', 'conversation', 'providers'],
  orchestration: ['agent-log', 'agent-workflows', 'agents', 'channels', 'conversation', 'files'],
  'native-tools': ['agent-log', 'agents', 'conversation', 'files', 'orchestration'],
  // Composes the service.
  agent: ['agents', 'channels', 'conversation', 'files', 'native-tools', 'orchestration', 'providers'],
};

/** Returns true if a project of one scope may import from another scope. */
export const mayImport = (from, to) => from === to || (CONTEXTS[from]?.includes(to) ?? false);

/** Returns true for two contexts of the agent service. */
export const areContexts = (...scopes) => scopes.every((scope) => scope in CONTEXTS);
