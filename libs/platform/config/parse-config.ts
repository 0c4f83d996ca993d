import type { AntiphonConfig } from './antiphon-config.js';
import { buildConfig, DEFAULT_AGENT_ID, defaultProvider, resolveFile } from './build-config.js';
import { checkReferences, checkRules } from './check-rules.js';
import { checkSchema } from './check-schema.js';
import { configError, keyText } from './config-problem.js';
import type { ConfigProblem } from './config-problem.js';
import { describeSettings } from './effective-config.js';
import type { Environment } from './build-config.js';
import { createProblemList, entriesOf, textOf } from './problem-list.js';
import { PROVIDER_FACTS, PROVIDER_KINDS } from './provider-kinds.js';
import type { ProviderKind } from './provider-kinds.js';
import { parseToml } from './toml-document.js';
import type { SyntaxProblem } from './toml-document.js';
import type { TomlTree } from './toml-value.js';

export interface ParseContext {
  readonly source: string | null;
  readonly folder: string;
  readonly homeDir: string;
  readonly env: Environment;
  /** False for a process that calls no provider and has no keys. */
  readonly requireKeys: boolean;
}

const fromSyntax = (file: string | null, problem: SyntaxProblem): ConfigProblem => ({
  file,
  ...problem.place,
  key: keyText(problem.path),
  message: problem.message,
  expected: problem.expected,
  example: null,
  nearest: null,
  related: problem.related,
});

const kindFinder =
  (tree: TomlTree, builtIn: ProviderKind) =>
  (name: string | null): ProviderKind | null => {
    const providers = entriesOf(tree.data, 'providers');
    if (providers.length === 0) return builtIn;
    const found =
      name === null ? providers[0] : providers.find(({ table }) => textOf(table, 'name') === name);
    const kind = found === undefined ? null : textOf(found.table, 'kind');
    return PROVIDER_KINDS.find((known) => known === kind) ?? null;
  };

/** Returns true if the default agent's provider, the first one, has no default model. */
const needsAgents = (tree: TomlTree, kind: ProviderKind | null): boolean =>
  tree.data['agents'] === undefined && kind !== null && PROVIDER_FACTS[kind].defaultModel === null;

const checkTree = (tree: TomlTree, context: ParseContext) => {
  const list = createProblemList(context.source, tree);
  const builtIn = defaultProvider(context.env);
  const kindOf = kindFinder(tree, builtIn.kind);
  for (const { path, message, expected, example } of tree.problems)
    list.add(path, { message, expected, example, atKey: true });
  checkReferences(list, tree.data, { provider: builtIn.name, agent: DEFAULT_AGENT_ID });
  checkRules(list, tree.data, { env: context.requireKeys ? context.env : null, kindOf });
  if (needsAgents(tree, kindOf(null)))
    list.add(['providers', 0], {
      message: 'no agent is configured, and this kind of provider has no default model',
      expected: 'an agent that names its model',
      example: '[[agents]]\nid = "main"\nmodel = "…"',
    });
  const file = checkSchema(list, tree.data);
  return { file, problems: list.all() };
};

/**
 * Parses and checks the text of a file. Throws `CONFIG.INVALID` with all problems in
 * `data.problems`.
 */
export const parseConfig = (text: string, context: ParseContext): AntiphonConfig => {
  const document = parseToml(text);
  if (!document.ok) throw configError('invalid', [fromSyntax(context.source, document.problem)]);
  const { file, problems } = checkTree(document.tree, context);
  if (file === null || problems.length > 0) throw configError('invalid', problems);
  const resolved = resolveFile(file, context.env);
  const settings = describeSettings(resolved, document.tree.data);
  return { ...buildConfig(resolved, context), settings };
};
