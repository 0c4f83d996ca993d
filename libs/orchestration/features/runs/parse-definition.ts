import { LineCounter, isAlias, parseDocument, visit } from 'yaml';
import type { Document } from 'yaml';
import { WORKFLOW_LIMITS, WorkflowDefinition } from '@antiphon/contracts/agent';
import type { WorkflowSource } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { checkDefinition } from '@antiphon/orchestration-domain';
import type { AntiphonConfig } from '@antiphon/config';
import { MAX_JSON_DEPTH, invalid, nestsDeeperThan, toStorableJson } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';

const MAX_PROBLEMS = 10;

const refuse = (problems: readonly string[]): never => {
  const shown = problems.slice(0, MAX_PROBLEMS);
  const more = problems.length > shown.length ? [`and ${problems.length - shown.length} more`] : [];
  throw invalid('WORKFLOW.INVALID', `the workflow cannot be read: ${[...shown, ...more].join('; ')}`);
};

type Place = (path: readonly PropertyKey[]) => string;

const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) =>
      typeof key === 'number' ? `${text}[${key}]` : `${text}${text === '' ? '' : '.'}${String(key)}`,
    '',
  );

/** Returns the line of a problem, or of the nearest node around it. */
const placeIn =
  (document: Document, lines: LineCounter): Place =>
  (path) => {
    for (let length = path.length; length >= 0; length--) {
      const node = document.getIn(path.slice(0, length), true) as
        { range?: [number, number, number] } | undefined;
      if (node?.range) return `line ${lines.linePos(node.range[0]).line}: `;
    }
    return '';
  };

interface Read {
  readonly value: unknown;
  readonly place: Place;
}

// Nested aliases could expand a few lines to gigabytes.
const refuseAliases = (document: Document): void => {
  visit(document, (_key, node) => {
    if (isAlias(node)) refuse(['aliases (*name) are not allowed']);
  });
};

/** Maximum indent. The parser recurses, and each level of block YAML takes a column at least. */
const MAX_INDENT = 200;
const INDENT = /^(?:[ \t]|[-?:][ \t])*/gm;

const refuseDepth = (text: string): void => {
  const indented = text.match(INDENT)?.some((indent) => indent.length > MAX_INDENT) ?? false;
  if (indented || nestsDeeperThan(text)) refuse([`it nests over ${MAX_JSON_DEPTH} levels deep`]);
};

const readText = (text: string): Read => {
  refuseDepth(text);
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    schema: 'core',
    merge: false,
  });
  if (document.errors.length > 0)
    refuse(document.errors.map(({ message, pos }) => `line ${lines.linePos(pos[0]).line}: ${message}`));
  refuseAliases(document);
  return { value: document.toJS({ maxAliasCount: 0 }), place: placeIn(document, lines) };
};

const readValue = (value: unknown): Read => {
  if (JSON.stringify(value).length > WORKFLOW_LIMITS.sourceLength)
    refuse([`it is over ${WORKFLOW_LIMITS.sourceLength} characters long`]);
  return { value, place: () => '' };
};

const describe = (place: Place, { path, message }: z.core.$ZodIssue): string => {
  const where = pathText(path);
  return `${place(path)}${where === '' ? '' : `${where}: `}${message}`;
};

/**
 * Parses a definition from YAML, JSON (a subset of YAML) or a JSON value. Throws `WORKFLOW.INVALID`
 * (kind invalid) with all problems, their lines and paths. Does not check the graph.
 */
export const parseDefinition = (source: WorkflowSource): WorkflowDefinition => {
  const { value, place } = typeof source === 'string' ? readText(source) : readValue(source);
  const parsed = WorkflowDefinition.safeParse(value);
  if (!parsed.success) return refuse(parsed.error.issues.map((issue) => describe(place, issue)));
  return toStorableJson(parsed.data as JsonValue) as unknown as WorkflowDefinition;
};

/** Returns an order of the nodes, by the configured agents. Throws as `checkDefinition` does. */
export const orderOf = (config: AntiphonConfig, definition: WorkflowDefinition): readonly string[] =>
  checkDefinition(definition, {
    agentExists: (agentId) => config.agents.some(({ id }) => id === agentId),
    maxDepth: WORKFLOW_LIMITS.depth,
  });
