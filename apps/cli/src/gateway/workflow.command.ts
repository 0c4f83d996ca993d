import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import { type AtOption, nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';

const reasonOf = (error: unknown): string =>
  (error as { code?: string }).code === 'ENOENT' ? 'there is no such file' : (error as Error).message;

/** Reads the text of a workflow file. Throws `CLI.USAGE`. */
export const readDefinition = async (cwd: string, file: string): Promise<string> => {
  const { WORKFLOW_LIMITS } = await import('@antiphon/contracts/agent');
  const path = resolve(cwd, file);
  try {
    const { size } = statSync(path);
    if (size > 4 * WORKFLOW_LIMITS.sourceLength) throw new Error('it is too large to be a workflow');
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw invalid('CLI.USAGE', `${file} cannot be read: ${reasonOf(error)}`);
  }
};

const validate = async ({ output, env, cwd }: CommandContext, file: string): Promise<void> => {
  const [{ orderOf, parseDefinition }, { loadConfig }] = await Promise.all([
    import('@antiphon/orchestration-features/definition'),
    import('@antiphon/config'),
  ]);
  const definition = parseDefinition(await readDefinition(cwd, file));
  const config = loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir(), requireKeys: false });
  const order = orderOf(config, definition);
  output.result({ valid: true, name: definition.name, order }, `${definition.name}: ${order.join(', ')}`);
};

interface SaveOptions {
  readonly id?: string;
  readonly draft?: boolean;
}

const save = async (
  { output, http, cwd }: CommandContext,
  file: string,
  { id, draft = false }: SaveOptions,
): Promise<void> => {
  const { createWorkflow, replaceWorkflow } = await http();
  const body = { definition: await readDefinition(cwd, file), draft };
  const saved = await (id === undefined
    ? createWorkflow({ body })
    : replaceWorkflow({ params: { id }, body }));
  output.result(saved, `${saved.id}  ${saved.name}, version ${saved.version}, ${saved.status}`);
};

interface ListOptions {
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listWorkflows({ query: options });
  const lines = page.workflows.map(
    ({ id, status, version, name }) => `${id}  ${status.padEnd(10)} v${version}  ${name}`,
  );
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const show = async ({ output, http }: CommandContext, id: string, at: AtOption): Promise<void> => {
  const workflow = await (await http()).getWorkflow({ params: { id }, query: at });
  const { name, version, status, definition } = workflow;
  const nodes = definition.nodes.map((node) => `  ${node.id}: ${node.agent ?? 'the default agent'}`);
  output.result(workflow, [`${id}  ${name}, version ${version}, ${status}`, ...nodes].join('\n'));
};

/** Adds `antiphon workflow validate|save|list|show`. */
export const addWorkflow = (program: Command, context: ContextOf): void => {
  const workflow = program
    .command('workflow')
    .description('validate, save, list and show workflows: agents that work together in a fixed order');
  workflow
    .command('validate <file>')
    .description('check a workflow file and report its errors; needs no gateway')
    .addHelpText(
      'after',
      '\nExample:\n  antiphon workflow validate examples/workflows/plan-implement-review.yaml',
    )
    .action((file: string, _: unknown, command: Command) => validate(context(command), file));
  workflow
    .command('save <file>')
    .description('save a workflow, so that it can be started by its id')
    .option('--id <id>', 'save it as the next version of this workflow')
    .option('--draft', 'save it without validating it')
    .action((file: string, options: SaveOptions, command: Command) => save(context(command), file, options));
  workflow
    .command('list')
    .description('list saved workflows, newest first')
    .option('--limit <n>', 'workflows per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .action((options: ListOptions, command: Command) => list(context(command), options));
  workflow
    .command('show <id>')
    .description('show a saved workflow: its version and its nodes')
    .option('--at <position>', 'as of this position of the log')
    .action((id: string, at: AtOption, command: Command) => show(context(command), id, at));
};
