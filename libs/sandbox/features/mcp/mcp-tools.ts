import type { McpTool, ToolDescription } from '@antiphon/contracts/sandbox';
import { clipText, findJsonExcess, toStorable, toStorableJson } from '@antiphon/kernel';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import type { McpServer } from '@antiphon/sandbox-domain';
import type { ListedTool } from './client-library.port.js';
import { digestOfTool, mcpPrefix, mcpToolName } from './mcp-names.js';

const MAX_DESCRIPTION = 3_900;
const MAX_SCHEMA_CHARS = 64 * 1024;
const MAX_TOOL_NAME = 200;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a schema that providers accept; null for one that is too large. */
const schemaOf = (schema: unknown): JsonObject | null => {
  const object = isObject(schema) ? schema : {};
  const text = JSON.stringify(object);
  if (text.length > MAX_SCHEMA_CHARS || findJsonExcess(text) !== null) return null;
  return { ...(toStorableJson(object satisfies JsonValue) as JsonObject), type: 'object' };
};

/** Converts a listed tool; null for one that agents cannot have. Its texts are data, never parsed. */
export const toMcpTool = ({
  name,
  description = '',
  inputSchema,
  annotations,
}: ListedTool): McpTool | null => {
  const schema = schemaOf(inputSchema);
  if (name.length === 0 || name.length > MAX_TOOL_NAME || schema === null) return null;
  const hints = {
    isReadOnly: annotations?.readOnlyHint === true,
    isIdempotent: annotations?.idempotentHint === true,
  };
  const described = {
    name: toStorable(name),
    description: toStorable(description),
    inputSchema: schema,
    hints,
  };
  return {
    ...{ tool: described.name, digest: digestOfTool(described), hints },
    description: clipText(described.description, MAX_DESCRIPTION),
    inputSchema: schema,
  } as McpTool;
};

/** Requests of the tools that this host adds to those of a server. */
export type FeatureCall = 'list_resources' | 'read_resource' | 'list_prompts' | 'get_prompt';

const CURSOR = {
  cursor: { type: 'string', description: 'Position of a former reply, to continue after it.' },
};
const text = (description: string): JsonObject => ({ type: 'string', description });

const FEATURE_TOOLS: Readonly<
  Record<FeatureCall, { readonly feature: string; readonly description: string; readonly schema: JsonObject }>
> = {
  list_resources: {
    feature: 'resources',
    description: 'Lists the resources of the server, with their URIs.',
    schema: { type: 'object', properties: CURSOR },
  },
  read_resource: {
    feature: 'resources',
    description: 'Reads a resource of the server by its URI.',
    schema: { type: 'object', properties: { uri: text('URI of the resource.') }, required: ['uri'] },
  },
  list_prompts: {
    feature: 'prompts',
    description: 'Lists the prompts of the server, with their arguments.',
    schema: { type: 'object', properties: CURSOR },
  },
  get_prompt: {
    feature: 'prompts',
    description: 'Returns a prompt of the server, filled in with arguments.',
    schema: {
      type: 'object',
      properties: {
        name: text('Name of the prompt.'),
        arguments: { type: 'object', additionalProperties: { type: 'string' } },
      },
      required: ['name'],
    },
  },
};

/** A tool of a server that agents may call. */
export interface CallableTool {
  readonly name: string;
  /** Name at the server, or the feature that is called. */
  readonly target: { readonly tool: string } | { readonly feature: FeatureCall };
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly hints: McpTool['hints'];
  readonly digest: string;
}

const featureTools = ({ name: server, features, pinned, pending }: McpServer): CallableTool[] =>
  (Object.keys(FEATURE_TOOLS) as FeatureCall[]).flatMap((feature) => {
    const { feature: needed, description, schema } = FEATURE_TOOLS[feature];
    // A tool of the server with this name wins.
    if (!features.includes(needed) || pinned.has(feature) || pending.has(feature)) return [];
    const hints = { isReadOnly: true, isIdempotent: true };
    const described = { name: feature, description, inputSchema: schema, hints };
    const name = `${mcpPrefix(server)}${feature}`;
    const digest = digestOfTool(described);
    return [{ name, target: { feature }, description, inputSchema: schema, hints, digest }];
  });

const toCallable =
  (server: string) =>
  ({ tool, description, inputSchema, hints, digest }: McpTool): CallableTool => ({
    ...{ name: mcpToolName(server, tool), target: { tool } },
    ...{ description, inputSchema: inputSchema as JsonObject, hints, digest },
  });

/** Lists the tools of a server that can be called: pinned ones without a change, and its features. */
export const callableTools = (server: McpServer): CallableTool[] => [
  ...[...server.pinned.values()].filter(({ tool }) => !server.pending.has(tool)).map(toCallable(server.name)),
  ...featureTools(server),
];

/** Lists the tools that models see: also changed ones, whose calls say that they await an approval. */
export const listedTools = (server: McpServer): CallableTool[] => [
  ...[...server.pinned.values()].map(toCallable(server.name)),
  ...featureTools(server),
];

/** Finds the name at the server of a tool that awaits an approval. */
export const findPending = ({ name: server, pending }: McpServer, name: string): McpTool | null =>
  [...pending.values()].find(({ tool }) => mcpToolName(server, tool) === name) ?? null;

export interface CallPolicyOfServer {
  readonly timeoutMs: number;
  /** Whether the operator believes the hints of the server. */
  readonly trustHints: boolean;
}

/** Describes a tool for models and approvals. */
export const describeTool = (
  server: string,
  { name, description, inputSchema, hints, digest }: CallableTool,
  { timeoutMs, trustHints }: CallPolicyOfServer,
): ToolDescription =>
  ({
    ...{ name, description, inputSchema, timeoutMs },
    idempotent: trustHints && (hints.isReadOnly || hints.isIdempotent),
    moduleDigest: digest,
    grants: [`mcp:${server}`],
    source: 'mcp',
  }) as ToolDescription;
