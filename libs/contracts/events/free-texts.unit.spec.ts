import { describe, expect, it } from '@jest/globals';
import type { z } from 'zod';
import { EVENT_CONTRACTS } from './index.js';

/** Definition of a schema, as far as the walk reads it. */
interface Def {
  readonly type: string;
  readonly format?: string;
  readonly checks?: readonly { readonly _zod: { readonly def: { readonly check: string } } }[];
  readonly shape?: Record<string, z.core.$ZodType>;
  readonly catchall?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
  readonly element?: z.core.$ZodType;
  readonly innerType?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
}

/** Names of fields with an id, a code, a name, a path or a digest. None of them holds a sentence. */
const NAMES = new Set(
  [
    'check eventId signature streamId workspace',
    'actor agentId agents answeredBy answeredByName before by callId caller capabilities causeId chain',
    'claimKey code createdBy digest failedNodes folder from generationId grants idempotencyKey key keyId kind model',
    'features server',
    'moduleDigest name nodeId order parentAgentId parentId path project provider providerCallId',
    'recordedBy registeredBy removedBy request revokedBy role rootId rotatedBy scopeKey scopeKeys scopes sessionKey systemDigest to tool toolsDigest with',
    'worker',
    'workspaceId',
  ].flatMap((line) => line.split(' ')),
);

/** Names or paths of fields with a text of outside, and its origin. */
const OUTSIDE: Readonly<Record<string, string>> = {
  'McpServerAdded.url': 'a client',
  'RemoteToolRegistered.endpoint.url': 'a client',
  removed: 'an MCP server',
  'AuditRecorded.first.message': 'the program of an audit, which signs it',
  about: 'the program of an audit',
  counts: 'the program of an audit',
  description: 'a client',
  detail: 'a platform of a channel',
  parts: 'a model, or the text that a platform gets',
  secret: 'a name of a secret',
  default: 'a client',
  agent: 'a client',
  baseUrl: 'a client',
  body: 'a line of a plan',
  content: 'a person, a tool, or the text that an origin session showed its model',
  head: 'a line of a plan',
  identity: 'a client',
  inputs: 'a client',
  note: 'an agent, or the text that an origin session showed its model',
  object: 'memory',
  ours: 'a line of a plan',
  output: 'a model',
  position: 'a client',
  predicate: 'memory',
  providerState: 'a provider',
  preview: 'a difference of files',
  prompt: 'a client or an agent',
  reason: 'a person or an agent',
  soul: 'a client',
  subject: 'memory',
  systemPrompt: 'a client',
  text: 'a model, a person, a worker, or a line of a plan',
  theirs: 'a line of a plan',
  thought: 'a model',
  title: 'a client or an agent',
  user: 'a client',
};

/** Returns the paths of all strings of any form below a schema. The fields of a cause are none. */
const textsOf = (schema: z.core.$ZodType, path: string): string[] => {
  const def = (schema._zod as unknown as { def: Def }).def;
  if (def.type === 'string') {
    const hasForm =
      def.format !== undefined || def.checks?.some(({ _zod }) => _zod.def.check === 'string_format');
    return hasForm ? [] : [path];
  }
  const isCause = def.catchall !== undefined && def.catchall._zod.def.type !== 'never';
  const fields = isCause ? [] : Object.entries(def.shape ?? {});
  const parts = [def.element, def.innerType, def.valueType, ...(def.options ?? [])];
  return [
    ...fields.flatMap(([name, field]) => textsOf(field, `${path}.${name}`)),
    ...parts.flatMap((part) => (part ? textsOf(part, path) : [])),
  ];
};

const nameOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

describe('texts of events', () => {
  const paths = EVENT_CONTRACTS.flatMap(({ type, schema }) => {
    const { data } = (schema as z.ZodObject).shape as { data: z.core.$ZodType };
    return textsOf(data, type);
  });

  it('are names, or come from outside: a reason of ours is a cause', () => {
    // For a new field of the first kind add its name to NAMES. A text of a person, a model, a tool
    // or a provider belongs into OUTSIDE. A sentence of ours is a `Cause` (log/causes.ts).
    expect(
      paths.filter((path) => !NAMES.has(nameOf(path)) && !(nameOf(path) in OUTSIDE) && !(path in OUTSIDE)),
    ).toEqual([]);
  });

  it('have no name in the lists that no event has', () => {
    const names = new Set([...paths, ...paths.map(nameOf)]);
    expect([...NAMES, ...Object.keys(OUTSIDE)].filter((name) => !names.has(name))).toEqual([]);
  });
});
