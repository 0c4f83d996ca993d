import { areContexts, mayImport } from './contexts.mjs';
import { leavesPackage, projectOf, readProjects } from './projects.mjs';

/**
 * Allowed imports by project type (docs/adr/0070), on the tags that Nx uses. The published plug-in
 * for Nx 23 would install a second Nx, and there is none for Nx 24.
 *
 * - `types` lists project types. Those of `ownScope` must have the importer's scope, or that of a
 *   context that it may import (`contexts.mjs`). `contexts` adds types of such contexts.
 * - `contracts` is `all`, `type-only`, or a list of contracts that belong to no context.
 * - `folds` lists contracts of pure functions without schemas, for `type-only`.
 * - `external` is `any` or a list of packages.
 */
const RULES = {
  kernel: { types: [], external: [] },
  contracts: { types: [], external: ['zod'] },
  domain: {
    types: ['kernel'],
    contexts: ['domain'],
    contracts: 'type-only',
    folds: ['causes', 'prompt-references'],
    external: [],
  },
  workflow: {
    types: ['kernel', 'domain'],
    ownScope: ['domain'],
    contracts: 'all',
    external: ['@temporalio/workflow'],
  },
  platform: { types: ['kernel', 'platform'], contracts: ['causes', 'log', 'messaging'], external: 'any' },
  feature: {
    types: ['kernel', 'platform', 'domain', 'workflow'],
    ownScope: ['domain', 'workflow'],
    contexts: ['feature'],
    contracts: 'all',
    external: 'any',
  },
  // Runs in browsers, where neither Node's modules nor the schemas of the contracts belong.
  client: { types: [], contracts: 'type-only', external: [] },
  // The dashboard. It talks to the gateway by the client library alone.
  browser: {
    types: ['client'],
    contracts: 'type-only',
    folds: ['session-fold', 'run-fold', 'causes', 'prompt-references', 'task-waits'],
    external: 'any',
  },
  app: { types: ['kernel', 'platform', 'feature', 'tool', 'client'], contracts: 'all', external: 'any' },
  tool: { types: ['kernel', 'platform', 'tool'], contracts: ['log', 'messaging'], external: 'any' },
  testing: { types: ['kernel', 'platform', 'tool', 'client'], contracts: 'all', external: 'any' },
};
/** Project types that only specs may import. Specs may import any package. */
const SPEC_TYPES = ['testing'];
/** Specs, and the `testing/` folder next to them that holds what several specs share. */
const isSpec = (file) => /\.spec\.ts$|\/testing\/[^/]+\.ts$/.test(file);

const problemWithContracts = (rule, subpath, typeOnly) => {
  if (rule.contracts === undefined) return 'it may not import contracts';
  if (rule.contracts === 'type-only' && !typeOnly && !rule.folds?.includes(subpath))
    return 'it may import contracts only by `import type`';
  if (Array.isArray(rule.contracts) && !rule.contracts.includes(subpath))
    return `it may import only the contracts ${rule.contracts.join(', ')}, which belong to no context`;
  return undefined;
};

const problemWithProject = (importer, target, { subpath, typeOnly, spec }) => {
  if (target.name === importer.name) return undefined;
  if (spec && SPEC_TYPES.includes(target.type)) return undefined;
  const rule = RULES[importer.type];
  if (target.type === 'contracts')
    return problemWithContracts(spec ? { contracts: 'all' } : rule, subpath, typeOnly);
  const isOther = target.scope !== importer.scope;
  if (spec && isOther && areContexts(importer.scope, target.scope)) return undefined;
  if (isOther && rule.contexts?.includes(target.type) && mayImport(importer.scope, target.scope))
    return undefined;
  if (!rule.types.includes(target.type)) return `type:${importer.type} may not import type:${target.type}`;
  if (rule.ownScope?.includes(target.type) && !mayImport(importer.scope, target.scope))
    return `scope:${importer.scope} may not import scope:${target.scope}; contexts meet only in contracts`;
  return undefined;
};

const problemWithPackage = (importer, source, spec) => {
  const { external } = RULES[importer.type];
  if (spec || external === 'any' || external.includes(source)) return undefined;
  return `type:${importer.type} may not import ${source}${external.length ? `, only ${external.join(', ')}` : ''}`;
};

/** @type {import('eslint').Rule.RuleModule} */
export const moduleBoundaries = {
  meta: {
    type: 'problem',
    schema: [{ type: 'object', properties: { workspace: { type: 'string' } }, required: ['workspace'] }],
    messages: { forbidden: '{{problem}} (docs/adr/0070)' },
  },
  create(context) {
    const { workspace } = context.options[0];
    const file = context.filename;
    const projects = readProjects(workspace);
    const importer = projectOf(projects, workspace, file);
    if (!importer || !RULES[importer.type]) return {};

    const problemWith = (source, typeOnly) => {
      if (source.startsWith('.'))
        return leavesPackage(workspace, importer, file, source)
          ? 'a relative import may not leave its package'
          : undefined;
      const [, name, subpath] = /^(@antiphon\/[^/]+)(?:\/(.+))?$/.exec(source) ?? [];
      const spec = isSpec(file);
      if (name === undefined) return problemWithPackage(importer, source, spec);
      const target = projects.find((project) => project.name === name);
      if (!target) return `${name} is not a package of this workspace`;
      return problemWithProject(importer, target, { subpath, typeOnly, spec });
    };

    const check = (node, source, typeOnly) => {
      const problem = typeof source === 'string' ? problemWith(source, typeOnly) : undefined;
      if (problem) context.report({ node, messageId: 'forbidden', data: { problem } });
    };
    const onlyTypes = (node) => node.importKind === 'type' || node.exportKind === 'type';
    return {
      ImportDeclaration: (node) => check(node, node.source.value, onlyTypes(node)),
      ExportAllDeclaration: (node) => check(node, node.source.value, onlyTypes(node)),
      ExportNamedDeclaration: (node) => node.source && check(node, node.source.value, onlyTypes(node)),
      ImportExpression: (node) => check(node, node.source.value, false),
    };
  },
};
